"""Reading files of a project on behalf of a model: listing, status, and text in pieces.

The model is not trusted. Names are opened as in ``directory.py`` (no link is followed), and more is
refused: a file with several names (hard links) may be one from elsewhere. Files that are refused
are not listed either.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Self

from msgspec import Struct

from memd.base import names
from memd.base.errors import Storage
from memd.base.yielding import yield_to_requests
from memd.store.directory import Directory, refused, unreadable

PIECE_BYTES = 256 * 1024
LINE_BYTES = 1024 * 1024  # the rest of a longer line is passed over
_CUT_BYTES = 4096  # also cut off a line that is too long: they may have half of a credential
_SEVERAL_NAMES = "the file has several names (hard links), and may be one from elsewhere"


class DirectoryEntry(Struct, frozen=True):
    """A folder or a file; ``folder`` says which. The size is in bytes, the mtime in ns."""

    name: str
    folder: bool
    size: int
    mtime_ns: int


class Confined:
    """A folder below which files may be read; a context manager that closes it.

    Raises NotFound, Refused and Storage.
    """

    def __init__(self, path: str) -> None:
        self._directory = Directory(path)
        status = os.fstat(self._directory.fd)
        # Users whose files may be read: root, this user, and the owner of the folder.
        self._owners = frozenset((0, os.geteuid(), status.st_uid))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the folder; the object is of no use afterwards."""
        self._directory.close()

    def inspect(self, name: str) -> DirectoryEntry | None:
        """Return the folder or file of a name ("" is the folder itself), ``None`` if there is none.

        Raises Refused and Storage.
        """
        with self._directory.folder(name) as folder:
            if folder is not None:
                return _entry(name, os.fstat(folder))
        fd = self._open(name)
        if fd is None:
            return None
        try:
            return _entry(name, os.fstat(fd))
        finally:
            os.close(fd)

    def entries(self, folder: str, limit: int) -> list[DirectoryEntry]:
        """Return the entries of a folder, sorted by name; at most ``limit`` are read.

        Links, FIFOs, devices, files of others and files with several names are left out.
        Raises Refused; an unreadable folder is an empty one.
        """
        allowed: list[DirectoryEntry] = []
        with suppress(OSError, Storage), self._directory.folder(folder) as fd:
            if fd is None:
                return allowed
            with os.scandir(fd) as entries:
                for entry in islice(entries, limit):
                    yield_to_requests()
                    with suppress(FileNotFoundError):  # deleted while we looked
                        status = entry.stat(follow_symlinks=False)
                        is_allowed = stat.S_ISDIR(status.st_mode) or self._is_allowed_file(status)
                        if is_allowed and names.is_text(entry.name):
                            allowed.append(_entry(entry.name, status))
        return sorted(allowed, key=lambda entry: entry.name)

    def pieces(self, name: str) -> Iterator[bytes] | None:
        """Return a file's text, piece by piece; ``None`` without a file.

        Pieces end at line ends. Raises Refused and Storage, the latter also
        while the pieces are read.
        """
        fd = self._open(name)
        return None if fd is None else _pieces(name, fd)

    def _open(self, name: str) -> int | None:
        """Return a descriptor of a file with one name, ``None`` if there is no file.

        Raises Refused and Storage.
        """
        opened = self._directory.open(name)
        if opened is not None and opened[1].st_nlink > 1:
            os.close(opened[0])
            raise refused(name, _SEVERAL_NAMES)
        return opened and opened[0]

    def _is_allowed_file(self, status: os.stat_result) -> bool:
        """Say whether a status is that of a regular file with one name and an accepted owner."""
        is_ours = status.st_uid in self._owners
        return is_ours and stat.S_ISREG(status.st_mode) and status.st_nlink == 1


def _entry(name: str, status: os.stat_result) -> DirectoryEntry:
    """Return the entry of a folder or file with this status."""
    folder = stat.S_ISDIR(status.st_mode)
    return DirectoryEntry(name, folder, 0 if folder else status.st_size, status.st_mtime_ns)


def _pieces(name: str, fd: int) -> Iterator[bytes]:
    """Yield a file's text in pieces of whole lines, then close its descriptor.

    Of a line that is too long only the beginning is yielded. ``name`` is for the error.
    """
    pending = b""  # read, but not yet a whole line
    is_in_long_line = False  # whose rest is passed over
    try:
        while chunk := os.read(fd, PIECE_BYTES):
            if is_in_long_line:
                _, line_end, chunk = chunk.partition(b"\n")
                is_in_long_line = not line_end
            pending += chunk
            whole_lines, line_end, rest = pending.rpartition(b"\n")
            if line_end:
                yield whole_lines + line_end
                pending = rest
            elif len(pending) > LINE_BYTES:
                yield pending[: LINE_BYTES - _CUT_BYTES] + b"\n"
                pending, is_in_long_line = b"", True
        if pending:
            yield pending
    except OSError as error:
        raise unreadable(name, error) from error
    finally:
        os.close(fd)
