"""Check a state file's format, migrate an older one after copying it, and rename a damaged one.

Rules of this file
- A file of a newer format is only read: no byte of it or of its log changes.
- Before a file is migrated it is copied to ``state.db.format-<old format>`` beside it, mode 0600.
  The copy is synced before it gets that name. So an older memd can be used again with it.
- At most two copies are kept, those of the newest formats. They contain texts, so a purge
  removes them, and retention removes them like history of their age (``daemon/retention.py``).
"""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from glob import escape, glob
from typing import NamedTuple
from urllib.parse import quote

from memd import __version__
from memd.state.errors import StateNotMigratedError, StateTooNewError, StateUnusableError

FORMAT = 3
DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
# A new connection may succeed.
STUCK = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR)
_OF_DISK = (  # the next try may succeed
    *(*STUCK, sqlite3.SQLITE_FULL, sqlite3.SQLITE_PERM),
    *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL),
)
# The errors of a migration that meets an unexpected row.
_MIGRATION_ERRORS = (sqlite3.Error, ValueError, TypeError, LookupError, AttributeError)
LOG = "-wal"  # what the name of SQLite's log appends to the file's name
COPIED = ".format-*"  # the pattern of what copies' names append to the file's name
_MOST_COPIES = 2
_WRITER = "SELECT version FROM written_by WHERE one = 1"
_WRITERS = (
    "CREATE TABLE IF NOT EXISTS written_by"
    " (one INTEGER PRIMARY KEY CHECK (one = 1), version TEXT NOT NULL) STRICT"
)


class FileIdentity(NamedTuple):
    """Device and inode of the state file and of its log, ``None`` for a missing one."""

    file: tuple[int, int] | None
    log: tuple[int, int] | None


def identity_of(path: str) -> FileIdentity:
    """Return the identity of the state file and its log that are there now. Raises OSError."""
    inodes: list[tuple[int, int] | None] = [None, None]
    for index, name in enumerate((path, path + LOG)):
        with suppress(FileNotFoundError):
            status = os.stat(name)
            inodes[index] = status.st_dev, status.st_ino
    return FileIdentity(*inodes)


def check_version(path: str) -> None:
    """Check the format of a state file, if there is one, without changing anything.

    Raises StateTooNewError, and StateUnusableError if it cannot be read.
    """
    try:
        refuse_newer(path)
    except (sqlite3.Error, OSError) as error:
        raise StateUnusableError(path, str(error)) from error


def refuse_newer(path: str) -> None:
    """Raise StateTooNewError if a newer memd wrote the file. Raises sqlite3.Error and OSError."""
    if not os.path.lexists(path):
        return
    try:
        number, writer = _written_by(path, "ro")
    except sqlite3.Error as error:
        if code_of(error) != sqlite3.SQLITE_READONLY:
            raise
        # A process that died while it created the file left a journal to roll back first.
        number, writer = _written_by(path, "rw")
    if number > FORMAT:
        usable_copies = [copy for copy_format, copy in copies(path) if copy_format <= FORMAT]
        newest_copy = usable_copies[0] if usable_copies else ""
        raise StateTooNewError(path, (number, FORMAT), (writer, __version__), newest_copy)


def _written_by(path: str, mode: str) -> tuple[int, str]:
    """Return the format of a file, and for a newer format the version of the memd that wrote it.

    The version is "" if it is unknown. ``mode`` is SQLite's, ``ro`` or ``rw``. Raises
    sqlite3.Error.
    """
    address = f"file:{quote(os.path.abspath(path))}?mode={mode}"
    with closing(sqlite3.connect(address, uri=True)) as connection:
        number, writer = format_of(connection), ""
        if number > FORMAT:
            with suppress(sqlite3.Error, TypeError):
                writer = str(connection.execute(_WRITER).fetchone()[0])
        return number, writer


def format_of(connection: sqlite3.Connection) -> int:
    """Return the format of an open file, 0 for a new one. Raises sqlite3.Error."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def code_of(error: Exception) -> int:
    """Return SQLite's primary result code, 0 if the error is not from SQLite."""
    return int(getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


def check(connection: sqlite3.Connection, *, thorough: bool) -> None:
    """Raise sqlite3.Error if a file is damaged; ``thorough`` also checks its indexes."""
    pragma = "integrity_check" if thorough else "quick_check"
    result = connection.execute(f"PRAGMA {pragma}(1)").fetchone()[0]
    if result != "ok":
        raise sqlite3.DatabaseError(result)


def is_of_disk(error: Exception) -> bool:
    """Return whether the disk, the file or a lock caused an error of SQLite, not a statement."""
    return code_of(error) in (*_OF_DISK, *DAMAGED)


def migrate_file(
    path: str, connection: sqlite3.Connection, migrate: Callable[[], None] | None
) -> str:
    """Migrate an open file of an older format, and store this memd's version in it.

    Return a sentence about the migration, "" if there was none. Raises StateNotMigratedError if
    the migration failed, sqlite3.Error and OSError if the disk did; then the file is unchanged.
    """
    number = format_of(connection)
    must_migrate = migrate is not None and 0 < number < FORMAT  # a new file has the format 0
    copy = copy_aside(path, connection, number) if must_migrate else ""
    connection.execute("BEGIN IMMEDIATE")
    try:
        if migrate is not None and must_migrate:
            migrate()
        _store_version(connection)
        connection.execute("COMMIT")
    except _MIGRATION_ERRORS as error:
        with suppress(sqlite3.Error):  # an open cursor would keep the transaction after closing
            connection.execute("ROLLBACK")
        if not must_migrate or is_of_disk(error):
            raise
        raise StateNotMigratedError(path, (number, FORMAT), str(error)) from error
    if not copy:
        return ""
    return f"the state file was brought from format {number} to {FORMAT}; as it was it is {copy}"


def _store_version(connection: sqlite3.Connection) -> None:
    """Store this memd's version and format in the file, inside a transaction."""
    connection.execute(_WRITERS)
    row = connection.execute(_WRITER).fetchone()
    if row is None or row[0] != __version__:
        connection.execute("INSERT OR REPLACE INTO written_by VALUES (1, ?)", (__version__,))
    connection.execute(f"PRAGMA user_version={FORMAT}")


def copies(path: str) -> list[tuple[int, str]]:
    """Return format and path of each copy beside a state file, the newest format first."""
    numbered = [(name.rpartition("-")[2], name) for name in glob(escape(path) + COPIED)]
    valid = [(int(number), name) for number, name in numbered if number.isdecimal()]
    return sorted(valid, reverse=True)


def copy_aside(path: str, connection: sqlite3.Connection, number: int) -> str:
    """Copy an open state file of the format ``number`` and return the copy's path.

    Copies of older formats that are too many are removed. Raises sqlite3.Error and OSError.
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
    for _, surplus_copy in copies(path)[_MOST_COPIES:]:
        os.unlink(surplus_copy)
    return copy


def forget_copies(path: str, before: float) -> None:
    """Remove copies that were made before a time, in seconds since 1970. Raises OSError."""
    for _, copy in copies(path):
        if os.stat(copy).st_mtime < before:
            os.unlink(copy)


def _sync_folder(folder: str) -> None:
    """Sync a folder, so that a rename in it survives a power cut."""
    descriptor = os.open(folder or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def rename_damaged(path: str) -> str:
    """Rename a damaged file with its log and return the new path."""
    number = 1
    while os.path.lexists(f"{path}.damaged-{number}"):
        number += 1
    new_path = f"{path}.damaged-{number}"
    for ending in ("", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            os.rename(path + ending, new_path + ending)
    return new_path
