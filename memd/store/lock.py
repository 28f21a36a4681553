"""The consolidation lock, shared with any program that follows the same protocol. Blocks.

``.consolidate-lock`` in the memory directory: the first line of its body is the PID of the program
that consolidates (a second line may be a time stamp), and its **mtime is when memories were last
consolidated**.

Rules of this file
- The lock is busy while its PID is alive and its mtime is less than an hour away. A process that
  began after the mtime is another one with the same PID. A body without a PID names nobody.
- Two memds never hold it together: ``flock`` on ``.consolidate-lock.guard`` decides, for as long as
  the dream lasts, and ends with the process. Of other programs the PID is read back after it was
  written, and again before a dream's change is made (``is_ours``).
- The file is replaced as a whole, with its mtime set before, so that nobody reads half of a body or
  an mtime that is not right yet. After each replacement the file and its folder are on the disk.
- ``remember`` gets the earlier mtime before anything changes. The caller releases the lock with the
  mtime that is to stay: the dream's own, or the earlier one (``None``: there was no file).
- Nothing is opened through a link or waited for. What is no regular file raises Storage.

It does not help between machines that share a directory: a PID does not name its machine. There the
guard decides, if the file system passes ``flock`` on, else the second look before the change.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

from msgspec import Struct

from memd.base import limits
from memd.base.errors import Storage

LOCK = ".consolidate-lock"
GUARD = ".consolidate-lock.guard"
_NEW = ".consolidate-lock.new"  # a new lock file, before it is renamed
_BODY_BYTES = 64  # a PID and a time stamp have 25
_PID_MOST = 2**31 - 1  # of the system's type pid_t
_TOLERANCE_SECONDS = 2.0  # some file systems keep whole seconds, and the clock may have been set
_NS = 1_000_000_000
_GUARD_TRIES = 3  # another program may remove the guard between our open and our flock

IsAlive = Callable[[int, float], bool]  # takes a PID and the time at which it wrote the lock


class _LockFile(Struct, frozen=True):
    """What the lock file says; ``pid`` is 0 if it names no process."""

    pid: int
    mtime_ns: int

    def was_taken(self, pid: int, taken_ns: int) -> bool:
        """Return whether this process wrote it at this time."""
        return self.pid == pid and abs(self.mtime_ns - taken_ns) <= _TOLERANCE_SECONDS * _NS

    def is_busy(self, now: float, is_alive: IsAlive) -> bool:
        """Return whether a living process took the lock less than an hour ago."""
        mtime = self.mtime_ns / _NS
        # A time far in the future is as stale as one far in the past: it must not block for ever.
        is_recent = abs(now - mtime) < limits.LOCK_STALE_SECONDS
        return self.pid > 0 and is_recent and is_alive(self.pid, mtime)


class ConsolidationLock(Struct, frozen=True):
    """A lock that this process took at ``taken_ns``. Release it exactly once.

    ``prior_ns`` is the mtime of the lock file before, ``None`` if there was no file.
    """

    directory: str
    pid: int
    taken_ns: int
    prior_ns: int | None
    folder: int  # a descriptor of the memory directory
    guard: int  # a descriptor that holds the guard's flock
    descriptors: ExitStack  # closes both

    def is_ours(self) -> bool:
        """Return whether no other program has taken the lock over. Raises Storage."""
        with _as_storage(self.directory):
            lock_file = _read(self.folder)
            if lock_file is None or lock_file.pid != self.pid:
                return False
            # If the guard was removed, another dream of this process may have taken the lock.
            has_guard = _is_current_guard(self.folder, self.guard)
            return has_guard or lock_file.was_taken(self.pid, self.taken_ns)

    def release(self, mtime_ns: int | None) -> None:
        """End the lock; unless another program took it over, the file gets ``mtime_ns``.

        Raises Storage; the lock is released all the same.
        """
        with self.descriptors, _as_storage(self.directory):
            if self.is_ours():
                _put_back(self.folder, mtime_ns)


def is_alive(pid: int, since: float) -> bool:
    """Return whether a process runs and began before ``since`` (seconds since 1970)."""
    import psutil  # noqa: PLC0415 - 2.6 MB and 10 ms that only a dream needs

    try:
        process = psutil.Process(pid)
        has_ended = process.status() == psutil.STATUS_ZOMBIE
        return not has_ended and process.create_time() <= since + _TOLERANCE_SECONDS
    except psutil.AccessDenied:  # it exists, but may not be inspected
        return True
    except psutil.Error:
        return False


def consolidated_at(directory: str) -> float | None:
    """Return when memories were last consolidated, ``None`` for never. Costs one ``stat``."""
    try:
        return os.stat(f"{directory}/{LOCK}", follow_symlinks=False).st_mtime
    except OSError:
        return None


def is_busy(directory: str, now: float, is_alive: IsAlive = is_alive) -> bool:
    """Return whether a living process holds the lock file. Raises Storage."""
    with _as_storage(directory), suppress(FileNotFoundError), ExitStack() as descriptors:
        lock_file = _read(_open_folder(directory, descriptors))
        return lock_file is not None and lock_file.is_busy(now, is_alive)
    return False


def take(
    directory: str,
    now: float,
    remember: Callable[[int, int, int | None], None],
    is_alive: IsAlive = is_alive,
) -> ConsolidationLock | None:
    """Take the lock of a memory directory, or return ``None`` if another program holds it.

    ``remember(pid, taken_ns, prior_ns)`` is called before the file is changed; if it was called
    and no lock is returned, the caller calls ``restore``. Raises Storage, and what ``remember``
    raises.
    """
    pid, taken_ns = os.getpid(), int(now * _NS)
    with _as_storage(directory), ExitStack() as descriptors:
        folder = _open_folder(directory, descriptors)
        guard = _lock_guard(folder, descriptors)
        lock_file = _read(folder)
        if guard < 0 or (lock_file is not None and lock_file.is_busy(now, is_alive)):
            return None
        prior_ns = None if lock_file is None else lock_file.mtime_ns
        remember(pid, taken_ns, prior_ns)
        _write(folder, f"{pid}\n", taken_ns)
        # Read again just before the rename: other programs do not use the guard.
        if _read(folder) != lock_file:
            return None
        _rename(folder)
        facts = (directory, pid, taken_ns, prior_ns, folder, guard)
        lock = ConsolidationLock(*facts, descriptors.pop_all())
    if lock.is_ours():
        return lock
    lock.descriptors.close()  # another program wrote after that read
    return None


def restore(directory: str, pid: int, taken_ns: int, prior_ns: int | None) -> bool | None:
    """Give the lock file of a dream that died its earlier mtime; return whether it was changed.

    A lock that another program took over meanwhile stays as it is. If the dream's change was made,
    ``prior_ns`` is ``taken_ns``: then the file gets at least that time. ``None`` if nothing could
    be done yet, as the dream goes on or its directory is missing. Raises Storage.
    """
    with _as_storage(directory), ExitStack() as descriptors:
        try:
            folder = _open_folder(directory, descriptors)
        except FileNotFoundError:
            return None
        if _lock_guard(folder, descriptors) < 0:
            return None
        with suppress(OSError):
            os.unlink(_NEW, dir_fd=folder)
        lock_file = _read(folder)
        was_changed = prior_ns == taken_ns
        names_nobody = lock_file is None or lock_file.pid == 0
        is_older = lock_file is None or lock_file.mtime_ns < taken_ns
        is_ours = lock_file is not None and lock_file.was_taken(pid, taken_ns)
        if is_ours or (was_changed and names_nobody and is_older):
            _put_back(folder, prior_ns)
            return True
    return False


def read_pid(body: bytes) -> int:
    """Return the PID that a lock's body names, 0 for anything else."""
    line = body.split(b"\n", 1)[0].strip()
    if len(body) > _BODY_BYTES or not line.isdigit() or int(line) > _PID_MOST:
        return 0
    return int(line)


@contextmanager
def _as_storage(directory: str) -> Iterator[None]:
    """Raise the system's errors of the block, which are about the lock's files, as Storage."""
    try:
        yield
    except OverflowError as error:  # no file system has such a time: the state file is damaged
        raise _storage(directory, LOCK, "the time that it had cannot be set") from error
    except OSError as error:
        name = error.filename if error.filename in {LOCK, GUARD, _NEW} else LOCK
        cause = "it is a link" if error.errno == errno.ELOOP else str(error.strerror)
        raise _storage(directory, name, cause) from error


def _storage(directory: str, name: str, cause: str) -> Storage:
    """Return the error for a file that cannot serve as a lock."""
    path = f"{directory}/{name}"
    return Storage(
        f"the consolidation lock {path} cannot be used: {cause}",
        kind="lock_unusable",
        hint="look at what lies there and move it away; then dreams work again",
        retryable=False,
        path=path,
        cause=cause,
    )


def _open_folder(directory: str, descriptors: ExitStack) -> int:
    """Return a descriptor of the memory directory. Raises OSError."""
    folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    descriptors.callback(os.close, folder)
    return folder


def _open_regular(folder: int, name: str, flags: int) -> int:
    """Return a descriptor of one of the lock's files. Raises OSError."""
    # O_NONBLOCK: opening a pipe must not wait for its other end.
    flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    opened = os.open(name, flags, 0o600, dir_fd=folder)
    if stat.S_ISREG(os.fstat(opened).st_mode):
        return opened
    os.close(opened)
    raise OSError(errno.EINVAL, "it is no regular file", name)


def _lock_guard(folder: int, descriptors: ExitStack) -> int:
    """Return a descriptor that holds the guard's flock, -1 if another memd holds it."""
    for _ in range(_GUARD_TRIES):
        guard = _open_regular(folder, GUARD, os.O_RDWR | os.O_CREAT)
        descriptors.callback(os.close, guard)
        try:
            fcntl.flock(guard, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return -1
        if _is_current_guard(folder, guard):
            return guard
    return -1


def _is_current_guard(folder: int, guard: int) -> bool:
    """Return whether the guard's name still leads to the file that is locked."""
    with suppress(FileNotFoundError):
        lock_file = os.stat(GUARD, dir_fd=folder, follow_symlinks=False)
        return os.path.samestat(lock_file, os.fstat(guard))
    return False


def _read(folder: int) -> _LockFile | None:
    """Return what the lock file says, ``None`` if there is none. Raises OSError."""
    try:
        opened = _open_regular(folder, LOCK, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        body = os.read(opened, _BODY_BYTES + 1)
        return _LockFile(read_pid(body), os.fstat(opened).st_mtime_ns)
    finally:
        os.close(opened)


def _write(folder: int, body: str, mtime_ns: int) -> None:
    """Write a new lock file to the disk, under a name that no other program reads."""
    with suppress(FileNotFoundError):
        os.unlink(_NEW, dir_fd=folder)
    opened = _open_regular(folder, _NEW, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        os.write(opened, body.encode())
        os.utime(opened, ns=(mtime_ns, mtime_ns))
        os.fsync(opened)
    finally:
        os.close(opened)


def _rename(folder: int) -> None:
    """Rename the new lock file over the old one, and sync the folder."""
    os.rename(_NEW, LOCK, src_dir_fd=folder, dst_dir_fd=folder)
    os.fsync(folder)


def _put_back(folder: int, mtime_ns: int | None) -> None:
    """Give the lock file an mtime and no PID, or remove it if ``mtime_ns`` is ``None``."""
    if mtime_ns is None:
        with suppress(FileNotFoundError):
            os.unlink(LOCK, dir_fd=folder)
        os.fsync(folder)
    else:
        _write(folder, "", mtime_ns)
        _rename(folder)
