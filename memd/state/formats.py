"""Check whether this memd can use a state file, and put one aside that it cannot use.

A file that SQLite calls damaged, of another program or of another format is renamed with its log:
that costs history, never a memory. Only one format was ever released.
"""

import os
import sqlite3
from contextlib import suppress
from typing import NamedTuple

FORMAT = 4
DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
# A new connection may succeed.
STUCK = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR)
_OF_DISK = (  # the next try may succeed
    *(*STUCK, sqlite3.SQLITE_FULL, sqlite3.SQLITE_PERM),
    *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL),
)
LOG = "-wal"  # what the name of SQLite's log appends to the file's name
# The patterns of what names of files that were put aside append; the last is of earlier versions.
PUT_ASIDE = (".damaged-*", ".other-*", ".format-*")


class OtherFormatError(sqlite3.DatabaseError):
    """The file is a database, but not of this format."""


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


def code_of(error: Exception) -> int:
    """Return SQLite's primary result code, 0 if the error is not from SQLite."""
    return int(getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


def is_of_disk(error: Exception) -> bool:
    """Return whether the disk, the file or a lock caused an error of SQLite, not a statement."""
    return code_of(error) in (*_OF_DISK, *DAMAGED)


def check_format(connection: sqlite3.Connection) -> None:
    """Give a new file this format. Raises OtherFormatError for a file of another one."""
    number = connection.execute("PRAGMA user_version").fetchone()[0]
    if number == FORMAT:
        return
    if number:
        sentence = f"it has format {number}, and this memd uses format {FORMAT}"
        raise OtherFormatError(sentence)
    if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        sentence = "it is of another program"
        raise OtherFormatError(sentence)
    connection.execute(f"PRAGMA user_version={FORMAT}")


def check(connection: sqlite3.Connection, *, thorough: bool) -> None:
    """Raise sqlite3.Error if a file is damaged; ``thorough`` also checks its indexes."""
    pragma = "integrity_check" if thorough else "quick_check"
    result = connection.execute(f"PRAGMA {pragma}(1)").fetchone()[0]
    if result != "ok":
        raise sqlite3.DatabaseError(result)


def put_aside(path: str, ending: str) -> str:
    """Rename a state file with its log, and return the new path; ``ending`` says what it is."""
    number = 1
    while os.path.lexists(f"{path}.{ending}-{number}"):
        number += 1
    new_path = f"{path}.{ending}-{number}"
    for part in ("", LOG, "-shm"):
        with suppress(FileNotFoundError):
            os.rename(path + part, new_path + part)
    return new_path
