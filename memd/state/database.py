"""The one door to SQLite: a single connection, WAL, every commit durable.

Rules of this file
- One connection per process, used by one thread at a time: ``transaction`` and ``read`` hold a
  lock. Both block: call them from a worker thread, never on the event loop.
- A transaction that returns has been fsynced (``synchronous=FULL``); one that raises changed
  nothing.
- Nothing in here is needed to read a memory. A file that SQLite calls damaged is put aside under
  another name and a new one begun: that costs history, never a memory (spec 1).
- Tables belong to the modules of this room; each declares its own ``SCHEMA`` and they are all
  created when the file is opened.
"""

import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from memd.core.errors import MemdError

Row = sqlite3.Row
Cursor = sqlite3.Cursor

VERSION = 1
_BUSY_SECONDS = 5.0  # only a person's own sqlite3 shell can hold the file; wait for it a little


class StateUnusableError(MemdError):
    """The state file cannot be opened, read or written just now."""

    code = 1012
    kind = "state_unusable"
    retryable = True
    hint = "free disk space or mend the permissions of the state directory; no restart is needed"
    exit_status = 75

    def __init__(self, path: str, cause: str) -> None:
        super().__init__(f"the state file {path} cannot be used: {cause}", path=path, cause=cause)


class StateTooNewError(MemdError):
    """The state file was written by a newer memd."""

    code = 1015
    kind = "state_too_new"
    hint = "start the newer memd, or move the file away: that costs history, never a memory"
    exit_status = 78

    def __init__(self, path: str, version: int) -> None:
        super().__init__(
            f"the state file {path} has format {version}, this memd knows {VERSION}",
            path=path,
            version=version,
        )


class Database:
    """An open state file. ``repaired`` says where a damaged one was put, or is ``None``."""

    def __init__(self, path: str, connection: sqlite3.Connection, repaired: str | None) -> None:
        self.path = path
        self.repaired = repaired
        self._connection = connection
        self._lock = threading.RLock()

    def close(self) -> None:
        """Close the file; the object is of no use afterwards."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[Cursor]:
        """Run one durable transaction; an exception in the block rolls it back.

        Raises StateUnusableError where SQLite cannot read or write.
        """
        with self._lock:
            try:
                cursor = self._connection.cursor()
                cursor.execute("BEGIN IMMEDIATE")
                try:
                    yield cursor
                except BaseException:
                    with suppress(sqlite3.Error):
                        cursor.execute("ROLLBACK")
                    raise
                cursor.execute("COMMIT")
            except sqlite3.Error as error:
                with suppress(sqlite3.Error):
                    self._connection.rollback()
                raise StateUnusableError(self.path, str(error)) from error

    def read(self, query: str, parameters: Sequence[object] = ()) -> list[Row]:
        """Return all rows of one query. Raises StateUnusableError."""
        with self._lock:
            try:
                rows: list[Row] = self._connection.execute(query, parameters).fetchall()
            except sqlite3.Error as error:
                raise StateUnusableError(self.path, str(error)) from error
            return rows


def open_database(path: str, schemas: Sequence[str]) -> Database:
    """Open or create the state file (mode 0600) with all tables of ``schemas``.

    Each schema is ``CREATE … IF NOT EXISTS`` statements. A damaged file is renamed to
    ``<path>.damaged-<n>`` first. Raises StateUnusableError and StateTooNewError.
    """
    repaired = None
    try:
        connection = _open(path, schemas)
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):
            raise StateUnusableError(path, str(error)) from error
        repaired = _put_aside(path)
        try:
            connection = _open(path, schemas)
        except sqlite3.Error as again:
            raise StateUnusableError(path, str(again)) from again
    except OSError as error:
        raise StateUnusableError(path, str(error)) from error
    return Database(path, connection, repaired)


def _open(path: str, schemas: Sequence[str]) -> sqlite3.Connection:
    # SQLite creates with the umask; the mode must be right from the first instant.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    connection = sqlite3.connect(
        path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        _check(path, connection)
        for schema in schemas:
            connection.executescript(schema)
        connection.execute(f"PRAGMA user_version={VERSION}")
    except BaseException:
        connection.close()
        raise
    return connection


def _check(path: str, connection: sqlite3.Connection) -> None:
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > VERSION:
        raise StateTooNewError(path, version)
    answer = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if answer != "ok":
        raise sqlite3.DatabaseError(answer)


def _put_aside(path: str) -> str:
    number = 1
    while os.path.lexists(f"{path}.damaged-{number}"):
        number += 1
    aside = f"{path}.damaged-{number}"
    os.rename(path, aside)
    for tail in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            os.rename(path + tail, aside + tail)
    return aside
