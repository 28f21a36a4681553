"""Direct calls of the kernel: opening names beneath a directory, reading, who has a file open.

A name is opened beneath an open directory, following no link, in two ways with one behaviour.
The kernel's ``openat2`` walks in one call and loses no symlink race. Where there is none (macOS, a
Linux before 5.6, a sandbox that forbids it), the walk is made here, one descriptor per component
with ``O_NOFOLLOW``, which loses none either and costs a few microseconds more.

The names are checked by ``directory.py``: relative, plain components, no NUL.
"""

import ctypes
import errno
import fcntl
import functools
import os
import signal
import stat
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NR_OPENAT2 = 437  # one number on every architecture that Linux still adds calls to
_RESOLVE_NO_SYMLINKS = 0x04  # linux/openat2.h
_RESOLVE_BENEATH = 0x08
# openat2 fails with EAGAIN while a rename runs; after so many failures the walk is made here.
_OPENAT2_TRIES = 16
_SET_SIGNAL: int | None = getattr(fcntl, "F_SETSIG", None)
_SET_LEASE: int | None = getattr(fcntl, "F_SETLEASE", None)
_ERRORS_OF_OPEN_FILE = (errno.EAGAIN, errno.EBUSY)  # for a lease on a file that is being written
_BYTES_AFTER_END = 4096  # requested once a file was read, in case it has grown meanwhile
_ERRORS_OF_NO_DESCRIPTOR = (errno.EMFILE, errno.ENFILE)


def open_beneath(root: int, name: str, flags: int, *, kernel: bool) -> int:
    """Return a descriptor of the file or folder ``name`` below the folder ``root``.

    With ``kernel`` it is opened with openat2. Raises OSError: ELOOP or EXDEV for a link.
    """
    for _ in range(_OPENAT2_TRIES if kernel else 0):
        with suppress(BlockingIOError, InterruptedError):  # a rename or a signal: try again
            return _openat2(root, name, flags)
    return _walk_open(root, name.split("/"), flags)


@functools.cache
def kernel_walks(platform: str = sys.platform, number: int = _NR_OPENAT2) -> bool:
    """Say whether openat2 works here (Linux since 5.6, unless a sandbox forbids it).

    Raises OSError where no descriptor is free, which says nothing about the kernel.
    """
    if not platform.startswith("linux"):
        return False
    fd = os.open("/", FOLDER)
    try:
        os.close(_openat2(fd, ".", FOLDER, number))
    except OSError as error:
        if error.errno in _ERRORS_OF_NO_DESCRIPTOR:
            raise
        return False
    finally:
        os.close(fd)
    return True


def open_for_writing(file: int) -> bool | None:
    """Say whether a program has a file open for writing; ``None`` where that cannot be known.

    Linux grants a read lease on a file only while nobody has it open for writing. The lease is
    given back at once: a program that opens the file in that instant waits for microseconds.
    ``file`` is a descriptor that was opened for reading only. It cannot be known where the system
    or the file system has no leases (macOS, NFS, FUSE), or the file belongs to another user.
    """
    if _SET_LEASE is None or _SET_SIGNAL is None:
        return None
    try:
        # A program that breaks a lease has its holder signalled, by SIGIO unless another is chosen.
        # SIGIO ends a process that does not expect it; SIGURG is ignored by default.
        fcntl.fcntl(file, _SET_SIGNAL, signal.SIGURG)
        fcntl.fcntl(file, _SET_LEASE, fcntl.F_RDLCK)
    except OSError as error:
        return True if error.errno in _ERRORS_OF_OPEN_FILE else None
    fcntl.fcntl(file, _SET_LEASE, fcntl.F_UNLCK)
    return False


def read_bytes(fd: int, limit: int, size: int) -> bytes:
    """Return the first bytes of an open file, ``limit`` at most; ``size`` was its size."""
    # Python allocates the requested size and then shrinks it. Requesting much more than the file
    # has would leave holes in the heap, which small objects soon keep from being freed.
    return b"".join(chunks(fd, limit, size + 1, _BYTES_AFTER_END))


def chunks(fd: int, limit: int, first: int, others: int) -> Iterator[bytes]:
    """Yield the first ``limit`` bytes of an open file, fewer if it is shorter.

    ``first`` bytes are requested in the first call of the system, ``others`` in each other one.
    """
    requested, bytes_left = first, limit
    while bytes_left > 0:
        chunk = os.read(fd, min(bytes_left, requested))
        if not chunk:
            return
        yield chunk
        bytes_left -= len(chunk)
        requested = others


def _openat2(root: int, name: str, flags: int, number: int = _NR_OPENAT2) -> int:
    """Call openat2, following no link and staying beneath the folder. Raises OSError."""
    how = struct.pack("QQQ", flags, 0, _RESOLVE_BENEATH | _RESOLVE_NO_SYMLINKS)
    fd = int(_syscall()(number, root, os.fsencode(name), how, len(how)))
    if fd < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return fd


@functools.cache
def _syscall() -> "ctypes._NamedFuncPointer":
    """Return the C library's ``syscall`` with the argument types of openat2."""
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = number = ctypes.c_long
    call.argtypes = (number, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t)
    return call


def _walk_open(root: int, parts: list[str], flags: int) -> int:
    """Open a name one component at a time, following no link; return its descriptor.

    Raises OSError. The folder ``root`` stays open, those on the way are closed.
    """
    folder = root
    try:
        for part in parts[:-1]:
            next_folder = _open_part(folder, part, FOLDER)
            if folder != root:
                os.close(folder)
            folder = next_folder
        return _open_part(folder, parts[-1], flags)
    finally:
        if folder != root:
            os.close(folder)


def _open_part(folder: int, part: str, flags: int) -> int:
    """Open one component of a name in a folder, following no link. Raises OSError."""
    try:
        return os.open(part, flags | os.O_NOFOLLOW, dir_fd=folder)
    except NotADirectoryError as error:
        # A link opened as a folder gives the same error as a file; it is reported as a link.
        if stat.S_ISLNK(os.stat(part, dir_fd=folder, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from error
        raise
