"""The tables of the server's storage, the same in SQLite and PostgreSQL.

- ``versions`` has every version of every key. ``replaced`` is when the next version came; the
  newest version has none. A version without a hash is a tombstone.
- ``requests`` has the accepted writes by the id that the client gave them, with their answers.
- ``grants`` has the roles of members. Of tokens and invitations only the SHA-256 is stored.
"""

from msgspec import Struct

from memd.server.driver import Driver
from memd.server.errors import StorageFormatError

_FORMAT = 1
VERSION = "SELECT version FROM format"
OTHER_FORMAT = "another memd-team wrote it"


class Table(Struct, frozen=True):
    """A table: its name, the columns of its key, and its columns in SQL."""

    name: str
    key: str
    columns: str


TABLES = (
    Table(
        "repositories",
        "id",
        "id TEXT PRIMARY KEY, remote TEXT NOT NULL UNIQUE, epoch TEXT NOT NULL,"
        " revision INTEGER NOT NULL, oldest INTEGER NOT NULL, entries INTEGER NOT NULL,"
        " bytes INTEGER NOT NULL",
    ),
    Table("members", "name", "name TEXT PRIMARY KEY, admin INTEGER NOT NULL"),
    Table(
        "grants",
        "member, repository",
        "member TEXT NOT NULL, repository TEXT NOT NULL, role TEXT NOT NULL,"
        " PRIMARY KEY (member, repository)",
    ),
    Table(
        "tokens",
        "number",
        "number INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, member TEXT NOT NULL,"
        " device TEXT NOT NULL, at REAL NOT NULL, expires REAL NOT NULL, revoked REAL",
    ),
    Table(
        "invitations",
        "hash",
        "hash TEXT PRIMARY KEY, member TEXT NOT NULL, expires REAL NOT NULL",
    ),
    Table(
        "versions",
        "repository, key, revision",
        "repository TEXT NOT NULL, key TEXT NOT NULL, revision INTEGER NOT NULL,"
        " hash TEXT NOT NULL, size INTEGER NOT NULL, at REAL NOT NULL, member TEXT NOT NULL,"
        " device TEXT NOT NULL, reason TEXT NOT NULL, replaced REAL, content BLOB,"
        " PRIMARY KEY (repository, key, revision)",
    ),
    Table(
        "requests",
        "token, id",
        "token INTEGER NOT NULL, id TEXT NOT NULL, body TEXT NOT NULL, answer TEXT NOT NULL,"
        " at REAL NOT NULL, PRIMARY KEY (token, id)",
    ),
    Table(
        "audit",
        "number",
        "number INTEGER PRIMARY KEY, at REAL NOT NULL, repository TEXT NOT NULL,"
        " member TEXT NOT NULL, device TEXT NOT NULL, address TEXT NOT NULL, act TEXT NOT NULL,"
        " key TEXT NOT NULL, hash_before TEXT NOT NULL, hash_after TEXT NOT NULL",
    ),
)
NUMBERED = ("tokens", "audit")  # tables in which the database numbers the rows
_INDEXES = (
    "INDEX IF NOT EXISTS pages ON versions (repository, revision, key) WHERE replaced IS NULL",
    "INDEX IF NOT EXISTS removals ON versions (member, at) WHERE hash = ''",
    "INDEX IF NOT EXISTS ages ON versions (replaced) WHERE content IS NOT NULL",
    "INDEX IF NOT EXISTS audit_ages ON audit (at)",
    "INDEX IF NOT EXISTS request_ages ON requests (at)",
    # A key has one newest version.
    "UNIQUE INDEX IF NOT EXISTS heads ON versions (repository, key) WHERE replaced IS NULL",
)
_CREATE = (
    *(f"CREATE TABLE IF NOT EXISTS {table.name} ({table.columns})" for table in TABLES),
    *(f"CREATE {index}" for index in _INDEXES),
    "CREATE TABLE IF NOT EXISTS format (version INTEGER NOT NULL, expired REAL NOT NULL DEFAULT 0)",
)


def prepare(driver: Driver) -> None:
    """Create missing tables. Raises StorageFormatError if another memd-team wrote them."""
    with driver.writing() as transaction:
        driver.lock(transaction)
        for statement in _CREATE:
            transaction.run(statement)
        row = transaction.row(VERSION)
        if row is None:
            transaction.run("INSERT INTO format (version) VALUES (?)", _FORMAT)
        elif row[0] != _FORMAT:
            raise StorageFormatError(OTHER_FORMAT)
