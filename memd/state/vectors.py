"""The file that keeps the vectors of one directory's memories: a log of records.

Rules of this file
- It is a cache. Any of it may be lost: what is missing is computed again.
- A record is a memory's path, the mark of the text that the vector was made of, and the vector.
  A later record of a path replaces an earlier one.
- Every record carries its check sum. What follows the first one that is broken does not count and
  is cut off, so a crash in the middle of a write costs that write.
- The first line names the model; a file of another model is begun anew.
- Not for two threads at once: the owner serialises. Nothing is waited for on the medium.
"""

import os
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from zlib import crc32

MARK_BYTES = 8

_MAGIC = b"memd vectors 2 "  # another number when the text of a vector is made otherwise
_RECORD = struct.Struct("<IHf")  # check sum, bytes of the path, scale; path, mark, steps follow
_SUM_BYTES = 4
_PATH_BYTES = 4096
_SLACK = 1000  # replaced records that a file may hold before it is written anew


@dataclass(frozen=True, slots=True)
class Kept:
    """A vector as it is kept; ``mark`` says which text it was made of."""

    mark: bytes
    steps: bytes
    scale: float


class VectorFile:
    """One log at a path, of vectors with ``width`` numbers by the model ``identity``."""

    def __init__(self, path: str, identity: str, width: int) -> None:
        self._path = path
        self._header = _MAGIC + f"{identity} {width}\n".encode()
        self._width = width

    def read(self) -> dict[str, Kept]:
        """Return what is kept, by path, and bring the file into order.

        Blocks for some microseconds a record. Raises OSError.
        """
        try:
            with open(self._path, "rb") as file:
                content = file.read()
        except FileNotFoundError:
            content = b""
        found, records, end = self._parse(content)
        if records - len(found) > len(found) + _SLACK or not content.startswith(self._header):
            self.rewrite(found)
        elif end < len(content):
            os.truncate(self._path, end)
        return found

    def append(self, kept: Mapping[str, Kept]) -> None:
        """Add records. Raises OSError."""
        with open(self._path, "ab", opener=_private) as file:
            file.write(b"".join(self._records(kept)))

    def rewrite(self, kept: Mapping[str, Kept]) -> None:
        """Replace the whole file. Raises OSError."""
        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        fresh = f"{self._path}.new"
        with open(fresh, "wb", opener=_private) as file:
            file.write(self._header)
            file.writelines(self._records(kept))
        os.replace(fresh, self._path)

    def _records(self, kept: Mapping[str, Kept]) -> Iterable[bytes]:
        for path, item in kept.items():
            name = path.encode(errors="surrogateescape")
            if len(name) <= _PATH_BYTES:
                rest = name + item.mark + item.steps
                head = _RECORD.pack(0, len(name), item.scale)[_SUM_BYTES:]
                yield struct.pack("<I", crc32(head + rest)) + head + rest

    def _parse(self, content: bytes) -> tuple[dict[str, Kept], int, int]:
        """Return what is kept, how many records there are, and where the last good one ends."""
        found: dict[str, Kept] = {}
        records, at = 0, len(self._header)
        while content.startswith(self._header) and at + _RECORD.size <= len(content):
            total, length, scale = _RECORD.unpack_from(content, at)
            name = at + _RECORD.size
            mark = name + length
            steps = mark + MARK_BYTES
            end = steps + self._width
            if end > len(content) or crc32(content[at + _SUM_BYTES : end]) != total:
                break
            path = content[name:mark].decode(errors="surrogateescape")
            found[path] = Kept(content[mark:steps], content[steps:end], scale)
            records, at = records + 1, end
        return found, records, at


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)
