"""Reading beneath a folder on behalf of a model: listing, status, and text in pieces.

``directory.py`` opens memories for the daemon; this opens whatever a person has in a project, for
a reader that is not trusted. Names are opened in the same way (``kernel.py``: no link is followed),
and more is refused: a file with several names may be one from elsewhere, and a FIFO, a device or a
socket is no file at all. What is refused is not listed either.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from typing import Self

from memd.core import names
from memd.core.yielding import yield_to_requests
from memd.files.directory import Directory, FileUnreadableError, PathRefusedError, cause_of
from memd.files.kernel import FOLDER, kernel_walks, open_beneath

PIECE_BYTES = 256 * 1024
LINE_BYTES = 1024 * 1024  # the rest of a longer line is passed over
_MARGIN = 4096  # what is cut off a line that is too long: the half of a credential may stand there
_SEVERAL_NAMES = "the file has several names (hard links), and may be one from elsewhere"
_NOT_PLAIN = "it is not a relative path of plain parts"


@dataclass(frozen=True, slots=True)
class DirectoryEntry:
    """What stands at a name: a folder or a file, its size in bytes and its mtime in ns."""

    name: str
    folder: bool
    size: int
    mtime_ns: int


class Confined:
    """A folder whose contents may be read; a context manager that closes it.

    ``openat2`` chooses how names are walked, as in ``Directory``. Raises DirectoryMissingError,
    DirectoryUnusableError and PathRefusedError.
    """

    def __init__(self, path: str, *, openat2: bool | None = None) -> None:
        self._kernel = kernel_walks() if openat2 is None else openat2
        self._directory = Directory(path, openat2=openat2)
        status = os.fstat(self._directory.fd)
        self._owners = frozenset((0, os.geteuid(), status.st_uid))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the folder; the object is of no use afterwards."""
        self._directory.close()

    def inspect(self, name: str) -> DirectoryEntry | None:
        """Return what stands at a name ("" is the folder itself), ``None`` for nothing.

        Raises PathRefusedError and FileUnreadableError.
        """
        with self._folder(name) as fd:
            if fd is not None:
                status = os.fstat(fd)
                return DirectoryEntry(name, folder=True, size=0, mtime_ns=status.st_mtime_ns)
        with self._file(name) as fd:
            return None if fd is None else _seen(name, os.fstat(fd))

    def entries(self, folder: str, limit: int) -> list[DirectoryEntry]:
        """Return what stands in a folder, by name; at most ``limit`` things are looked at.

        Links, FIFOs, devices, files of others and files with several names are left out.
        Raises PathRefusedError; an unreadable folder is an empty one.
        """
        result: list[DirectoryEntry] = []
        with self._folder(folder) as fd:
            if fd is None:
                return result
            with suppress(OSError), os.scandir(fd) as entries:
                for entry in islice(entries, limit):
                    yield_to_requests()
                    with suppress(FileNotFoundError):  # deleted while we looked
                        status = entry.stat(follow_symlinks=False)
                        plain = stat.S_ISDIR(status.st_mode) or self._plain_file(status)
                        if plain and names.is_text(entry.name):
                            result.append(_seen(entry.name, status))
        return sorted(result, key=lambda seen: seen.name)

    def pieces(self, name: str, start: int = 0) -> Iterator[bytes] | None:
        """Return a file's text from a byte on, ``None`` when there is none.

        Pieces end at line ends. Raises PathRefusedError and FileUnreadableError, the latter also
        while the pieces are read.
        """
        fd = self._open(name)
        return None if fd is None else _pieces(name, fd, start)

    @contextmanager
    def _file(self, name: str) -> Iterator[int | None]:
        fd = self._open(name)
        try:
            yield fd
        finally:
            if fd is not None:
                os.close(fd)

    def _open(self, name: str) -> int | None:
        fd = self._directory.open(name)
        if fd is not None and os.fstat(fd).st_nlink > 1:
            os.close(fd)
            raise PathRefusedError(name, _SEVERAL_NAMES)
        return fd

    @contextmanager
    def _folder(self, name: str) -> Iterator[int | None]:
        """Hold a folder open; ``None`` when there is none or it may not be looked into."""
        parts = name.split("/") if name else []
        if any(part in ("", ".", "..") for part in parts) or not names.is_text(name):
            raise PathRefusedError(name, _NOT_PLAIN)
        try:
            if name:
                fd = open_beneath(self._directory.fd, name, FOLDER, kernel=self._kernel)
            else:
                fd = os.open(".", FOLDER, dir_fd=self._directory.fd)
        except ValueError as error:  # a NUL
            raise PathRefusedError(name, _NOT_PLAIN) from error
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EXDEV):
                self._directory.stat(name)  # says what is wrong with it
            yield None
            return
        try:
            yield fd
        finally:
            os.close(fd)

    def _plain_file(self, status: os.stat_result) -> bool:
        ours = status.st_uid in self._owners
        return ours and stat.S_ISREG(status.st_mode) and status.st_nlink == 1


def _seen(name: str, status: os.stat_result) -> DirectoryEntry:
    folder = stat.S_ISDIR(status.st_mode)
    return DirectoryEntry(name, folder, 0 if folder else status.st_size, status.st_mtime_ns)


def _pieces(name: str, fd: int, start: int) -> Iterator[bytes]:
    """Yield what a descriptor holds in pieces of whole lines, and close it."""
    retained = b""
    skipping = False
    try:
        os.lseek(fd, start, os.SEEK_SET)
        while chunk := os.read(fd, PIECE_BYTES):
            if skipping:
                _, end, chunk = chunk.partition(b"\n")
                skipping = not end
            retained += chunk
            whole, end, rest = retained.rpartition(b"\n")
            if end:
                yield whole + end
                retained = rest
            elif len(retained) > LINE_BYTES:
                yield retained[: LINE_BYTES - _MARGIN] + b"\n"
                retained, skipping = b"", True
        if retained:
            yield retained
    except OSError as error:
        raise FileUnreadableError(name, cause_of(error)) from error
    finally:
        os.close(fd)
