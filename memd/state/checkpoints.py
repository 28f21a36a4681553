"""Copy SQLite's log into the state file in the background, so that no request waits for it.

SQLite's own checkpoint runs within the commit that made the log long, and syncs the whole file
there: one prompt in sixty waited for the disk. Here a thread does it every ``COMMITS`` commits.
SQLite's own remains for a log that becomes too long nevertheless.
"""

from collections.abc import Callable
from contextlib import suppress
from threading import Thread

COMMITS = 64  # some 1,000 pages of 4 KiB, after which SQLite would do it itself by default
LONGEST_PAGES = 8_000  # of the log (32 MiB), after which a commit copies it itself


class Checkpoints:
    """The background checkpoints of one state file, by ``copy``; users hold the file's lock."""

    def __init__(self, copy: Callable[[], None]) -> None:
        self._copy = copy  # copies the log; it runs in a thread of its own
        self._commits = 0  # since the last checkpoint began
        self._thread: Thread | None = None  # of the last checkpoint

    def count_commit(self) -> None:
        """Count one commit, and begin a checkpoint if enough were made and none is under way."""
        self._commits += 1
        is_under_way = self._thread is not None and self._thread.is_alive()
        if self._commits < COMMITS or is_under_way:
            return
        self._commits = 0
        thread = Thread(target=self._copy, name="memd-checkpoint", daemon=True)
        with suppress(RuntimeError):  # no thread can be started: SQLite's own checkpoint follows
            thread.start()
            self._thread = thread

    def wait(self) -> None:
        """Wait until the checkpoint that is under way has ended."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()
