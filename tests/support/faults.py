"""Disks and state files on which the n-th call fails, once or from then on.

SQLite tests itself like this: the first call fails, then the second, and so on until a whole run
passes; after every failure the store must be intact.
"""

import errno
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Concatenate, ParamSpec, TypeVar

from memd.state.database import Cursor, Database
from memd.store.disk import Disk, real_disk
from tests.support.countdown import Countdown as Countdown

P = ParamSpec("P")
R = TypeVar("R")


def _failing(
    call: Callable[Concatenate[Disk, P], R], name_index: int = 0
) -> Callable[Concatenate["FaultyDisk", P], R]:
    """Return a method of the disk that is counted, and may fail, before it is carried out.

    ``name_index`` is the argument with the file's name, 0 if there is none.
    """

    def method(self: "FaultyDisk", /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Count the call, fail if it is its turn, and otherwise pass it on."""
        self.step(call.__name__, str(args[name_index]) if name_index else "")
        result: R = getattr(self.disk, call.__name__)(*args, **kwargs)
        return result

    return method


class FaultyDisk(Disk):
    """The real disk, with failures from a countdown.

    ``before`` is called first with the name of each call and its file. ``portion`` bounds the bytes
    of one write, as a nearly full disk or a signal does.
    """

    def __init__(
        self,
        countdown: Countdown | None = None,
        *,
        disk: Disk | None = None,
        before: Callable[[str, str], None] | None = None,
        portion: int | None = None,
    ) -> None:
        super().__init__()
        self.countdown = countdown or Countdown()
        self.disk = disk or real_disk()
        self._before = before
        self._portion = portion

    create = _failing(Disk.create, 1)
    set_mode = _failing(Disk.set_mode)
    set_mtime = _failing(Disk.set_mtime)
    fsync = _failing(Disk.fsync)
    sync_folder = _failing(Disk.sync_folder)
    exchange = _failing(Disk.exchange, 2)
    move = _failing(Disk.move, 2)
    move_folder = _failing(Disk.move_folder, 2)
    unlink = _failing(Disk.unlink, 1)

    def write(self, file: int, data: memoryview) -> int:
        """Write at most a portion, or fail."""
        self.step("write", "")
        return self.disk.write(file, data[: self._portion])

    def close(self, file: int) -> None:
        """Close a file, and then perhaps fail although it is closed."""
        self.disk.close(file)
        self.step("close", "")

    def step(self, call: str, name: str) -> None:
        """Count one call. Raises OSError if this call is to fail."""
        if self._before is not None:
            self._before(call, name)
        self.countdown.step(call)


class FaultyDatabase(Database):
    """A state file whose n-th step of a transaction fails.

    The steps are ``begin``, ``transaction`` (fails before the commit), and ``committed`` (fails
    after the commit, when all is on the disk).
    """

    def __init__(self, database: Database, countdown: Countdown) -> None:
        super().__init__(database.file)
        self.countdown = countdown

    @contextmanager
    def transaction(self, *, synced: bool = True) -> Iterator[Cursor]:
        """Run a transaction, fail at its begin, before its commit, or after it."""
        try:
            with super().transaction(synced=synced) as cursor:
                self._step("begin")
                yield cursor
                self._step("transaction")
            self._step("committed")
        except sqlite3.Error as error:
            raise self.file.failure(error) from error

    def _step(self, name: str) -> None:
        """Count a step. Raises the error that SQLite would raise if this step is to fail."""
        try:
            self.countdown.step(name)
        except OSError as error:
            failed = sqlite3.OperationalError(str(error))
            is_full = error.errno == errno.ENOSPC
            failed.sqlite_errorcode = sqlite3.SQLITE_FULL if is_full else sqlite3.SQLITE_IOERR
            raise failed from error
