"""What imports of earlier versions stored: originals of files, and past changes of archives.

Nothing writes these rows any more. As long as a state file has them, a purge also removes their
texts, and retention keeps the bodies that they name.
"""

import os

from memd.state.database import Database

SCHEMA = """
CREATE TABLE IF NOT EXISTS imported_files (
    directory TEXT NOT NULL,
    path TEXT NOT NULL,
    live TEXT NOT NULL,
    exported TEXT NOT NULL,
    origin TEXT NOT NULL,
    kind TEXT NOT NULL,
    at REAL NOT NULL,
    newest INTEGER NOT NULL,
    PRIMARY KEY (directory, path, live)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS imported_files_exported ON imported_files (exported);
CREATE INDEX IF NOT EXISTS imported_files_by_age ON imported_files (at);
CREATE TABLE IF NOT EXISTS past_changes (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    directory TEXT NOT NULL,
    digest TEXT NOT NULL,
    occurrence INTEGER NOT NULL,
    value TEXT NOT NULL,
    at REAL NOT NULL,
    newest INTEGER NOT NULL,
    UNIQUE (directory, digest, occurrence)
);
CREATE INDEX IF NOT EXISTS past_changes_by_age ON past_changes (at);
CREATE TABLE IF NOT EXISTS past_bodies (
    hash TEXT NOT NULL,
    number INTEGER NOT NULL,
    path TEXT NOT NULL,
    PRIMARY KEY (hash, number, path)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS past_bodies_of_change ON past_bodies (number);
"""


def hashes(database: Database, directory: str, path: str) -> frozenset[str]:
    """Return the hashes of all texts that such imports brought for one file of a directory."""
    rows = database.read(
        "SELECT exported AS hash FROM imported_files WHERE (directory, path) = (?1, ?2)"
        " UNION SELECT hash FROM past_bodies JOIN past_changes USING (number)"
        " WHERE (directory, path) = (?1, ?2)",
        (os.path.realpath(directory), path),
    )
    return frozenset(row["hash"] for row in rows)
