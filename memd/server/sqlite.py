"""The server's storage in one SQLite file; the door of sqlite3 on the server.

Rules of this file
- WAL, and ``synchronous=FULL``: a commit that returned survives a power cut.
- One thread writes at a time. Another process (a command beside the server) waits its turn.
"""

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from memd.server.driver import BUSY_SECONDS, Driver, Transaction
from memd.server.errors import (
    StorageBusyError,
    StorageFormatError,
    StorageUnavailableError,
    TeamServerError,
)

_RETRY_SECONDS = 0.02


class SQLite(Driver):
    """A SQLite file of mode 0600; it and its folder (0700) are created if they are missing."""

    errors = sqlite3.Error
    begin_reading = "BEGIN"
    begin_writing = "BEGIN IMMEDIATE"

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path
        # Held by the thread that writes. Waiting for it is faster than for SQLite's own lock, which
        # is tried again and again.
        self._writer = threading.Lock()

    def connect(self) -> sqlite3.Connection:
        """Return a new connection."""
        try:
            os.makedirs(os.path.dirname(os.path.abspath(self.path)), mode=0o700, exist_ok=True)
            # SQLite creates with the umask; the mode must be right from the first instant. A file
            # that is there is not opened: closing it would drop the locks of other connections.
            with suppress(FileExistsError):
                flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                os.close(os.open(self.path, flags, 0o600))
        except OSError as error:
            raise StorageUnavailableError(str(error)) from error
        connection = sqlite3.connect(
            self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        until = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute("PRAGMA synchronous=FULL")
            except sqlite3.DatabaseError as error:  # a busy one, or a file that is no database
                # SQLite does not wait for a process that is creating the same file.
                is_busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
                if not is_busy or time.monotonic() > until:
                    connection.close()
                    raise
                time.sleep(_RETRY_SECONDS)
            else:
                return connection

    def words(self, sql: str) -> str:
        """Return a statement in the SQL of SQLite, where a write locks all rows anyway."""
        return sql.removesuffix(" FOR UPDATE")

    def failure(self, error: Exception) -> TeamServerError:
        """Return the server's error for an error of SQLite."""
        code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return StorageBusyError()
        if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            return StorageFormatError(str(error))
        return StorageUnavailableError(str(error))

    def lock(self, transaction: Transaction) -> None:
        """Do nothing: a writing transaction keeps all others out."""

    def compact(self) -> None:
        """Write the file again and empty its log. Raises StorageBusyError while it is read."""
        with self._writer, self.connection() as connection:
            connection.execute("VACUUM")
            if connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                raise StorageBusyError

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        """Run one durable transaction; an exception in the block undoes it."""
        if not self._writer.acquire(timeout=BUSY_SECONDS):
            raise StorageBusyError
        try:
            with super().writing() as transaction:
                yield transaction
        finally:
            self._writer.release()
