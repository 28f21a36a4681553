"""Asking the kernel whether some program has a file open for writing.

Linux grants a read lease on a file only while nobody has it open for writing. The lease is given
back at once: a program that opens the file in that instant waits for microseconds.
"""

import errno
import fcntl
import signal

_SET_SIGNAL: int | None = getattr(fcntl, "F_SETSIG", None)
_SET_LEASE: int | None = getattr(fcntl, "F_SETLEASE", None)
_IN_USE = (errno.EAGAIN, errno.EBUSY)


def open_for_writing(file: int) -> bool | None:
    """Say whether a program has a file open for writing; ``None`` where that cannot be known.

    ``file`` is a descriptor that was opened for reading only. It cannot be known where the system
    or the file system has no leases (macOS, NFS, FUSE), or the file belongs to another user.
    """
    if _SET_LEASE is None or _SET_SIGNAL is None:
        return None
    try:
        # Whoever breaks a lease has its holder signalled, by SIGIO unless another one is chosen.
        # SIGIO ends a process that does not expect it; SIGURG is ignored by default.
        fcntl.fcntl(file, _SET_SIGNAL, signal.SIGURG)
        fcntl.fcntl(file, _SET_LEASE, fcntl.F_RDLCK)
    except OSError as error:
        return True if error.errno in _IN_USE else None
    fcntl.fcntl(file, _SET_LEASE, fcntl.F_UNLCK)
    return False
