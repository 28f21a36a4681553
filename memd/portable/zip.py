"""Read the members of a zip archive one after the other, with little memory. Blocks.

The standard library's reader builds a record of every member first, so that a small file can fill
the memory. This one keeps only one entry and one piece of content, and raises an error for
everything that is not valid. The directory is the list of entries at the end of the archive.
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
_WIDE_END = struct.Struct("<4sQ2H2L4Q")  # the same with 64-bit numbers (zip64)
_WIDE_PLACE = struct.Struct("<4sLQL")  # the record that has the offset of ``_WIDE_END``
_ENTRY = struct.Struct("<4s2B5H3L5H2L")  # an entry of the directory
_LOCAL = struct.Struct("<26x2H")  # lengths of name and extra field in the header before content
_COMMENT_BYTES = 65_535  # the longest comment, which stands behind all else
_IS_WIDE = 0xFFFFFFFF  # stands for a 64-bit number in the extra field
_UNIX = 3  # the system whose file modes an entry has
_ENCRYPTED, _UTF8 = 0x1, 0x800  # flags
_STORED, _DEFLATED = 0, 8
_DAMAGED = "its directory is damaged"
_IS_ENCRYPTED = "it is encrypted"
_UNKNOWN_METHOD = "it is packed in a way that memd does not read"
_OVERLAPPING = "files of it share their bytes"
_CHANGED = "its bytes are not what they were"


class ZipArchive:
    """A zip archive of ``size`` bytes; the sizes of unpacked pieces are reported to ``count``.

    ``label`` names it in errors.
    """

    def __init__(self, file: BinaryIO, size: int, label: str, count: Callable[[int], None]) -> None:
        self._file, self._size, self._label, self._count = file, size, label, count

    def members(self) -> Iterator[tuple[PackedFile, Pieces]]:
        """Yield each member with its content in pieces, in the order of the directory.

        Raises SourceDamagedError.
        """
        at, end = self._find_directory()
        bytes_left = self._size  # that members may still take up
        while at < end:
            entry = _ENTRY.unpack(self._read_at(at, _ENTRY.size))
            sign, _, system, _, flags, method, time, day, crc = entry[:9]
            if sign != b"PK\1\2":
                raise SourceDamagedError(self._label, _DAMAGED)
            name_length, extra_length, comment_length = entry[11:14]
            mode = entry[16] >> 16 if system == _UNIX else 0
            name_and_extra = self._read_at(at + _ENTRY.size, name_length + extra_length)
            at += _ENTRY.size + name_length + extra_length + comment_length
            name = _decode_name(name_and_extra[:name_length], flags)
            short_numbers = (entry[10], entry[9], entry[17])  # size, packed size, offset
            size, packed, offset = _wide_numbers(name_and_extra[name_length:], short_numbers)
            member = _describe_member(name, size, _mtime_ns(day, time), mode)
            if member.folder or member.reason_against:
                yield member, iter(())
                continue
            if flags & _ENCRYPTED:
                raise SourceDamagedError(name, _IS_ENCRYPTED)
            if method not in (_STORED, _DEFLATED):
                raise SourceDamagedError(name, _UNKNOWN_METHOD)
            check_ratio(name, size, packed)
            # Overlapping members would let a small archive unpack to any size.
            bytes_left -= packed
            if bytes_left < 0:
                raise SourceDamagedError(self._label, _OVERLAPPING)
            pieces = self._packed_pieces(offset, packed, name)
            if method == _DEFLATED:
                pieces = _inflate(pieces, name)
            yield member, self._checked_pieces(pieces, crc, member)

    def _find_directory(self) -> tuple[int, int]:
        """Return the offsets of the directory's begin and end. Raises SourceDamagedError."""
        start = max(0, self._size - _DIRECTORY_END.size - _COMMENT_BYTES)
        tail = self._read_at(start, self._size - start)
        at = tail.rfind(b"PK\5\6")
        if at < 0 or len(tail) < at + _DIRECTORY_END.size:
            raise SourceDamagedError(self._label, TRUNCATED)
        length, begin = _DIRECTORY_END.unpack_from(tail, at)[5:7]
        place = at - _WIDE_PLACE.size
        if place >= 0 and tail[place : place + 4] == b"PK\6\7":  # a zip64 archive
            wide_end_offset = _WIDE_PLACE.unpack_from(tail, place)[2]
            wide_end = self._read_at(wide_end_offset, _WIDE_END.size)
            length, begin = _WIDE_END.unpack(wide_end)[8:10]
        if begin + length > start + at:
            raise SourceDamagedError(self._label, TRUNCATED)
        return begin, begin + length

    def _packed_pieces(self, offset: int, packed: int, name: str) -> Pieces:
        """Yield the ``packed`` bytes of the member at an offset, still packed.

        Raises SourceDamagedError.
        """
        local = self._read_at(offset, _LOCAL.size)
        if local[:4] != b"PK\3\4":
            raise SourceDamagedError(name, _DAMAGED)
        at = offset + _LOCAL.size + sum(_LOCAL.unpack(local))
        end = at + packed
        while at < end:
            piece = self._read_at(at, min(end - at, PIECE_BYTES))
            at += len(piece)
            yield piece

    def _checked_pieces(self, pieces: Pieces, crc: int, member: PackedFile) -> Pieces:
        """Yield the pieces of a member.

        Raises SourceDamagedError if their size or checksum is not the directory's.
        """
        size = checksum = 0
        for piece in pieces:
            self._count(len(piece))
            size += len(piece)
            checksum = zlib.crc32(piece, checksum)
            if size > member.size:
                break
            yield piece
        if (size, checksum) != (member.size, crc):
            raise SourceDamagedError(member.name, _CHANGED)

    def _read_at(self, offset: int, size: int) -> bytes:
        """Return exactly ``size`` bytes. Raises SourceDamagedError if the archive has fewer."""
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


def _decode_name(field: bytes, flags: int) -> str:
    """Return the name of an entry; without the flag for UTF-8 it is in code page 437."""
    if flags & _UTF8:
        return field.decode(errors="surrogateescape")
    return field.decode("ascii" if field.isascii() else "cp437")


def _wide_numbers(extra: bytes, short: tuple[int, int, int]) -> tuple[int, int, int]:
    """Return the size, packed size and offset of an entry.

    ``short`` are the entry's 32-bit numbers; those that are too large stand in the ``extra`` field.
    """
    while len(extra) > 4:  # noqa: PLR2004 - each part of the field begins with its kind and length
        kind, length = struct.unpack_from("<2H", extra)
        if kind == 1:
            part = extra[4 : 4 + length]  # a damaged entry may have fewer bytes
            # It has a 64-bit number only for each 32-bit number that is too large.
            wide_numbers = struct.iter_unpack("<Q", part[: len(part) // 8 * 8])
            size, packed, offset = (
                next(wide_numbers, (number,))[0] if number == _IS_WIDE else number
                for number in short
            )
            return size, packed, offset
        extra = extra[4 + length :]
    return short


def _describe_member(name: str, size: int, mtime_ns: int, mode: int) -> PackedFile:
    """Return a member; by its file mode it may be a link or special. ``mode`` is 0 if unknown."""
    kind = stat.S_IFMT(mode)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        return PackedFile(name, reason_against=IS_LINK if kind == stat.S_IFLNK else IS_SPECIAL)
    return PackedFile(name, size, mtime_ns, folder=name.endswith("/"))


def _mtime_ns(day: int, time: int) -> int:
    """Return an entry's date and time in ns since 1970, read as UTC; 0 if they are invalid.

    Both are 16 bits: year, month, day; hour, minute, half seconds. Zip files name no time zone.
    """
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


def _inflate(pieces: Pieces, name: str) -> Pieces:
    """Yield the unpacked bytes of packed pieces, in pieces. Raises SourceDamagedError."""
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        for packed in pieces:
            piece = unpacker.decompress(packed, PIECE_BYTES)
            while piece:
                yield piece
                piece = unpacker.decompress(unpacker.unconsumed_tail, PIECE_BYTES)
            if unpacker.eof:  # zlib would copy all further bytes again with each piece
                return
    except zlib.error as error:
        raise SourceDamagedError(name, str(error)) from error
