"""The consolidation lock, shared with any program that follows the same protocol.

Rules of this file
- ``.consolidate-lock`` in the memory directory: the first line is the holder's PID, a second line
  may be a time stamp in ms, and the **mtime is when memories were last consolidated**.
- The lock is busy when the PID is alive and the mtime is less than an hour away. Alive means: the
  process exists, is no zombie, and began before the lock was written (else the PID was used
  again). Whatever is not a PID is a dead holder.
- Between memd processes: ``flock`` on ``.consolidate-lock.guard``, held as long as the dream
  lasts; it ends with the process. With other programs: the PID, read back after it was written.
- The file is replaced as a whole (a new file, its mtime set, renamed over the old one), so nobody
  ever reads an empty body of a living holder or an mtime that is not yet right.
- ``remember`` gets the earlier state before anything is changed. Success keeps the mtime of the
  dream's start; failure restores the earlier one, or removes the file if there was none before.
  Both clear the body, since the daemon's PID stays alive after the dream. When they return, the
  file and its folder are on the disk.
- Neither name is followed as a link or waited for: a link, a directory, a pipe or a file we may
  not read is refused as unusable. Only files of the three names below are replaced or removed; of
  a lock file with other names (hard links) only ours is removed.
- A PID does not name its host. If machines or containers share the directory, a holder elsewhere
  looks dead here: between memd processes the guard decides, if the file system passes ``flock``
  from host to host (NFS does); another program is noticed by the read-back and by ``ours`` before
  the commit, in the worst case only after the dream's work.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum

from msgspec import Struct

from memd.base import limits
from memd.base.errors import MemdError

LOCK = ".consolidate-lock"
GUARD = ".consolidate-lock.guard"
_NEW = ".consolidate-lock.new"  # a new lock file, before it is renamed
_BODY_BYTES = 64  # a PID and a time stamp have 25
_PID_DIGITS = 10
_PID_MAX = 2**31 - 1  # of the system's type pid_t
_TOLERANCE_SECONDS = 2.0  # some file systems keep whole seconds
# psutil counts a start in clock ticks since boot and the clock may have been set since.
_START_SECONDS = 2.0
_NS = 1_000_000_000
_GUARD_TRIES = 3  # somebody deletes the guard file between our open and our flock

Alive = Callable[[int, float], bool]  # (pid, when it wrote the lock): is it still that process

# Why something is refused, in words for the sentence of its error.
_MISSING = "there is no such directory"
_NO_FILE = "it is no regular file"
_NO_TIME = "the time that it had cannot be set"


class LockUnusableError(MemdError):
    """The file at the lock's path cannot serve as a lock."""

    code = 1012
    kind = "lock_unusable"
    hint = "look at what lies there and move it away; then dreams work again"

    def __init__(self, directory: str, cause: str, name: str = LOCK) -> None:
        path = f"{directory}/{name}"
        super().__init__(
            f"the consolidation lock {path} cannot be used: {cause}", path=path, cause=cause
        )


class Restored(Enum):
    """The result of ``restore``; ``WAITS`` means that nothing could be done yet."""

    PUT_BACK = "put back"
    NOT_OURS = "not ours"
    WAITS = "waits"


class _LockFile(Struct, frozen=True):
    """The content of the lock file; ``pid`` is 0 where it names no holder."""

    pid: int
    mtime_ns: int

    def was_taken(self, pid: int, taken_ns: int) -> bool:
        """Return whether it names this process and the time at which the process took it."""
        is_same_time = abs(self.mtime_ns - taken_ns) <= int(_TOLERANCE_SECONDS * _NS)
        return self.pid == pid and is_same_time


@dataclass(frozen=True, slots=True)
class ConsolidationLock:
    """A lock that is ours. End it with ``commit`` or ``reset``, exactly once."""

    directory: str
    pid: int
    taken_ns: int  # when the dream began
    prior_ns: int | None  # the lock file's mtime before, ``None`` if there was no file
    _folder: int  # a descriptor of the memory directory
    _guard: int  # a descriptor that holds the guard's flock

    def ours(self) -> bool:
        """Return whether the lock is still ours; another program may have taken it over.

        Raises LockUnusableError if that cannot be found out.
        """
        lock_file = _read(self._folder, self.directory)
        if lock_file is None or lock_file.pid != self.pid:
            return False
        # If the guard file was deleted, another dream of this process may have taken the lock.
        with _as_lock_errors(self.directory, GUARD):
            if _is_current_guard(self._folder, self._guard):
                return True
            return lock_file.was_taken(self.pid, self.taken_ns)

    def commit(self) -> None:
        """End a dream that succeeded: its start is now the time of the last consolidation.

        Raises LockUnusableError; the lock is released all the same.
        """
        with self._released():
            if self.ours():
                _replace(self._folder, self.directory, b"", self.taken_ns)

    def reset(self) -> None:
        """End a dream that failed: the file gets its earlier mtime, without a holder.

        Raises LockUnusableError; the lock is released all the same.
        """
        with self._released():
            if self.ours():
                _put_back(self._folder, self.directory, self.prior_ns)

    @contextmanager
    def _released(self) -> Iterator[None]:
        """Close the lock's descriptors, which releases the guard, after the block."""
        try:
            yield
        finally:
            os.close(self._guard)
            os.close(self._folder)


def alive(pid: int, since: float) -> bool:
    """Return whether this process runs and began before ``since`` (seconds since 1970)."""
    import psutil  # noqa: PLC0415 - 2.6 MB and 10 ms that only a dream needs

    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return bool(process.create_time() <= since + _START_SECONDS)
    except psutil.Error as error:
        return isinstance(error, psutil.AccessDenied)  # it exists, but may not be inspected


def consolidated_at(directory: str) -> float | None:
    """Return when memories were last consolidated, ``None`` for never. Costs one ``stat``."""
    try:
        return os.stat(f"{directory}/{LOCK}", follow_symlinks=False).st_mtime
    except OSError:
        return None


def busy(directory: str, now: float, is_alive: Alive = alive) -> bool:
    """Return whether a living process holds the lock file. Raises LockUnusableError."""
    folder = _open_folder(directory)
    if folder < 0:
        return False
    try:
        return _is_busy(_read(folder, directory), now, is_alive)
    finally:
        os.close(folder)


def take(
    directory: str,
    now: float,
    remember: Callable[[int, int, int | None], None],
    is_alive: Alive = alive,
) -> ConsolidationLock | None:
    """Take the lock of a memory directory, or return ``None`` if another process holds it.

    ``remember(pid, taken_ns, prior_ns)`` is called before the file is changed; if it was called
    and no lock is returned, the caller needs ``restore`` to clean up. Raises LockUnusableError,
    and whatever ``remember`` raises.
    """
    pid, taken_ns = os.getpid(), int(now * _NS)
    folder = _open_folder(directory)
    if folder < 0:
        raise LockUnusableError(directory, _MISSING)
    guard = -1
    try:
        guard = _lock_guard(folder, directory)
        lock_file = None if guard < 0 else _read(folder, directory)
        if guard >= 0 and not _is_busy(lock_file, now, is_alive):
            prior_ns = None if lock_file is None else lock_file.mtime_ns
            remember(pid, taken_ns, prior_ns)
            _write(folder, directory, f"{pid}\n".encode(), taken_ns)
            # Read again just before the rename: other programs do not use the guard.
            if _read(folder, directory) == lock_file:
                _put_in_place(folder, directory)
                lock = ConsolidationLock(directory, pid, taken_ns, prior_ns, folder, guard)
                if lock.ours():  # pragma: no branch - another program wrote after that read
                    folder = guard = -1  # ``lock`` closes them
                    return lock
        return None
    finally:
        _close(guard, folder)


def restore(directory: str, pid: int, taken_ns: int, prior_ns: int | None) -> Restored:
    """Reset the lock of a dream that ended without ``commit`` or ``reset``; return the result.

    A lock that another program took over meanwhile stays as it is. If the dream's change was
    committed, ``prior_ns`` is ``taken_ns``: then the file gets at least that time. While the
    dream goes on, or its directory is missing, nothing is done. Raises LockUnusableError.
    """
    folder = _open_folder(directory)
    if folder < 0:
        return Restored.WAITS
    guard = -1
    try:
        guard = _lock_guard(folder, directory)
        if guard < 0:
            return Restored.WAITS
        with suppress(OSError):
            os.unlink(_NEW, dir_fd=folder)
        lock_file = _read(folder, directory)
        is_ours = lock_file is not None and lock_file.was_taken(pid, taken_ns)
        has_no_holder = lock_file is None or lock_file.pid == 0
        is_older = lock_file is None or lock_file.mtime_ns < taken_ns
        was_committed = prior_ns == taken_ns
        lacks_committed_time = was_committed and has_no_holder and is_older
        if not is_ours and not lacks_committed_time:
            return Restored.NOT_OURS
        _put_back(folder, directory, prior_ns)
        return Restored.PUT_BACK
    finally:
        _close(guard, folder)


def read_holder(body: bytes) -> int:
    """Return the PID that a lock's body names, 0 for anything else."""
    line = body.split(b"\n", 1)[0].strip()
    if len(body) > _BODY_BYTES or len(line) > _PID_DIGITS or not line.isdigit():
        return 0
    return int(line) if int(line) <= _PID_MAX else 0


def _is_busy(lock_file: _LockFile | None, now: float, is_alive: Alive) -> bool:
    """Say whether a lock file has a holder that is alive and took it less than an hour ago."""
    if lock_file is None or lock_file.pid == 0:
        return False
    mtime = lock_file.mtime_ns / _NS
    # A time far in the future is as stale as one far in the past: it must not block for ever.
    return abs(now - mtime) < limits.LOCK_STALE_SECONDS and is_alive(lock_file.pid, mtime)


@contextmanager
def _as_lock_errors(directory: str, name: str = LOCK) -> Iterator[None]:
    """Raise the system's errors of the block, which are about a file, as LockUnusableError."""
    try:
        yield
    except OSError as error:
        cause = "it is a link" if error.errno == errno.ELOOP else os.strerror(error.errno or 0)
        raise LockUnusableError(directory, cause, name) from error
    except OverflowError as error:  # no file system has such a time; the row is damaged
        raise LockUnusableError(directory, _NO_TIME, name) from error


def _close(*descriptors: int) -> None:
    """Close descriptors; -1 stands for one that was not opened."""
    for descriptor in descriptors:
        if descriptor >= 0:
            os.close(descriptor)


def _open_folder(directory: str) -> int:
    """Return a descriptor of the memory directory, -1 when there is none."""
    with _as_lock_errors(directory), suppress(FileNotFoundError):
        return os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    return -1


def _open_regular(folder: int, name: str, flags: int, directory: str) -> int:
    """Return a descriptor of one of the lock's files, -1 if there is none."""
    # O_NONBLOCK: opening a pipe must not wait for its other end.
    flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with _as_lock_errors(directory, name), suppress(FileNotFoundError):
        opened = os.open(name, flags, 0o600, dir_fd=folder)
        if stat.S_ISREG(os.fstat(opened).st_mode):
            return opened
        os.close(opened)
        raise LockUnusableError(directory, _NO_FILE, name)
    return -1


def _lock_guard(folder: int, directory: str) -> int:
    """Return a descriptor that holds the guard's flock, -1 when another memd holds it."""
    for _ in range(_GUARD_TRIES):
        guard = _open_regular(folder, GUARD, os.O_RDWR | os.O_CREAT, directory)
        is_current = False
        try:
            with _as_lock_errors(directory, GUARD):
                if not _try_flock(guard):
                    return -1
                is_current = _is_current_guard(folder, guard)
        finally:
            if not is_current:
                os.close(guard)
        if is_current:
            return guard
    return -1


def _try_flock(guard: int) -> bool:
    """Lock the guard; return whether it was free. Raises OSError if it cannot be locked at all."""
    with suppress(BlockingIOError):
        fcntl.flock(guard, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def _is_current_guard(folder: int, guard: int) -> bool:
    """Return whether the locked guard file is still the one at the guard's path."""
    with suppress(FileNotFoundError):
        status_at_path = os.stat(GUARD, dir_fd=folder, follow_symlinks=False)
        return os.path.samestat(status_at_path, os.fstat(guard))
    return False


def _read(folder: int, directory: str) -> _LockFile | None:
    """Return the lock file's content, or ``None`` if there is no file."""
    opened = _open_regular(folder, LOCK, os.O_RDONLY, directory)
    if opened < 0:
        return None
    try:
        with _as_lock_errors(directory):
            body = os.read(opened, _BODY_BYTES + 1)
            return _LockFile(read_holder(body), os.fstat(opened).st_mtime_ns)
    finally:
        os.close(opened)


def _replace(folder: int, directory: str, body: bytes, mtime_ns: int) -> None:
    """Put a new lock file in the place of the old one; the caller holds the guard."""
    _write(folder, directory, body, mtime_ns)
    _put_in_place(folder, directory)


def _write(folder: int, directory: str, body: bytes, mtime_ns: int) -> None:
    """Write a new lock file to the disk, under the name that no program reads."""
    with _as_lock_errors(directory):
        with suppress(FileNotFoundError):
            os.unlink(_NEW, dir_fd=folder)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        opened = os.open(_NEW, flags, 0o600, dir_fd=folder)
        try:
            os.write(opened, body)
            os.utime(opened, ns=(mtime_ns, mtime_ns))
            os.fsync(opened)
        finally:
            os.close(opened)


def _put_in_place(folder: int, directory: str) -> None:
    """Rename the new lock file over the old one, and flush the folder to the disk."""
    with _as_lock_errors(directory):
        os.rename(_NEW, LOCK, src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)


def _put_back(folder: int, directory: str, prior_ns: int | None) -> None:
    """Give the lock file its earlier mtime, or remove the file if there was none."""
    if prior_ns is not None:
        _replace(folder, directory, b"", prior_ns)
        return
    with _as_lock_errors(directory):
        with suppress(FileNotFoundError):
            os.unlink(LOCK, dir_fd=folder)
        os.fsync(folder)
