"""Read the members of a tar archive one after the other, with little memory. Blocks.

The standard library's reader keeps a record for each member and reads headers of any size, so that
a small file can fill the memory, and it accepts a truncated archive. This one keeps only one header
and one piece of content, and raises an error for everything that is not valid.
"""

import re
import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO

from memd.portable.errors import SourceDamagedError
from memd.portable.intake import (
    IS_LINK,
    IS_SPECIAL,
    PIECE_BYTES,
    TRUNCATED,
    UNPACKED_BYTES,
    PackedFile,
    Pieces,
)

_BLOCK = 512
_EXTENSION_BYTES = 64 * 1024  # of an extension: a header with a long name or an exact time
_EXTENSIONS = 8  # the most of them before one member
_EXTENDS = (b"x", b"g", b"L", b"K")  # types of extensions: of pax (one, all) and GNU (name, link)
_PLAIN = (b"0", b"\0", b"7")  # types of regular files
_DAMAGED = "a header of it is damaged"
_LARGE = "what a header of it announces is too large"
_TIME = re.compile(r"(\d{1,10})(?:\.(\d{1,20}))?")
_WHY_NOT = {b"1": IS_LINK, b"2": IS_LINK, b"3": IS_SPECIAL, b"4": IS_SPECIAL, b"6": IS_SPECIAL}


class Unpacked:
    """Reads from a file that may be compressed; the sizes read are reported to ``count``.

    ``label`` names the file in errors.
    """

    def __init__(self, file: BinaryIO, label: str, count: Callable[[int], None]) -> None:
        self._file, self._label, self._count = file, label, count

    def take(self, size: int) -> bytes:
        """Return exactly the next ``size`` bytes. Raises SourceDamagedError if there are fewer."""
        content = self.some(size)
        if len(content) < size:
            raise SourceDamagedError(self._label, TRUNCATED)
        return content

    def some(self, size: int) -> bytes:
        """Return the next ``size`` bytes, fewer at the end. Raises SourceDamagedError."""
        try:
            content = self._file.read(size)
        except (OSError, zlib.error) as error:
            raise SourceDamagedError(self._label, str(error)) from error
        except EOFError as error:
            raise SourceDamagedError(self._label, TRUNCATED) from error
        self._count(len(content))
        return content

    def pieces(self, size: int) -> Pieces:
        """Yield the next ``size`` bytes in pieces. Raises SourceDamagedError."""
        while size:
            piece = self.take(min(size, PIECE_BYTES))
            size -= len(piece)
            yield piece


def tar_members(source: Unpacked, label: str) -> Iterator[tuple[PackedFile, Pieces]]:
    """Yield each member of a tar archive with its content in pieces. Raises SourceDamagedError.

    Pieces that the caller does not read are skipped.
    """
    extended: dict[str, str] = {}  # fields of the next member from extensions before it
    extensions = 0
    while (header := source.take(_BLOCK)) != bytes(_BLOCK):  # a block of zeros ends the archive
        # The sum of all bytes, counting those of the sum itself as spaces.
        if sum(header[:148] + b" " * 8 + header[156:]) != _parse_number(header[148:156], label):
            raise SourceDamagedError(label, _DAMAGED)
        kind, size = header[156:157], _parse_number(header[124:136], label)
        if kind in _EXTENDS:
            extensions += 1
            if size > _EXTENSION_BYTES or extensions > _EXTENSIONS:
                raise SourceDamagedError(label, _LARGE)
            extended |= _parse_extension(kind, source.take(size), label)
            source.take(-size % _BLOCK)  # content is padded to whole blocks
            continue
        member = _parse_member(header, kind, size, extended, label)
        pieces = source.pieces(member.size)
        yield member, pieces
        for _ in pieces:
            pass
        source.take(-member.size % _BLOCK)
        extended, extensions = {}, 0
    while source.some(PIECE_BYTES):  # gzip's checksum is only verified at the end
        pass


def _parse_member(
    header: bytes, kind: bytes, size: int, extended: dict[str, str], label: str
) -> PackedFile:
    """Return the member of a header of type ``kind``, with its ``extended`` fields.

    The numbers are the offsets of fields in the header. Raises SourceDamagedError.
    """
    name = extended.get("path") or _text(header[:100])
    if header[257:263] == b"ustar\0" and header[345] and "path" not in extended:
        name = f"{_text(header[345:500])}/{name}"
    if re.fullmatch("[0-9]{1,20}", extended_size := extended.get("size", "")):
        size = int(extended_size)
    if kind in _WHY_NOT:
        return PackedFile(name, why_not=_WHY_NOT[kind])  # links have no content, even with a size
    if size > UNPACKED_BYTES:
        raise SourceDamagedError(name, _LARGE)
    if kind == b"5" or (kind == b"\0" and name.endswith("/")):
        return PackedFile(name, size, folder=True)
    plain = kind in _PLAIN and not any(key.startswith("GNU.sparse") for key in extended)
    mtime_ns = _parse_number(header[136:148], label) * 10**9
    if match := _TIME.fullmatch(extended.get("mtime", "")):
        mtime_ns = int(match[1]) * 10**9 + int((match[2] or "").ljust(9, "0")[:9])
    return PackedFile(name, size, mtime_ns, why_not="" if plain else IS_SPECIAL)


def _parse_number(field: bytes, label: str) -> int:
    """Return a number of a header: octal digits, or a big-endian number behind a first byte 0x80.

    Negative numbers (first byte 0xFF), which only times can be, give 0.
    """
    if field[:1] in (b"\x80", b"\xff"):  # positive, negative
        return int.from_bytes(field[1:], "big") if field[:1] == b"\x80" else 0
    digits = field.strip(b" \0")
    if not re.fullmatch(b"[0-7]*", digits):
        raise SourceDamagedError(label, _DAMAGED)
    return int(digits or b"0", 8)


def _text(field: bytes) -> str:
    """Return the text of a header's field, which ends at its first NUL."""
    return field.partition(b"\0")[0].decode(errors="surrogateescape")


def _parse_extension(kind: bytes, text: bytes, label: str) -> dict[str, str]:
    """Return the fields that an extension sets for the next member. Raises SourceDamagedError.

    Empty for types ``g`` (fields of all members) and ``K`` (the target of a link).
    """
    if kind == b"L":
        return {"path": _text(text)}
    result: dict[str, str] = {}
    while kind == b"x" and text.strip(b"\0"):
        # A record of pax is "<length> <key>=<value>\n"; the length counts all of it.
        length = text.partition(b" ")[0]
        end = int(length) if re.fullmatch(b"[0-9]{1,6}", length) else 0
        key, equals, value = text[len(length) + 1 : end].partition(b"=")
        if not equals or not value.endswith(b"\n"):
            raise SourceDamagedError(label, _DAMAGED)
        result[_text(key)] = _text(value[:-1])
        text = text[end:]
    return result
