"""The members of a tar archive, one after the other, read from what it unpacks to. Blocks.

The standard library's reader holds a record for each member and a header as large as it says it is,
so that a small file can fill the memory, and passes over an end that is missing. Here nothing is
held but one header and one piece, and whatever is not as it must be is an error.

A member's content comes in pieces; those that nobody took are passed over.
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
_EXTENSION_BYTES = 64 * 1024  # a longer name or a time, in a header of its own
_EXTENSIONS = 8  # such headers before one member
_EXTENDS = (b"x", b"g", b"L", b"K")
_PLAIN = (b"0", b"\0", b"7")
_DAMAGED = "a header of it is damaged"
_LARGE = "what a header of it announces is too large"
_TIME = re.compile(r"(\d{1,10})(?:\.(\d{1,20}))?")
_WHY_NOT = {b"1": IS_LINK, b"2": IS_LINK, b"3": IS_SPECIAL, b"4": IS_SPECIAL, b"6": IS_SPECIAL}


class Unpacked:
    """What a file unpacks to: exactly as many bytes as are asked for, each reported to ``count``.

    ``label`` names the file in errors.
    """

    def __init__(self, file: BinaryIO, label: str, count: Callable[[int], None]) -> None:
        self._file, self._label, self._count = file, label, count

    def take(self, size: int) -> bytes:
        """Return the next bytes, all of them. Raises SourceDamagedError."""
        content = self.some(size)
        if len(content) < size:
            raise SourceDamagedError(self._label, TRUNCATED)
        return content

    def some(self, size: int) -> bytes:
        """Return the next bytes, fewer at the end. Raises SourceDamagedError."""
        try:
            content = self._file.read(size)
        except (OSError, zlib.error) as error:
            raise SourceDamagedError(self._label, str(error)) from error
        except EOFError as error:
            raise SourceDamagedError(self._label, TRUNCATED) from error
        self._count(len(content))
        return content

    def pieces(self, size: int) -> Pieces:
        """Yield the next bytes in pieces."""
        while size:
            piece = self.take(min(size, PIECE_BYTES))
            size -= len(piece)
            yield piece


def tar_members(source: Unpacked, label: str) -> Iterator[tuple[PackedFile, Pieces]]:
    """Yield the members of a tar archive. Raises SourceDamagedError."""
    named: dict[str, str] = {}
    extensions = 0
    while (header := source.take(_BLOCK)) != bytes(_BLOCK):
        if sum(header[:148] + b" " * 8 + header[156:]) != _number(header[148:156], label):
            raise SourceDamagedError(label, _DAMAGED)
        kind, size = header[156:157], _number(header[124:136], label)
        if kind in _EXTENDS:
            extensions += 1
            if size > _EXTENSION_BYTES or extensions > _EXTENSIONS:
                raise SourceDamagedError(label, _LARGE)
            named |= _extension(kind, source.take(size), label)
            source.take(-size % _BLOCK)
            continue
        member = _member(header, kind, size, named, label)
        pieces = source.pieces(member.size)
        yield member, pieces
        for _ in pieces:
            pass
        source.take(-member.size % _BLOCK)
        named, extensions = {}, 0
    while source.some(PIECE_BYTES):  # what is packed has its sum at the end
        pass


def _member(header: bytes, kind: bytes, size: int, named: dict[str, str], label: str) -> PackedFile:
    name = named.get("path") or _text(header[:100])
    if header[257:263] == b"ustar\0" and header[345] and "path" not in named:
        name = f"{_text(header[345:500])}/{name}"
    if re.fullmatch("[0-9]{1,20}", own := named.get("size", "")):
        size = int(own)
    if kind in _WHY_NOT:
        return PackedFile(name, why_not=_WHY_NOT[kind])  # whatever its size says, nothing follows
    if size > UNPACKED_BYTES:
        raise SourceDamagedError(name, _LARGE)
    if kind == b"5" or (kind == b"\0" and name.endswith("/")):
        return PackedFile(name, size, folder=True)
    plain = kind in _PLAIN and not any(key.startswith("GNU.sparse") for key in named)
    mtime_ns = _number(header[136:148], label) * 10**9
    if match := _TIME.fullmatch(named.get("mtime", "")):
        mtime_ns = int(match[1]) * 10**9 + int((match[2] or "").ljust(9, "0")[:9])
    return PackedFile(name, size, mtime_ns, why_not="" if plain else IS_SPECIAL)


def _number(field: bytes, label: str) -> int:
    """Return a number of a header: octal digits, or bytes behind a first one that says so."""
    if field[:1] in (b"\x80", b"\xff"):  # positive, negative
        return int.from_bytes(field[1:], "big") if field[:1] == b"\x80" else 0
    digits = field.strip(b" \0")
    if not re.fullmatch(b"[0-7]*", digits):
        raise SourceDamagedError(label, _DAMAGED)
    return int(digits or b"0", 8)


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode(errors="surrogateescape")


def _extension(kind: bytes, text: bytes, label: str) -> dict[str, str]:
    """Return what a header says of the member behind it; one for all members says nothing."""
    if kind == b"L":
        return {"path": _text(text)}
    result: dict[str, str] = {}
    while kind == b"x" and text.strip(b"\0"):
        length = text.partition(b" ")[0]
        end = int(length) if re.fullmatch(b"[0-9]{1,6}", length) else 0
        key, equals, value = text[len(length) + 1 : end].partition(b"=")
        if not equals or not value.endswith(b"\n"):
            raise SourceDamagedError(label, _DAMAGED)
        result[_text(key)] = _text(value[:-1])
        text = text[end:]
    return result
