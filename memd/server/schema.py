"""The tables of the server's storage, the same in SQLite and PostgreSQL.

- ``versions`` has every version of every key. ``replaced`` is when the next version came; the
  newest version has none. A version without a hash is a tombstone.
- ``requests`` has the accepted writes by the id that the client gave them, with their answers.
- ``grants`` has the roles of members. Of tokens and invitations only the SHA-256 is stored.
"""

from memd.server.driver import Driver
from memd.server.errors import StorageFormatError

_FORMAT = 1
_OTHER_FORMAT = "another memd-team wrote it"
_CREATE = (
    (
        "CREATE TABLE IF NOT EXISTS repositories (id TEXT PRIMARY KEY, remote TEXT NOT NULL UNIQUE,"
        " epoch TEXT NOT NULL, revision INTEGER NOT NULL, oldest INTEGER NOT NULL,"
        " entries INTEGER NOT NULL, bytes INTEGER NOT NULL)"
    ),
    "CREATE TABLE IF NOT EXISTS members (name TEXT PRIMARY KEY, admin INTEGER NOT NULL)",
    (
        "CREATE TABLE IF NOT EXISTS grants (member TEXT NOT NULL, repository TEXT NOT NULL,"
        " role TEXT NOT NULL, PRIMARY KEY (member, repository))"
    ),
    (
        "CREATE TABLE IF NOT EXISTS tokens (number INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE,"
        " member TEXT NOT NULL, device TEXT NOT NULL, at REAL NOT NULL, expires REAL NOT NULL,"
        " revoked REAL)"
    ),
    (
        "CREATE TABLE IF NOT EXISTS invitations (hash TEXT PRIMARY KEY, member TEXT NOT NULL,"
        " expires REAL NOT NULL)"
    ),
    (
        "CREATE TABLE IF NOT EXISTS versions (repository TEXT NOT NULL, key TEXT NOT NULL,"
        " revision INTEGER NOT NULL, hash TEXT NOT NULL, size INTEGER NOT NULL, at REAL NOT NULL,"
        " member TEXT NOT NULL, device TEXT NOT NULL, reason TEXT NOT NULL, replaced REAL,"
        " content BLOB, PRIMARY KEY (repository, key, revision))"
    ),
    (
        "CREATE TABLE IF NOT EXISTS requests (token INTEGER NOT NULL, id TEXT NOT NULL,"
        " body TEXT NOT NULL, answer TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (token, id))"
    ),
    "CREATE TABLE IF NOT EXISTS format (version INTEGER NOT NULL)",
    (
        "CREATE INDEX IF NOT EXISTS pages ON versions (repository, revision, key)"
        " WHERE replaced IS NULL"
    ),
    "CREATE INDEX IF NOT EXISTS removals ON versions (member, at) WHERE hash = ''",
    (
        "CREATE INDEX IF NOT EXISTS old_texts ON versions (repository, key, revision, size)"
        " WHERE replaced IS NOT NULL AND content IS NOT NULL"
    ),
    # A key has one newest version.
    "CREATE UNIQUE INDEX IF NOT EXISTS heads ON versions (repository, key) WHERE replaced IS NULL",
)


def prepare(driver: Driver) -> None:
    """Create missing tables. Raises StorageFormatError if another memd-team wrote them."""
    with driver.writing() as transaction:
        driver.lock(transaction)
        for statement in _CREATE:
            transaction.run(statement)
        row = transaction.row("SELECT version FROM format")
        if row is None:
            transaction.run("INSERT INTO format (version) VALUES (?)", _FORMAT)
        elif row[0] != _FORMAT:
            raise StorageFormatError(_OTHER_FORMAT)
