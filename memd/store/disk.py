"""The few system calls that change a memory directory, in one class.

A change is safe because of an *exchange*: the new file takes its place in one step, and the old
file comes out whole, to be compared with the one that the writer had read. Linux has ``renameat2``,
macOS ``renameatx_np``; both are reached through ctypes. Where the system or the file system has
neither, the nearest safe equivalent is used: the reader still sees the old body or the new one and
never none, and only a save in the microseconds between two calls can be missed.

Every name here is one component below an open folder descriptor that ``directory.py`` gave out, and
no call follows a link in it. Tests put a twin in the place of ``Disk`` whose n-th call fails.
"""

import ctypes
import errno
import fcntl
import os
import platform
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from msgspec import Struct

from memd.base import limits
from memd.base.names import is_temporary
from memd.base.text import sha256

NOREPLACE = "noreplace"
EXCHANGE = "exchange"
FILE_MODE = 0o600
NOT_A_MEMORY = ""  # the hash of anything but a readable regular file of a memory's size

# The system does not know the call, or this file system does not know the flag.
_ERRORS_OF_NO_SUPPORT = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP)
_LINUX_FLAGS = {NOREPLACE: 1, EXCHANGE: 2}  # linux/fs.h
_MACOS_FLAGS = {NOREPLACE: 4, EXCHANGE: 2}  # sys/stdio.h: RENAME_EXCL, RENAME_SWAP
_LINUX_NUMBERS = {"x86_64": 316, "aarch64": 276}  # for a C library without renameat2
_BYTES_AFTER_END = 4096  # requested once a file was read, in case it has grown meanwhile
_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)  # of macOS

# Folder, source, target, NOREPLACE or EXCHANGE; false if that is not possible here.
Renamer = Callable[[int, str, str, str], bool]


class Content(Struct, frozen=True):
    """A file: its SHA-256, bytes, mtime in nanoseconds and permissions.

    For anything but a file ``hash`` is NOT_A_MEMORY and ``content`` empty. ``emptied`` says that
    there are no bytes in the file now, because a program writes it anew.
    """

    hash: str
    content: bytes
    mtime_ns: int
    mode: int
    emptied: bool = False


def hash_of(content: Content | None) -> str | None:
    """Return the hash of a file's content, ``None`` if there is no file."""
    return None if content is None else content.hash


def find_renamer(system: str, machine: str, library: Any) -> Renamer | None:
    """Return the call that renames with flags (exchange, no replacing), ``None`` without one.

    ``system`` and ``machine`` are as Python names them, ``library`` is the C library.
    """
    if system == "darwin":
        return _renamer(getattr(library, "renameatx_np", None), _MACOS_FLAGS)
    if not system.startswith("linux"):
        return None
    native = getattr(library, "renameat2", None)
    number = _LINUX_NUMBERS.get(machine)
    if native is None and number is not None:
        call = library.syscall

        def native(*arguments: Any) -> int:
            return int(call(ctypes.c_long(number), *arguments))

    return _renamer(native, _LINUX_FLAGS)


def _renamer(native: Any, flags: dict[str, int]) -> Renamer | None:
    """Return a ``Renamer`` that calls a C function with its flags, ``None`` for no function."""
    if native is None:
        return None

    def rename(folder: int, source: str, target: str, how: str) -> bool:
        """Rename a file in a folder in one call; return false if that is not possible here.

        ``how`` is NOREPLACE or EXCHANGE. Raises OSError.
        """
        raw_source, raw_target = os.fsencode(source), os.fsencode(target)
        if native(folder, raw_source, folder, raw_target, ctypes.c_uint(flags[how])) == 0:
            return True
        code = ctypes.get_errno()
        if code not in _ERRORS_OF_NO_SUPPORT:
            raise OSError(code, os.strerror(code), target)
        return False

    return rename


def _full_sync(file: int) -> None:
    """Flush a file to the disk, on macOS."""
    fcntl.fcntl(file, _FULL_SYNC or 0)


class Disk:
    """The real system calls. All raise OSError."""

    set_mode = staticmethod(os.fchmod)  # of a file, whatever the umask is
    write = staticmethod(os.write)  # some of the bytes; returns how many
    close = staticmethod(os.close)
    # macOS needs a call of its own to flush a file to the disk.
    fsync = staticmethod(os.fsync if _FULL_SYNC is None else _full_sync)

    def __init__(self, renamer: Renamer | None = None) -> None:
        self._renamer = renamer  # ``None`` where the system cannot exchange files

    def create(self, folder: int, name: str) -> int:
        """Make a file that was not there, mode 0600 at most, and return its descriptor."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(name, flags, FILE_MODE, dir_fd=folder)

    def set_mtime(self, file: int, mtime_ns: int) -> None:
        """Set a file's mtime, in ns."""
        os.utime(file, ns=(mtime_ns, mtime_ns))

    def sync_folder(self, folder: int) -> None:
        """Flush a folder's entries to the disk, each time on a descriptor of its own.

        A descriptor on which this failed once would report success the next time (ATC 2020).
        """
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        file = os.open(".", flags, dir_fd=folder)
        try:
            self.fsync(file)
        finally:
            os.close(file)

    def exchange(self, folder: int, temp: str, live: str) -> None:
        """Let two files change places; both must be there."""
        if self._renamer and self._renamer(folder, temp, live, EXCHANGE):
            return
        # A second name keeps the old file, whose place the rename gives to the new one.
        spare = self.spare(temp)
        _link(folder, live, spare)
        try:
            os.rename(temp, live, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError:
            os.unlink(spare, dir_fd=folder)  # the live file is still under its own name
            raise
        os.rename(spare, temp, src_dir_fd=folder, dst_dir_fd=folder)

    def spare(self, temp: str) -> str:
        """Return the second name that a file has while an exchange is made of two calls."""
        return f"{temp.removesuffix('.tmp')}-old.tmp"

    def move(self, folder: int, source: str, target: str) -> None:
        """Rename a file unless the target is there already (FileExistsError)."""
        if not (self._renamer and self._renamer(folder, source, target, NOREPLACE)):
            os.link(source, target, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
            os.unlink(source, dir_fd=folder)

    def move_folder(self, folder: int, source: str, target: str) -> None:
        """Rename a folder unless the target is there already (FileExistsError)."""
        if not (self._renamer and self._renamer(folder, source, target, NOREPLACE)):
            # An empty folder takes the name, which the rename then replaces; nothing else could.
            os.mkdir(target, 0o700, dir_fd=folder)
            os.rename(source, target, src_dir_fd=folder, dst_dir_fd=folder)

    def unlink(self, folder: int, name: str) -> None:
        """Remove a file if it exists."""
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)

    def temporaries(self, folder: int) -> list[str]:
        """Return the names of memd's temporary files in a folder, sorted."""
        return sorted(name for name in os.listdir(folder) if is_temporary(name))

    def is_same(self, folder: int, one: str, other: str) -> bool:
        """Say whether two names are of one file."""
        with suppress(FileNotFoundError):
            first, second = (
                os.stat(name, dir_fd=folder, follow_symlinks=False) for name in (one, other)
            )
            return os.path.samestat(first, second)
        return False

    def read(self, folder: int, name: str) -> Content | None:
        """Return the content of a name, or ``None`` if there is no file."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            file = os.open(name, flags, dir_fd=folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EACCES, errno.ENXIO, errno.EISDIR):
                return Content(NOT_A_MEMORY, b"", 0, 0)
            raise
        try:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode) or status.st_size > limits.READ_BYTES:
                return Content(NOT_A_MEMORY, b"", 0, 0)
            content, requested = b"", status.st_size + 1  # one byte more shows that it has grown
            while chunk := os.read(file, requested):
                content += chunk
                if len(chunk) < requested and len(content) >= status.st_size:
                    break
                requested = _BYTES_AFTER_END
        finally:
            os.close(file)
        return Content(sha256(content), content, status.st_mtime_ns, stat.S_IMODE(status.st_mode))


def _link(folder: int, name: str, spare: str) -> None:
    """Give a file a second name; it may have it already, from before a crash."""
    try:
        os.link(name, spare, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        # A crash may have left exactly this link; anything else under the name is not ours.
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        spare_status = os.stat(spare, dir_fd=folder, follow_symlinks=False)
        if not os.path.samestat(status, spare_status):
            raise


def real_disk() -> Disk:
    """Return the disk with the best calls that this system offers."""
    library = ctypes.CDLL(None, use_errno=True)
    return Disk(find_renamer(sys.platform, platform.machine(), library))


def write_new(
    disk: Disk,
    folder: int,
    name: str,
    content: bytes,
    *,
    mode: int = FILE_MODE,
    mtime_ns: int | None = None,
) -> os.stat_result:
    """Create a file with this content, flush it to the disk and return its status. Raises OSError.

    The file must not exist. If an error leaves only a part of it, the caller removes that.
    """
    file = disk.create(folder, name)
    try:
        disk.set_mode(file, mode)
        rest = memoryview(content)
        while rest:
            rest = rest[disk.write(file, rest) :]
        if mtime_ns is not None:
            disk.set_mtime(file, mtime_ns)
        disk.fsync(file)
        return os.fstat(file)
    finally:
        disk.close(file)
