"""Disks and state files on which the n-th call fails, once or from then on.

SQLite tests itself like this: the first call fails, then the second, and so on until a whole run
passes; after every failure the store must be intact.
"""

import errno
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from memd.state.database import Cursor, Database
from memd.store.disk import Disk, real_disk
from tests.support.countdown import Countdown as Countdown


def _failing(name: str, name_index: int = 0) -> Any:
    """Return a method of the disk that is counted, and may fail, before it is carried out.

    ``name_index`` is the argument with the file's name, 0 if there is none.
    """

    def method(self: "FaultyDisk", /, *args: Any) -> Any:
        """Count the call, fail if it is its turn, and otherwise pass it on."""
        self.step(name, str(args[name_index]) if name_index else "")
        return getattr(self.disk, name)(*args)

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

    create = _failing("create", 1)
    set_mode = _failing("set_mode")
    set_mtime = _failing("set_mtime")
    fsync = _failing("fsync")
    sync_folder = _failing("sync_folder")
    exchange = _failing("exchange", 2)
    move = _failing("move", 2)
    move_folder = _failing("move_folder", 2)
    unlink = _failing("unlink", 1)

    def write(self, file: int, data: Any) -> int:
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
