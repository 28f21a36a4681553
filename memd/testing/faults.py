"""Disks and state files on which the n-th call fails, once or from then on.

SQLite tests itself like this: fail the first call, then the second, and so on until a whole run
passes; after every one of them the store must be whole.
"""

import errno
import os
import time
from collections.abc import Callable, Collection

from memd.files.disk import Disk, real_disk
from memd.state.database import Cursor, Database


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
        self._disk = disk or real_disk()
        self._before = before
        self._portion = portion

    def create(self, folder: int, name: str) -> int:
        """Fail or make a file."""
        self._step("create", name)
        return self._disk.create(folder, name)

    def set_mode(self, file: int, mode: int) -> None:
        """Fail or set a mode."""
        self._step("set_mode", "")
        self._disk.set_mode(file, mode)

    def write(self, file: int, data: memoryview) -> int:
        """Fail or write a portion."""
        self._step("write", "")
        return self._disk.write(file, data[: self._portion])

    def set_mtime(self, file: int, mtime_ns: int) -> None:
        """Fail or set a time."""
        self._step("set_mtime", "")
        self._disk.set_mtime(file, mtime_ns)

    def fsync(self, file: int) -> None:
        """Fail or flush a file to the disk."""
        self._step("fsync", "")
        self._disk.fsync(file)

    def close(self, file: int) -> None:
        """Close a file and perhaps say that this failed."""
        self._disk.close(file)
        self._step("close", "")

    def sync_folder(self, folder: int) -> None:
        """Fail or flush a folder to the disk."""
        self._step("sync_folder", "")
        self._disk.sync_folder(folder)

    def sync_all(self, folder: int) -> bool:
        """Fail or flush all, where the system can."""
        self._step("sync_all", "")
        return self._disk.sync_all(folder)

    def exchange(self, folder: int, temp: str, live: str) -> None:
        """Fail or exchange."""
        self._step("exchange", live)
        self._disk.exchange(folder, temp, live)

    def move(self, folder: int, source: str, target: str) -> None:
        """Fail or rename."""
        self._step("move", target)
        self._disk.move(folder, source, target)

    def move_folder(self, folder: int, source: str, target: str) -> None:
        """Fail or rename a folder."""
        self._step("move_folder", target)
        self._disk.move_folder(folder, source, target)

    def unlink(self, folder: int, name: str) -> None:
        """Fail or remove."""
        self._step("unlink", name)
        self._disk.unlink(folder, name)

    def _step(self, call: str, name: str) -> None:
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
