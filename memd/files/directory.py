"""The only file that opens anything below a memory directory.

Rules of this file
- A name is never resolved first and opened afterwards: that loses symlink races. Descriptors are
  walked beneath an open directory with ``O_NOFOLLOW`` at each step (``kernel.py``).
- After opening, ``fstat`` must show a regular file of ours, within a size. ``O_NONBLOCK`` keeps a
  FIFO from hanging the daemon.
- The memory directory itself may be reached through links; people keep it in a dotfiles checkout.
- Hard links are read (backups make them); the writer replaces instead of writing through.
- Every failure leaves as an error of this project; a name never raises a ``ValueError``.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Self

from memd.base import names
from memd.base.errors import MemdError
from memd.files import kernel
from memd.files.errors import DirectoryMissingError as DirectoryMissingError
from memd.files.errors import DirectoryUnusableError as DirectoryUnusableError
from memd.files.errors import FileTooLargeError as FileTooLargeError
from memd.files.errors import FileUnreadableError as FileUnreadableError
from memd.files.errors import PathRefusedError as PathRefusedError
from memd.files.errors import UnwrittenFileError as UnwrittenFileError
from memd.files.errors import cause_of as cause_of
from memd.files.kernel import FOLDER, open_beneath

WALK_DEPTH = 16  # folders below a memory directory; memd's own names have three at most
_CHUNK_BYTES = 64 * 1024
_FILE_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_ERRORS_OF_ABSENCE = (errno.ENOENT, errno.ENOTDIR)

# Why something is refused, in words for the sentence of its error.
_IS_OF_OTHER_USER = "it belongs to another user"
_IS_NOT_PLAIN = "it is not a relative path of plain parts"
_IS_NO_NAME = "it has a character that no name can have"
_IS_LINK = "it is a link"
_IS_NO_FILE = "it is no regular file"
_HAS_LINK = "a part of it is a link"
_IS_TOO_LONG = "it is too long"
_IS_NOT_ABSOLUTE = "a memory directory's path is absolute"
_IS_NO_PATH = "it has a character that no path can have"
_HAS_NO_FOLDER = "a part of it is no folder"


class Directory:
    """An open memory directory; a context manager that closes it.

    With ``create`` the missing part of the path is made, mode 0700. Raises DirectoryMissingError,
    DirectoryUnusableError and PathRefusedError (a path that is not absolute or has a NUL).
    """

    def __init__(self, path: str, *, create: bool = False) -> None:
        self.path = path
        if not path.startswith("/"):
            raise PathRefusedError(path, _IS_NOT_ABSOLUTE)
        try:
            if create:
                _make_directory(path)
            self.fd = os.open(path, FOLDER)
        except FileNotFoundError as error:
            raise DirectoryMissingError(path) from error
        except ValueError as error:  # a NUL, or a character that no file name can have
            raise PathRefusedError(path, _IS_NO_PATH) from error
        except OSError as error:
            raise DirectoryUnusableError(path, cause_of(error)) from error
        # Root's files and those of whoever owns the directory (a mounted volume) count as ours.
        self._owners = frozenset((0, os.geteuid(), os.fstat(self.fd).st_uid))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the directory; the object is of no use afterwards."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def walk(
        self, problems: list[str] | None = None, enter: Callable[[str], None] | None = None
    ) -> Iterator[tuple[str, "os.DirEntry[str]", int]]:
        """Yield path, entry and open folder of each memory: regular files of ``in_catalogue``.

        The walk follows no link. It adds a sentence to ``problems`` for each thing that it cannot
        look into, and goes on. It calls ``enter`` with each folder, "" first, before it lists it.
        """
        sentences: list[str] = [] if problems is None else problems
        folders = [""]  # still to be listed, by path
        while folders:
            folder = folders.pop()
            if folder.count("/") >= WALK_DEPTH:
                sentences.append(f"{names.printable(folder)} lies too deep; it is not looked into")
                continue
            try:
                with self.folder(folder) as fd:
                    if fd is None:
                        continue
                    if enter is not None:
                        enter(folder)
                    for path, entry in self._list_memories(fd, folder, folders, sentences):
                        yield path, entry, fd
            except (PathRefusedError, FileUnreadableError) as error:
                sentences.append(error.sentence)

    @contextmanager
    def folder(self, name: str) -> Iterator[int | None]:
        """Hold a folder open ("" is the directory itself); ``None`` if there is none.

        Raises PathRefusedError and FileUnreadableError.
        """
        if name:
            _checked_parts(name)
        fd = self._open(name, FOLDER)
        try:
            yield fd
        finally:
            if fd is not None:
                os.close(fd)

    def peek(self, folder: int, name: str, limit: int) -> tuple[bytes, os.stat_result] | None:
        """Return the head of a file in an open folder of this directory, and its status.

        ``None`` for anything but a readable regular file of ours: ``read_head`` raises the reason.
        """
        fd = -1
        try:
            fd = os.open(name, _FILE_FLAGS | os.O_NOFOLLOW, dir_fd=folder)
            status = os.fstat(fd)
            is_allowed = stat.S_ISREG(status.st_mode) and status.st_uid in self._owners
            return (os.read(fd, limit), status) if is_allowed else None
        except OSError:
            return None
        finally:
            if fd >= 0:
                os.close(fd)

    def holds(self, name: str) -> bool:
        """Say whether there is a regular file of this name, whoever owns it."""
        try:
            with self.parent(name) as (fd, file_name):
                status = os.stat(file_name, dir_fd=fd, follow_symlinks=False)
        except (MemdError, OSError):
            return False
        return stat.S_ISREG(status.st_mode)

    def stat(self, name: str) -> os.stat_result | None:
        """Return the status of a file, ``None`` when there is none.

        Raises PathRefusedError (also for what is no regular file) and FileUnreadableError.
        """
        try:
            with self.parent(name) as (fd, file_name):
                status = os.stat(file_name, dir_fd=fd, follow_symlinks=False)
        except DirectoryMissingError:
            return None
        except OSError as error:
            _refuse_unless_absent(name, error)
            return None
        _check(name, status, self._owners)
        return status

    def read(self, name: str, limit: int) -> tuple[bytes, os.stat_result] | None:
        """Return a file's bytes and its status from before reading, ``None`` when there is none.

        Raises PathRefusedError, FileTooLargeError above ``limit`` bytes and FileUnreadableError.
        """
        return self._read(name, limit, whole=True)

    def read_head(self, name: str, limit: int) -> tuple[bytes, os.stat_result] | None:
        """Return the first ``limit`` bytes of a file of any size; otherwise as ``read``."""
        return self._read(name, limit, whole=False)

    def open(self, name: str) -> int | None:
        """Return a descriptor to read a file with, ``None`` when there is none; close it.

        Raises PathRefusedError and FileUnreadableError.
        """
        _checked_parts(name)
        fd = self._open(name, _FILE_FLAGS)
        if fd is not None:
            try:
                _check(name, os.fstat(fd), self._owners)
            except MemdError:
                os.close(fd)
                raise
        return fd

    def open_for_writing(self, name: str) -> bool | None:
        """Say whether a program has a file open for writing, ``None`` if that cannot be known.

        The answer is false for a missing or refused file.
        """
        try:
            with self._opened(name) as opened:
                return kernel.open_for_writing(opened[0]) if opened else False
        except FileUnreadableError:
            return None
        except MemdError:
            return False

    def digest(self, name: str) -> tuple[str, os.stat_result] | None:
        """Return the SHA-256 in hex of a file of any size; otherwise as ``read_head``."""
        with self._opened(name) as opened:
            if opened is None:
                return None
            fd, status = opened
            hasher = hashlib.sha256()
            for chunk in kernel.chunks(fd, status.st_size, _CHUNK_BYTES, _CHUNK_BYTES):
                hasher.update(chunk)
        return hasher.hexdigest(), status

    @contextmanager
    def parent(self, name: str, *, create: bool = False) -> Iterator[tuple[int, str]]:
        """Hold the folder of a name open: its descriptor and the last component.

        With ``create`` missing folders are made, mode 0700. Raises PathRefusedError,
        DirectoryMissingError when a folder is missing, and FileUnreadableError.
        """
        parts = _checked_parts(name)
        if len(parts) == 1:
            yield self.fd, parts[0]
            return
        folder = "/".join(parts[:-1])
        fd = self._make_folders(parts[:-1]) if create else self._open(folder, FOLDER)
        if fd is None:
            missing = f"{self.path}/{folder}"
            raise DirectoryMissingError(missing)
        try:
            yield fd, parts[-1]
        finally:
            os.close(fd)

    def _read(self, name: str, limit: int, *, whole: bool) -> tuple[bytes, os.stat_result] | None:
        """Return a file's bytes and its status, ``None`` if there is no file.

        A file of more than ``limit`` bytes is cut, or refused if the ``whole`` file is wanted.
        """
        with self._opened(name) as opened:
            if opened is None:
                return None
            fd, status = opened
            # One byte more than the limit shows that a file has grown beyond it.
            content = kernel.read_bytes(fd, limit + 1 if whole else limit, status.st_size)
        size = max(status.st_size, len(content))  # it may have grown meanwhile
        if whole and size > limit:
            raise FileTooLargeError(name, size, limit)
        return content, status

    @contextmanager
    def _opened(self, name: str) -> Iterator[tuple[int, os.stat_result] | None]:
        """Hold a file open for reading, with its status; ``None`` if there is none."""
        fd = self.open(name)
        if fd is None:
            yield None
            return
        try:
            yield fd, os.fstat(fd)
        except OSError as error:
            raise FileUnreadableError(name, cause_of(error)) from error
        finally:
            os.close(fd)

    def _open(self, name: str, flags: int) -> int | None:
        """Return a descriptor of a checked name, ``None`` if there is none; "" is the directory.

        Raises PathRefusedError and FileUnreadableError.
        """
        try:
            if not name:
                return os.open(".", flags, dir_fd=self.fd)
            return open_beneath(self.fd, name, flags)
        except OSError as error:
            _refuse_unless_absent(name, error)
            return None

    def _make_folders(self, parts: list[str]) -> int:
        """Make missing folders, each in the one before; return a descriptor of the last.

        Raises PathRefusedError if one is a link or no folder, and FileUnreadableError.
        """
        folder = os.dup(self.fd)
        try:
            for part in parts:
                try:
                    os.mkdir(part, 0o700, dir_fd=folder)
                    os.fsync(folder)  # a file in a folder that a power cut takes away is lost
                except FileExistsError:
                    pass
                next_folder = os.open(part, FOLDER | os.O_NOFOLLOW, dir_fd=folder)
                os.close(folder)
                folder = next_folder
        except OSError as error:
            os.close(folder)
            name = "/".join(parts)
            if error.errno in (errno.ENOTDIR, errno.ELOOP):
                raise PathRefusedError(name, _HAS_NO_FOLDER) from error
            raise FileUnreadableError(name, cause_of(error)) from error
        return folder

    def _list_memories(
        self, fd: int, folder: str, folders: list[str], problems: list[str]
    ) -> Iterator[tuple[str, "os.DirEntry[str]"]]:
        """Yield path and entry of each memory in an open folder.

        The paths of its folders are added to ``folders``, sentences about errors to ``problems``.
        """
        try:
            with os.scandir(fd) as entries:
                for entry in entries:
                    path = f"{folder}/{entry.name}" if folder else entry.name
                    if entry.is_dir(follow_symlinks=False):
                        if names.is_folder_of_memories(path):
                            folders.append(path)
                    elif names.in_catalogue(path):
                        if entry.is_file(follow_symlinks=False):
                            yield path, entry
                    elif path.endswith(".md") and not names.is_text(path):
                        problems.append(f"{names.printable(path)} has a name that is not UTF-8")
        except OSError as error:
            problems.append(FileUnreadableError(folder or self.path, cause_of(error)).sentence)


def _checked_parts(name: str) -> list[str]:
    """Return the components of a name; raises PathRefusedError if it may lead out."""
    parts = name.split("/")
    if "" in parts or "." in parts or ".." in parts:
        raise PathRefusedError(name, _IS_NOT_PLAIN)
    if "\0" in name or not names.is_text(name):
        raise PathRefusedError(name, _IS_NO_NAME)
    return parts


def _check(name: str, status: os.stat_result, owners: frozenset[int]) -> None:
    """Refuse a link, another user's file, and anything but a regular file."""
    if stat.S_ISLNK(status.st_mode):
        raise PathRefusedError(name, _IS_LINK)
    if not stat.S_ISREG(status.st_mode):
        raise PathRefusedError(name, _IS_NO_FILE)
    if status.st_uid not in owners:
        raise PathRefusedError(name, _IS_OF_OTHER_USER)


def _refuse_unless_absent(name: str, error: OSError) -> None:
    """Return if an error of opening means that there is no such file.

    For any other error raise PathRefusedError or FileUnreadableError.
    """
    if error.errno in _ERRORS_OF_ABSENCE:
        return
    if error.errno in (errno.ELOOP, errno.EXDEV, errno.EMLINK):  # EMLINK: a BSD's O_NOFOLLOW
        raise PathRefusedError(name, _HAS_LINK) from error
    if error.errno == errno.ENAMETOOLONG:
        raise PathRefusedError(name, _IS_TOO_LONG) from error
    if error.errno == errno.ENXIO:
        raise PathRefusedError(name, _IS_NO_FILE) from error
    raise FileUnreadableError(name, cause_of(error)) from error


def _make_directory(path: str) -> None:
    """Make a directory and all that is missing above it, mode 0700, and flush their names."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        target = os.path.realpath(path) if os.path.islink(path) else path
        if not os.path.lexists(target):  # a link to a directory that is gone
            _make_directory(target)
        return
    except FileNotFoundError:
        _make_directory(os.path.dirname(path.rstrip("/")))
        with suppress(FileExistsError):  # another thread has just made it
            os.mkdir(path, 0o700)
    fd = os.open(os.path.dirname(path.rstrip("/")) or "/", FOLDER)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
