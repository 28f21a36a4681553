"""Let one daemon per user serve, by an exclusive lock on a file.

Rules of this file
- The lock is ``flock`` on a file that is never unlinked, taken before the store or the socket is
  touched and held until the process ends, however it ends. No pid is ever trusted to decide.
- The file's body names the holder, as JSON, only for the error of a second process. The holder
  empties it at its end; after a crash it may be old, so it counts only while that process lives.
  The second process waits a moment for a holder that has not written it yet.
- A lock file that was replaced while we waited is not the lock: it is opened again.
"""

import fcntl
import json
import os
import stat
import time
from contextlib import suppress
from typing import Self

from memd import __version__
from memd.base.errors import MemdError, Storage
from memd.base.places import Places
from memd.base.text import read_object

_BODY_BYTES = 4096
_PAUSE_SECONDS = 0.01  # between two reads of the holder's name
_NOT_A_FILE = "it is no regular file"
_OPEN_TO_OTHERS = "the state directory belongs to someone else or others may write in it"


def _instance_lock(path: str, cause: str) -> Storage:
    return Storage(
        f"the lock file {path} cannot be used: {cause}",
        exit_status=78,
        hint="mend the state directory, or choose another with MEMD_STATE_DIR",
        path=path,
        cause=cause,
    )


class AlreadyRunningError(MemdError):
    """Another memd serves; not a failure, so the exit status is 0.

    ``pid`` is 0 and the texts are empty if the lock file does not say.
    """

    code = 1004
    kind = "already_running"
    hint = "use the one that runs, or stop it first: memctl shutdown"
    exit_status = 0

    def __init__(self, pid: int = 0, version: str = "", socket: str = "") -> None:
        who = f"memd {version} serves already: process {pid} at {socket}"
        words = who if pid else "another memd serves already"
        super().__init__(words, pid=pid, version=version, socket=socket)
        self.pid = pid


class Instance:
    """The lock that lets one process serve: taken on entering, released on leaving.

    Entering makes the state directory (0700) and the lock file (0600). It raises
    AlreadyRunningError, after waiting at most ``seconds`` for the holder's name in the file, and
    Storage if the lock file cannot be used.
    """

    def __init__(self, places: Places, version: str = __version__, *, seconds: float = 1.0) -> None:
        self._places = places
        self._version = version
        self._seconds = seconds
        self._descriptor = -1  # of the locked file; -1 while the lock is not held

    def __enter__(self) -> Self:
        """Take the lock and write this process into its file."""
        path = self._places.lock
        try:
            _make_state_dir(self._places)
            self._descriptor = _take_lock(path, self._seconds)
            body = {"pid": os.getpid(), "version": self._version, "socket": self._places.socket}
            with suppress(OSError):  # on a full disk memd still serves: only the lock counts
                os.ftruncate(self._descriptor, 0)
                os.pwrite(self._descriptor, json.dumps(body).encode(), 0)
        except OSError as error:
            self._close()
            raise _instance_lock(path, error.strerror or type(error).__name__) from error
        return self

    def __exit__(self, *_: object) -> None:
        """Empty the lock file and release the lock."""
        with suppress(OSError):
            os.ftruncate(self._descriptor, 0)
        self._close()

    def holds(self) -> bool:
        """Return whether the file at the lock's path is still the one that this process locked."""
        return self._descriptor >= 0 and _same_file(self._descriptor, self._places.lock)

    def _close(self) -> None:
        """Close the descriptor, which releases the lock."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _take_lock(path: str, seconds: float) -> int:
    """Return the locked descriptor. Raises AlreadyRunningError, Storage, OSError.

    ``seconds`` bounds the wait for the name of another holder.
    """
    while True:
        descriptor = _open(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            try:
                raise _read_holder(descriptor, time.monotonic() + seconds) from error
            finally:
                os.close(descriptor)
        if _same_file(descriptor, path):
            return descriptor
        os.close(descriptor)  # pragma: no cover - replaced between open and lock


def _make_state_dir(places: Places) -> None:
    """Make the state directory. Raises Storage if others may write in it."""
    os.makedirs(places.state_dir, mode=0o700, exist_ok=True)
    status = os.stat(places.state_dir)
    if status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise _instance_lock(places.lock, _OPEN_TO_OTHERS)


def _open(path: str) -> int:
    """Return a descriptor of the lock file, made if needed. Raises Storage, OSError."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(path, flags, 0o600)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _instance_lock(path, _NOT_A_FILE)
    return descriptor


def _same_file(descriptor: int, path: str) -> bool:
    """Return whether a descriptor's file is the one at a path."""
    try:
        status = os.stat(path, follow_symlinks=False)
    except OSError:
        return False
    return os.path.samestat(status, os.fstat(descriptor))


def _read_holder(descriptor: int, deadline: float) -> AlreadyRunningError:
    """Return the error that names the holder of the lock, or names nobody after the deadline.

    It waits, since a holder writes who it is only once it has the lock.
    """
    while True:
        holder = _parse_holder(os.pread(descriptor, _BODY_BYTES, 0))
        if holder.pid and _lives(holder.pid):
            return holder
        if time.monotonic() >= deadline:
            return AlreadyRunningError()
        time.sleep(_PAUSE_SECONDS)


def _parse_holder(body: bytes) -> AlreadyRunningError:
    """Return the error that names the holder of the lock, as the lock file describes it."""
    holder = read_object(body)
    pid, version, socket = (holder.get(name) for name in ("pid", "version", "socket"))
    if type(pid) is not int or not 0 < pid < 2**31 or version is None or socket is None:
        return AlreadyRunningError()
    return AlreadyRunningError(pid, str(version), str(socket))


def _lives(pid: int) -> bool:
    """Return whether a process with this id runs and belongs to this user."""
    try:
        os.kill(pid, 0)
    except OSError:  # there is none, or it is another user's
        return False
    return True
