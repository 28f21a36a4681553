"""The members of a zip archive, one after the other, read from an open file. Blocks.

The standard library's reader holds a record for each member before it says how many there are, so
that a small file can fill the memory. Here nothing is held but one entry and one piece, and
whatever is not as it must be is an error.
"""

import stat
import struct
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import BinaryIO

from memd.portable.errors import SourceDamagedError
from memd.portable.intake import (
    IS_LINK,
    IS_SPECIAL,
    PIECE_BYTES,
    TRUNCATED,
    PackedFile,
    Pieces,
    check_ratio,
)

_DIRECTORY_END = struct.Struct("<4s4H2LH")
_WIDE_END = struct.Struct("<4sQ2H2L4Q")  # of an archive with large numbers
_WIDE_PLACE = struct.Struct("<4sLQL")  # where that lies
_ENTRY = struct.Struct("<4s2B5H3L5H2L")
_LOCAL = struct.Struct("<26x2H")
_COMMENT_BYTES = 65_535
_WIDE = 0xFFFFFFFF  # the number stands in the extra field
_UNIX = 3
_ENCRYPTED, _UTF8 = 0x1, 0x800  # flags
_STORED, _DEFLATED = 0, 8
_DAMAGED = "its directory is damaged"
_IS_ENCRYPTED = "it is encrypted"
_UNKNOWN = "it is packed in a way that memd does not read"
_OVERLAP = "files of it share their bytes"
_CHANGED = "its bytes are not what they were"


class ZipArchive:
    """A zip archive of ``size`` bytes; each byte that comes out is reported to ``count``.

    ``label`` names it in errors.
    """

    def __init__(self, file: BinaryIO, size: int, label: str, count: Callable[[int], None]) -> None:
        self._file, self._size, self._label, self._count = file, size, label, count

    def members(self) -> Iterator[tuple[PackedFile, Pieces]]:
        """Yield the members in the order of the directory. Raises SourceDamagedError."""
        at, end = self._directory()
        left = self._size
        while at < end:
            entry = _ENTRY.unpack(self._at(at, _ENTRY.size))
            sign, _, system, _, flags, method, time, day, crc = entry[:9]
            if sign != b"PK\1\2":
                raise SourceDamagedError(self._label, _DAMAGED)
            lengths, mode = entry[11:14], entry[16] >> 16 if system == _UNIX else 0
            text = self._at(at + _ENTRY.size, lengths[0] + lengths[1])
            at += _ENTRY.size + sum(lengths)
            name = _name(text[: lengths[0]], flags)
            size, packed, offset = _numbers(text[lengths[0] :], (entry[10], entry[9], entry[17]))
            member = _member(name, size, _mtime_ns(day, time), mode)
            if member.folder or member.why_not:
                yield member, iter(())
                continue
            if flags & _ENCRYPTED or method not in (_STORED, _DEFLATED):
                raise SourceDamagedError(name, _IS_ENCRYPTED if flags & _ENCRYPTED else _UNKNOWN)
            check_ratio(name, size, packed)
            left -= packed
            if left < 0:
                raise SourceDamagedError(self._label, _OVERLAP)
            pieces = self._content(offset, packed, name)
            yield member, self._checked(_inflated(pieces, name) if method else pieces, crc, member)

    def _directory(self) -> tuple[int, int]:
        """Return where the directory begins and ends."""
        start = max(0, self._size - _DIRECTORY_END.size - _COMMENT_BYTES)
        tail = self._at(start, self._size - start)
        at = tail.rfind(b"PK\5\6")
        if at < 0 or len(tail) < at + _DIRECTORY_END.size:
            raise SourceDamagedError(self._label, TRUNCATED)
        length, begin = _DIRECTORY_END.unpack_from(tail, at)[5:7]
        place = at - _WIDE_PLACE.size
        if place >= 0 and tail[place : place + 4] == b"PK\6\7":
            record = self._at(_WIDE_PLACE.unpack_from(tail, place)[2], _WIDE_END.size)
            length, begin = _WIDE_END.unpack(record)[8:10]
        if begin + length > start + at:
            raise SourceDamagedError(self._label, TRUNCATED)
        return begin, begin + length

    def _content(self, offset: int, packed: int, name: str) -> Pieces:
        """Yield the bytes of a member as they are in the archive."""
        local = self._at(offset, _LOCAL.size)
        if local[:4] != b"PK\3\4":
            raise SourceDamagedError(name, _DAMAGED)
        at = offset + _LOCAL.size + sum(_LOCAL.unpack(local))
        end = at + packed
        while at < end:
            piece = self._at(at, min(end - at, PIECE_BYTES))
            at += len(piece)
            yield piece

    def _checked(self, pieces: Pieces, crc: int, member: PackedFile) -> Pieces:
        """Yield pieces that are as many bytes as they must be, with the right sum."""
        size = actual = 0
        for piece in pieces:
            self._count(len(piece))
            size, actual = size + len(piece), zlib.crc32(piece, actual)
            if size > member.size:
                break
            yield piece
        if (size, actual) != (member.size, crc):
            raise SourceDamagedError(member.name, _CHANGED)

    def _at(self, offset: int, size: int) -> bytes:
        """Return the bytes at a place, all of them. Raises SourceDamagedError."""
        if offset + size > self._size:
            raise SourceDamagedError(self._label, TRUNCATED)
        try:
            self._file.seek(offset)
            content = self._file.read(size)
        except OSError as error:
            raise SourceDamagedError(self._label, str(error)) from error
        if len(content) < size:
            raise SourceDamagedError(self._label, TRUNCATED)
        return content


def _name(field: bytes, flags: int) -> str:
    """Return a name; what is not said to be UTF-8 is in the first code page of the PC."""
    if flags & _UTF8:
        return field.decode(errors="surrogateescape")
    return field.decode("ascii" if field.isascii() else "cp437")


def _numbers(extra: bytes, short: tuple[int, int, int]) -> tuple[int, int, int]:
    """Return the size, packed size and place of an entry, from its extra field where too large."""
    while len(extra) > 4:  # noqa: PLR2004 - its kind and length stand before each part of the field
        kind, length = struct.unpack_from("<2H", extra)
        if kind == 1:
            part = extra[4 : 4 + length]  # a damaged entry has less than it says
            wide = struct.iter_unpack("<Q", part[: len(part) // 8 * 8])
            size, packed, offset = (
                next(wide, (number,))[0] if number == _WIDE else number for number in short
            )
            return size, packed, offset
        extra = extra[4 + length :]
    return short


def _member(name: str, size: int, mtime_ns: int, mode: int) -> PackedFile:
    kind = stat.S_IFMT(mode)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        return PackedFile(name, why_not=IS_LINK if kind == stat.S_IFLNK else IS_SPECIAL)
    return PackedFile(name, size, mtime_ns, folder=name.endswith("/"))


def _mtime_ns(day: int, time: int) -> int:
    """Return a time of a directory, which knows no zone, as if it were UTC; 0 for none."""
    try:
        seconds = datetime(
            1980 + (day >> 9),
            day >> 5 & 15,
            day & 31,
            time >> 11,
            time >> 5 & 63,
            (time & 31) * 2,
            tzinfo=UTC,
        ).timestamp()
    except ValueError:
        return 0
    return int(seconds) * 10**9


def _inflated(pieces: Pieces, name: str) -> Pieces:
    """Yield what packed pieces unpack to, in pieces again."""
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        for packed in pieces:
            piece = inflate.decompress(packed, PIECE_BYTES)
            while piece:
                yield piece
                piece = inflate.decompress(inflate.unconsumed_tail, PIECE_BYTES)
            if inflate.eof:  # what follows is kept by zlib, and kept again with each piece
                return
    except zlib.error as error:
        raise SourceDamagedError(name, str(error)) from error
