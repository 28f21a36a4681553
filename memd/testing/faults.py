"""Disks and state files on which the n-th call fails, once or from then on.

SQLite tests itself like this: fail the first call, then the second, and so on until a whole run
passes; after every one of them the store must be whole.
"""

import errno
import os
import time
from collections.abc import Callable, Collection
from typing import Concatenate, ParamSpec, TypeVar

from memd.files.disk import Disk, real_disk
from memd.state.database import Cursor, Database

P = ParamSpec("P")
R = TypeVar("R")


class Countdown:
    """Says of each call whether it fails: the ``fail_at``-th (from 1), or with ``ever`` all after.

    ``only`` limits the failures to calls of some names; ``names`` lists the calls so far.
    """

    def __init__(
        self,
        fail_at: int = 0,
        code: int = errno.EIO,
        *,
        ever: bool = False,
        only: Collection[str] = (),
    ) -> None:
        self.fail_at = fail_at
        self.code = code
        self.ever = ever
        self.only = only
        self.names: list[str] = []

    def step(self, name: str) -> None:
        """Count one call. Raises OSError when it is its turn to fail."""
        self.names.append(name)
        count = len(self.names)
        due = count == self.fail_at or (self.ever and count > self.fail_at)
        if self.fail_at and due and (not self.only or name in self.only):
            raise OSError(self.code, os.strerror(self.code), name)

    @property
    def reached(self) -> bool:
        """Whether it has come to the call that was to fail."""
        return 0 < self.fail_at <= len(self.names)


def _failing(
    call: Callable[Concatenate[Disk, P], R], named: int = 0
) -> Callable[Concatenate["FaultyDisk", P], R]:
    """Return a call of the disk that may fail before it is made; ``named`` is its file's name."""

    def method(self: "FaultyDisk", /, *args: P.args, **kwargs: P.kwargs) -> R:
        self.step(call.__name__, str(args[named]) if named else "")
        result: R = getattr(self.disk, call.__name__)(*args, **kwargs)
        return result

    return method


class FaultyDisk(Disk):
    """The real disk whose calls count down; ``before`` is called with each call's name first.

    ``portion`` bounds the bytes of one write, as a nearly full disk or a signal does.
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
    sync_all = _failing(Disk.sync_all)
    exchange = _failing(Disk.exchange, 2)
    move = _failing(Disk.move, 2)
    move_folder = _failing(Disk.move_folder, 2)
    unlink = _failing(Disk.unlink, 1)

    def write(self, file: int, data: memoryview) -> int:
        """Fail or write a portion."""
        self.step("write", "")
        return self.disk.write(file, data[: self._portion])

    def close(self, file: int) -> None:
        """Close a file and perhaps say that this failed."""
        self.disk.close(file)
        self.step("close", "")

    def step(self, call: str, name: str) -> None:
        """Count one call. Raises OSError when it is its turn to fail."""
        if self._before is not None:
            self._before(call, name)
        self.countdown.step(call)


class FaultyDatabase(Database):
    """A state file whose n-th step of a transaction fails.

    The steps are ``begin``, ``transaction`` (the commit, of which nothing happened), and
    ``committed``: all is on the disk, and yet it is said to have failed.
    """

    def __init__(
        self,
        database: Database,
        countdown: Countdown,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(database.file, monotonic)
        self.countdown = countdown

    def begin(self, cursor: Cursor) -> None:
        """Fail or begin."""
        self.countdown.step("begin")
        super().begin(cursor)

    def commit(self, cursor: Cursor) -> None:
        """Fail, commit, or do both."""
        self.countdown.step("transaction")
        super().commit(cursor)
        self.countdown.step("committed")
