"""Back up a storage, restore it, copy it to another database, and check it.

Rules of this file
- A copy has the state of one instant. It is complete, or it does not exist.
- A backup is a storage in one SQLite file, whichever database it was made from.
- A restored storage lacks the writes after its backup, which members may have seen. So it gets new
  epochs and much higher revisions: no base of a member matches a different text by chance.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import closing, suppress

from memd.core.team import REMOVED
from memd.core.text import sha256
from memd.server import checking
from memd.server.accepting import OPERATOR, audit
from memd.server.driver import Driver, Row, Transaction
from memd.server.errors import BACKUP, NotEmptyError, NotThereError, StorageFormatError
from memd.server.schema import NUMBERED, OTHER_FORMAT, TABLES, VERSION, Table, prepare
from memd.server.sqlite import SQLite

_MISCOUNTED = (
    "SELECT id FROM repositories LEFT JOIN versions"
    " ON repository = id AND replaced IS NULL AND hash <> ''"
    " GROUP BY id, entries, bytes HAVING count(key) <> entries OR coalesce(sum(size), 0) <> bytes"
)
_ROWS = 100  # read at a time: each may have 64 KiB
_UNKNOWN_REVISIONS = 1_000_000  # more than there are between a backup and its restore


def backup(source: Driver, path: str) -> None:
    """Write a backup to a new file, mode 0600. Raises NotEmptyError if the file exists."""
    folder = os.path.dirname(os.path.abspath(path))
    os.stat(folder)  # a missing one is not made: it may be a disk that is not mounted
    temporary = f"{path}.part"
    with suppress(FileNotFoundError):
        os.unlink(temporary)
    with closing(SQLite(temporary)) as target:
        prepare(target)
        migrate(source, target)
    _make_durable(temporary)
    try:
        os.link(temporary, path)  # unlike a rename it replaces nothing
    except FileExistsError as error:
        raise NotEmptyError from error
    finally:
        os.unlink(temporary)
    _make_durable(folder)


def restore(path: str, target: Driver, *, now: float) -> None:
    """Fill an empty storage from a backup, with new epochs.

    Tokens that were revoked after the backup was made are valid again. Invitations are removed.
    Raises NotThereError, NotEmptyError and StorageFormatError.
    """
    if not os.path.isfile(path):
        raise NotThereError(BACKUP)
    with closing(SQLite(path)) as source, source.reading() as reading, target.writing() as writing:
        _copy(reading, writing)
        writing.run("DELETE FROM invitations")
        for (repository,) in writing.rows("SELECT id FROM repositories"):
            writing.run(
                "UPDATE repositories SET epoch = ?, revision = revision + ? WHERE id = ?",
                *(secrets.token_hex(8), _UNKNOWN_REVISIONS, repository),
            )
        audit(writing, OPERATOR, now, "restore")


def migrate(source: Driver, target: Driver) -> None:
    """Copy a storage, while no server runs on it, to an empty one. Raises NotEmptyError."""
    with source.reading() as reading, target.writing() as writing:
        _copy(reading, writing)


def check(driver: Driver) -> tuple[str, ...]:
    """Return a sentence for each problem of a storage; all hashes are computed again."""
    with driver.reading() as transaction:
        problems = driver.damage(transaction)
        revisions: dict[str, int] = dict(transaction.rows("SELECT id, revision FROM repositories"))
        problems += [
            f"{row[0]}: the entries are not as many as counted"
            for row in transaction.rows(_MISCOUNTED)
        ]
        versions = next(table for table in TABLES if table.name == "versions")
        for rows in _chunks(transaction, versions):
            for row in rows:
                repository, key, revision = row[:3]
                place = f"{repository} {checking.shown(key)} {revision}"
                newest = revisions.get(repository, 0)
                problems += [f"{place}: {problem}" for problem in _problems(row, newest)]
    return tuple(problems)


def _problems(row: Row, newest: int) -> Iterator[str]:
    """Yield the problems of a version; ``newest`` is the revision of its repository."""
    _, key, revision, digest, size, *_, replaced, content = row
    if not checking.is_key(key):
        yield "the key is none"
    if not 0 < revision <= newest:
        yield "the repository has no such revision"
    if content is not None and (sha256(content) != digest or len(content) != size):
        yield "the content is not what was accepted"
    has_wrong_content = (content is None) != (digest == REMOVED)
    if has_wrong_content and replaced is None:  # the texts of older versions expire
        yield "a live entry has no content, or a removed one has"


def _copy(source: Transaction, target: Transaction) -> None:
    """Copy all rows into tables that have none. Raises NotEmptyError, StorageFormatError."""
    if source.row(VERSION) != target.row(VERSION):
        raise StorageFormatError(OTHER_FORMAT)
    for table in TABLES:
        if target.row(f"SELECT 1 FROM {table.name}") is not None:  # noqa: S608 - our own names
            raise NotEmptyError
        for rows in _chunks(source, table):
            places = ", ".join("?" * len(rows[0]))
            target.run_many(f"INSERT INTO {table.name} VALUES ({places})", rows)  # noqa: S608 - as above
        if table.name in NUMBERED:
            target.renumber(table.name)


def _chunks(transaction: Transaction, table: Table) -> Iterator[list[Row]]:
    """Yield the rows of a table in the order of its key, some at a time.

    The key consists of the first columns.
    """
    columns = len(table.key.split(","))
    after_key = f"WHERE ({table.key}) > ({', '.join('?' * columns)})"
    where, last_key = "", ()
    query = f"SELECT * FROM {table.name} %s ORDER BY {table.key} LIMIT {_ROWS}"  # noqa: S608 - as above
    while rows := transaction.rows(query % where, *last_key):
        yield rows
        where, last_key = after_key, rows[-1][:columns]


def _make_durable(path: str) -> None:
    """Make a file or folder durable on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
