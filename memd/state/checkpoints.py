"""Copy SQLite's log into the state file in the background, so that no request waits for it.

SQLite's own checkpoint runs within the commit that made the log long, and syncs the whole file
there: one prompt in sixty waited for the disk. Here a thread with a connection of its own does it
every ``COMMITS`` commits. SQLite's own remains for a log that becomes too long nevertheless.
"""

import sqlite3
from contextlib import suppress
from threading import Thread

COMMITS = 64  # some 1,000 pages of 4 KiB, after which SQLite would do it itself by default
LONGEST_PAGES = 8_000  # of the log (32 MiB), after which a commit copies it itself


class Checkpoints:
    """The background checkpoints of one open state file; its users hold the file's lock."""

    def __init__(self) -> None:
        self._connection: sqlite3.Connection | None = None
        self._commits = 0
        self._thread: Thread | None = None

    def open(self, path: str) -> None:
        """Open a connection of its own to the file, which exists. Raises sqlite3.Error."""
        self.close()
        # SQLite keeps a descriptor open while another connection to its file is, so a connection
        # for each checkpoint would save nothing.
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA schema_version")  # opens the file

    def count_commit(self) -> None:
        """Count one commit, and begin a checkpoint if enough were made and none is under way."""
        self._commits += 1
        if self._commits < COMMITS or (self._thread is not None and self._thread.is_alive()):
            return
        self._commits = 0
        thread = Thread(target=self._run, name="memd-checkpoint", daemon=True)
        with suppress(RuntimeError):  # no thread can be started: SQLite's own checkpoint follows
            thread.start()
            self._thread = thread

    def wait(self) -> None:
        """Wait until the checkpoint that is under way has ended."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()

    def close(self) -> None:
        """Close the connection, after the checkpoint that is under way."""
        self.wait()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _run(self) -> None:
        """Copy what the log has now, without waiting for readers or writers."""
        # An error is the commits' to report: they use the same file and disk.
        with suppress(sqlite3.Error):
            if self._connection is not None:
                self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
