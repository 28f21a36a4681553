"""Direct calls of the kernel: opening names beneath a directory, reading, who has a file open.

A name is opened beneath an open directory, following no link: one descriptor for each component,
with ``O_NOFOLLOW``, so no race with a link is won. The names are checked by ``directory.py``:
relative, plain components, no NUL.
"""

import errno
import fcntl
import os
import signal
import stat
from collections.abc import Iterator

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_SET_SIGNAL: int | None = getattr(fcntl, "F_SETSIG", None)
_SET_LEASE: int | None = getattr(fcntl, "F_SETLEASE", None)
_ERRORS_OF_OPEN_FILE = (errno.EAGAIN, errno.EBUSY)  # for a lease on a file that is being written
_BYTES_AFTER_END = 4096  # requested once a file was read, in case it has grown meanwhile


def open_beneath(root: int, name: str, flags: int) -> int:
    """Return a descriptor of the file or folder ``name`` below the folder ``root``.

    Raises OSError: ELOOP for a link. The folder ``root`` stays open, those on the way are closed.
    """
    *folders, last = name.split("/")
    folder = root
    try:
        for part in folders:
            next_folder = _open_part(folder, part, FOLDER)
            if folder != root:
                os.close(folder)
            folder = next_folder
        return _open_part(folder, last, flags)
    finally:
        if folder != root:
            os.close(folder)


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


def _open_part(folder: int, part: str, flags: int) -> int:
    """Open one component of a name in a folder, following no link. Raises OSError."""
    try:
        return os.open(part, flags | os.O_NOFOLLOW, dir_fd=folder)
    except NotADirectoryError as error:
        # A link opened as a folder gives the same error as a file; it is reported as a link.
        if stat.S_ISLNK(os.stat(part, dir_fd=folder, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from error
        raise
