"""The words of memories in a file: one record after the other, the last one of a path counts.

Rules of this file
- A record is known by where it begins. Its checksum is over all of it, so what a crash or a medium
  has spoilt is found when it is read, never answered.
- What is appended is seen only after ``save``; the caller keeps how long the file then is, and
  whatever lies beyond that at the next opening was never committed and is cut off.
- The file is mapped into memory; ``release`` gives its pages back to the system.
"""

import mmap
import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from memd.core.errors import MemdError
from memd.state.scoring import Document
from memd.state.search import Fingerprint

# checksum of the rest, bytes of all, the fingerprint's three numbers, mtime, words of the heading,
# bytes of the path
_HEAD = struct.Struct("<IIQqQqII")
_SUM = 4
_GONE = 2**32 - 1  # as the heading's length: there is no memory of this path any more
_UNSIGNED = 2**64 - 1
_SIGNED = 2**63 - 1  # a file system may keep later times than this
_SMALL = 4 * 1024 * 1024  # a file up to this size may stay in memory
_PATHS = {"encoding": "utf-8", "errors": "surrogateescape"}


class SequencesDamagedError(MemdError):
    """A record does not hold what was written to it."""

    kind = "engine_broken"
    code = 1090

    def __init__(self, path: str, at: int) -> None:
        super().__init__(f"{path} is damaged at byte {at}", path=path, at=at)


@dataclass(frozen=True, slots=True)
class Found:
    """A record: where it is, whose it is, and the fingerprint (``None``: the memory is gone)."""

    at: int
    path: str
    fingerprint: Fingerprint | None


class Sequences:
    """One such file, of which ``size`` bytes count. All methods block and raise OSError."""

    def __init__(self, path: str, size: int = 0) -> None:
        self._path = path
        self._added: list[bytes] = []
        self._end = self._mapped = size
        self._map: mmap.mmap | None = None
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._remap()
            os.ftruncate(self._file, size)
        except (OSError, MemdError):
            self.close()
            raise

    @property
    def size(self) -> int:
        """How many bytes can be read."""
        return self._mapped

    def append(self, document: Document, fingerprint: Fingerprint) -> int:
        """Add a memory; return where it will be."""
        heading = min(document.heading, _GONE - 1)
        return self._append(document.path, fingerprint, document.mtime_ns, heading, document.words)

    def append_gone(self, path: str) -> None:
        """Say that there is no memory of this path any more."""
        self._append(path, (0, 0, 0), 0, _GONE, b"")

    def save(self) -> int:
        """Bring what was appended to the medium and return how long the file is then.

        May run in another thread than reading does.
        """
        data = b"".join(self._added)
        at = self._end - len(data)
        while data:
            written = os.pwrite(self._file, data, at)
            at, data = at + written, data[written:]
        os.fsync(self._file)
        self._added = []
        return self._end

    def reveal(self) -> None:
        """Let reading see what was saved."""
        self._mapped = self._end
        self._remap()

    def read(self, at: int) -> tuple[Document, Fingerprint]:
        """Return the memory whose record begins there; raises SequencesDamagedError."""
        found, document = self._record(at)
        if found.fingerprint is None:
            raise SequencesDamagedError(self._path, at)
        return document, found.fingerprint

    def scan(self) -> Iterator[Found]:
        """Return every record in the order of writing; raises SequencesDamagedError."""
        at = 0
        while at < self._mapped:
            found, document = self._record(at)
            yield found
            at += _HEAD.size + len(document.path.encode(**_PATHS)) + len(document.words)

    def release(self) -> None:
        """Give the pages that were read back to the system, unless the file is small."""
        if self._map is not None and self._mapped > _SMALL:
            self._map.madvise(mmap.MADV_DONTNEED)

    def close(self) -> None:
        """End reading and writing."""
        if self._map is not None:
            self._map.close()
            self._map = None
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _append(
        self, path: str, fingerprint: Fingerprint, mtime_ns: int, heading: int, words: bytes
    ) -> int:
        name = path.encode(**_PATHS)
        length = _HEAD.size + len(name) + len(words)
        head = _HEAD.pack(0, length, *bounded(fingerprint), _signed(mtime_ns), heading, len(name))
        rest = head[_SUM:] + name + words
        at = self._end
        self._added.append(zlib.crc32(rest).to_bytes(_SUM, "little") + rest)
        self._end += length
        return at

    def _record(self, at: int) -> tuple[Found, Document]:
        mapped = self._map
        if mapped is None or not 0 <= at <= self._mapped - _HEAD.size:
            raise SequencesDamagedError(self._path, at)
        total, length, inode, changed, size, mtime_ns, heading, name = _HEAD.unpack_from(mapped, at)
        start = at + _HEAD.size
        if not _HEAD.size + name <= length <= self._mapped - at:
            raise SequencesDamagedError(self._path, at)
        data = mapped[at + _SUM : at + length]
        if zlib.crc32(data) != total:
            raise SequencesDamagedError(self._path, at)
        begin = start - at - _SUM
        path = data[begin : begin + name].decode(**_PATHS)
        fingerprint = None if heading == _GONE else (inode, changed, size)
        document = Document(path, mtime_ns, data[begin + name :], heading)
        return Found(at, path, fingerprint), document

    def _remap(self) -> None:
        if self._map is not None:
            self._map.close()
            self._map = None
        if os.fstat(self._file).st_size < self._mapped:
            raise SequencesDamagedError(self._path, self._mapped)
        if self._mapped:
            self._map = mmap.mmap(self._file, self._mapped, prot=mmap.PROT_READ)


def bounded(fingerprint: Fingerprint) -> Fingerprint:
    """Return a fingerprint as a record can hold it."""
    inode, changed, size = fingerprint
    return inode & _UNSIGNED, _signed(changed), size & _UNSIGNED


def _signed(number: int) -> int:
    return max(-_SIGNED, min(number, _SIGNED))
