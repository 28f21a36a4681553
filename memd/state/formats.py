"""The format of a state file: which one it is, who wrote it, and a copy before it is changed.

Rules of this file
- A newer file is only looked at: not a byte of it or of its log changes.
- Before a file gets a new format a copy is made beside it: ``state.db.format-<the old one>``, 0600,
  brought to the disk whole before it has its name. So whoever goes back has the state of that day.
- At most ``_COPIES`` are kept, of the newest formats; they hold texts, so a purge removes them, and
  they go when history of their age goes (``daemon/retention.py``).
"""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from glob import escape, glob
from urllib.parse import quote

from memd import __version__
from memd.state.errors import StateNotMigratedError, StateTooNewError, StateUnusableError

Migrate = Callable[[sqlite3.Cursor], None]

FORMAT = 3
DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
STUCK = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)  # a new connection may do better
_OF_DISK = (  # the next try may do better
    *STUCK,
    *(sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED),
)
# How code fails that meets a row nobody thought of.
_UNFORESEEN = (sqlite3.Error, ValueError, TypeError, LookupError, AttributeError)
COPIED = ".format-*"  # how the names of copies go on
_COPIES = 2
_WRITER = "SELECT version FROM written_by WHERE one = 1"
_WRITERS = (
    "CREATE TABLE IF NOT EXISTS written_by"
    " (one INTEGER PRIMARY KEY CHECK (one = 1), version TEXT NOT NULL) STRICT"
)


def check_version(path: str) -> None:
    """Look at a state file, if there is one, without changing anything.

    Raises StateTooNewError, and StateUnusableError where it cannot be looked at.
    """
    try:
        refuse_newer(path)
    except (sqlite3.Error, OSError) as error:
        raise StateUnusableError(path, str(error)) from error


def refuse_newer(path: str) -> None:
    """Raise StateTooNewError where a newer memd wrote the file; sqlite3.Error and OSError."""
    if not os.path.lexists(path):
        return
    address = f"file:{quote(os.path.abspath(path))}?mode=ro"
    with closing(sqlite3.connect(address, uri=True)) as connection:
        number = format_of(connection)
        if number <= FORMAT:
            return
        writer = ""
        with suppress(sqlite3.Error, TypeError):
            writer = str(connection.execute(_WRITER).fetchone()[0])
    copy = next((copy for number, copy in copies(path) if number <= FORMAT), "")
    raise StateTooNewError(path, (number, FORMAT), (writer, __version__), copy)


def format_of(connection: sqlite3.Connection) -> int:
    """Return the format of an open file, 0 for one without tables. Raises sqlite3.Error."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def code_of(error: Exception) -> int:
    """Return SQLite's primary result code, 0 where the error is Python's own."""
    return int(getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


def bring_up(path: str, connection: sqlite3.Connection, migrate: Migrate | None) -> str:
    """Bring an open file to this format and return in words what was done, "" for nothing.

    Raises StateNotMigratedError, and sqlite3.Error and OSError for what the disk refuses; the file
    is as before then.
    """
    number = format_of(connection)
    older = migrate is not None and 0 < number < FORMAT
    copy = copy_aside(path, connection, number) if older else ""
    connection.execute("BEGIN IMMEDIATE")
    try:
        if migrate is not None and older:
            migrate(connection.cursor())
        _sign(connection)
        connection.execute("COMMIT")
    except _UNFORESEEN as error:
        with suppress(sqlite3.Error):  # an open cursor would keep the transaction beyond the file
            connection.execute("ROLLBACK")
        if not older or code_of(error) in (*_OF_DISK, *DAMAGED):
            raise
        raise StateNotMigratedError(path, (number, FORMAT), str(error)) from error
    if not copy:
        return ""
    return f"the state file was brought from format {number} to {FORMAT}; as it was it is {copy}"


def _sign(connection: sqlite3.Connection) -> None:
    """Write down that this memd writes the file, inside a transaction."""
    connection.execute(_WRITERS)
    row = connection.execute(_WRITER).fetchone()
    if row is None or row[0] != __version__:
        connection.execute("INSERT OR REPLACE INTO written_by VALUES (1, ?)", (__version__,))
    connection.execute(f"PRAGMA user_version={FORMAT}")


def copies(path: str) -> list[tuple[int, str]]:
    """Return the copies beside a state file with their formats, the newest first."""
    numbered = [(name.rpartition("-")[2], name) for name in glob(escape(path) + COPIED)]
    return sorted(((int(end), name) for end, name in numbered if end.isdecimal()), reverse=True)


def copy_aside(path: str, connection: sqlite3.Connection, number: int) -> str:
    """Copy an open state file of an older format and return the copy's path.

    Raises sqlite3.Error and OSError; then there is no new copy, and older ones are as before.
    """
    copy = f"{path}.format-{number}"
    draft = f"{copy}.part"
    with suppress(FileNotFoundError):
        os.unlink(draft)
    descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with closing(sqlite3.connect(draft)) as target:
            connection.backup(target)
        os.fsync(descriptor)
        os.rename(draft, copy)
    except BaseException:
        os.unlink(draft)
        raise
    finally:
        os.close(descriptor)
    _sync_folder(os.path.dirname(path))
    for _, old in copies(path)[_COPIES:]:
        os.unlink(old)
    return copy


def forget_copies(path: str, before: float) -> None:
    """Remove copies that were made before a time, in seconds since 1970. Raises OSError."""
    for _, copy in copies(path):
        if os.stat(copy).st_mtime < before:
            os.unlink(copy)


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
