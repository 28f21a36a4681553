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

_BLOCK = 512  # bytes; an archive consists of such blocks
_EXTENSION_BYTES = 64 * 1024  # of an extension: a header with a long name or an exact time
_EXTENSIONS = 8  # the most of them before one member
# Types of extensions: of pax (for one member, for all) and of GNU (a name, the target of a link).
_EXTENSION_TYPES = (b"x", b"g", b"L", b"K")
_FILE_TYPES = (b"0", b"\0", b"7")  # types of regular files
_DAMAGED = "a header of it is damaged"
_TOO_LARGE = "what a header of it announces is too large"
_TIME = re.compile(r"(\d{1,10})(?:\.(\d{1,20}))?")
# For types that are neither files nor folders: links, devices and pipes.
_REASONS_AGAINST = {
    b"1": IS_LINK,
    b"2": IS_LINK,
    b"3": IS_SPECIAL,
    b"4": IS_SPECIAL,
    b"6": IS_SPECIAL,
}


class Unpacked:
    """Reads from a file that may be compressed; the sizes read are reported to ``count``.

    ``label`` names the file in errors.
    """

    def __init__(self, file: BinaryIO, label: str, count: Callable[[int], None]) -> None:
        self._file, self._label, self._count = file, label, count

    def read_exactly(self, size: int) -> bytes:
        """Return exactly the next ``size`` bytes. Raises SourceDamagedError if there are fewer."""
        content = self.read_some(size)
        if len(content) < size:
            raise SourceDamagedError(self._label, TRUNCATED)
        return content

    def read_some(self, size: int) -> bytes:
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
            piece = self.read_exactly(min(size, PIECE_BYTES))
            size -= len(piece)
            yield piece


def tar_members(source: Unpacked, label: str) -> Iterator[tuple[PackedFile, Pieces]]:
    """Yield each member of a tar archive with its content in pieces. Raises SourceDamagedError.

    Pieces that the caller does not read are skipped.
    """
    extended: dict[str, str] = {}  # fields of the next member from extensions before it
    extensions = 0
    end = bytes(_BLOCK)  # a block of zeros ends the archive
    while (header := source.read_exactly(_BLOCK)) != end:
        # The sum of all bytes, counting those of the sum itself as spaces.
        checksum = sum(header[:148] + b" " * 8 + header[156:])
        if checksum != _parse_number(header[148:156], label):
            raise SourceDamagedError(label, _DAMAGED)
        kind, size = header[156:157], _parse_number(header[124:136], label)
        if kind in _EXTENSION_TYPES:
            extensions += 1
            if size > _EXTENSION_BYTES or extensions > _EXTENSIONS:
                raise SourceDamagedError(label, _TOO_LARGE)
            extended |= _parse_extension(kind, source.read_exactly(size), label)
            source.read_exactly(-size % _BLOCK)  # content is padded to whole blocks
            continue
        member = _parse_member(header, kind, size, extended, label)
        pieces = source.pieces(member.size)
        yield member, pieces
        for _ in pieces:  # skip what the caller did not read
            pass
        source.read_exactly(-member.size % _BLOCK)
        extended, extensions = {}, 0
    while source.read_some(PIECE_BYTES):  # gzip's checksum is only verified at the end
        pass


def _parse_member(
    header: bytes, kind: bytes, size: int, extended: dict[str, str], label: str
) -> PackedFile:
    """Return the member of a header of type ``kind``.

    The numbers are the offsets of fields in the header. ``extended`` are fields from extensions,
    which replace those of the header. Raises SourceDamagedError.
    """
    name = extended.get("path") or _text(header[:100])
    has_folder_field = header[257:263] == b"ustar\0" and header[345] != 0
    if has_folder_field and "path" not in extended:
        name = f"{_text(header[345:500])}/{name}"
    extended_size = extended.get("size", "")
    if re.fullmatch("[0-9]{1,20}", extended_size):
        size = int(extended_size)
    if kind in _REASONS_AGAINST:  # a link has no content, even if it names a size
        return PackedFile(name, reason_against=_REASONS_AGAINST[kind])
    if size > UNPACKED_BYTES:
        raise SourceDamagedError(name, _TOO_LARGE)
    # A type of NUL is that of old archives, where only the slash tells that it is a folder.
    if kind == b"5" or (kind == b"\0" and name.endswith("/")):
        return PackedFile(name, size, folder=True)
    is_sparse = any(key.startswith("GNU.sparse") for key in extended)
    is_file = kind in _FILE_TYPES and not is_sparse
    mtime_ns = _parse_number(header[136:148], label) * 10**9
    time = _TIME.fullmatch(extended.get("mtime", ""))
    if time:
        nanoseconds = (time[2] or "").ljust(9, "0")[:9]  # the digits behind the point
        mtime_ns = int(time[1]) * 10**9 + int(nanoseconds)
    return PackedFile(name, size, mtime_ns, reason_against="" if is_file else IS_SPECIAL)


def _parse_number(field: bytes, label: str) -> int:
    """Return a number of a header: octal digits, or a big-endian number behind a first byte 0x80.

    Negative numbers (first byte 0xFF), which only times can be, give 0.
    """
    if field[:1] == b"\x80":
        return int.from_bytes(field[1:], "big")
    if field[:1] == b"\xff":
        return 0
    digits = field.strip(b" \0")
    if not re.fullmatch(b"[0-7]*", digits):
        raise SourceDamagedError(label, _DAMAGED)
    return int(digits or b"0", 8)


def _text(field: bytes) -> str:
    """Return the text of a header's field, which ends at its first NUL."""
    return field.partition(b"\0")[0].decode(errors="surrogateescape")


def _parse_extension(kind: bytes, text: bytes, label: str) -> dict[str, str]:
    """Return the fields that an extension sets for the next member. Raises SourceDamagedError.

    The types ``g`` (fields of all members) and ``K`` (the target of a link) set none that is used.
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
