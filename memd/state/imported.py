"""Store what imports bring: originals of files, and past changes of archives (only for reading).

Rules of this file
- The original of a file counts only while the file has the hash ``live``. So a row that was written
  before its change set, or that outlives it, is harmless.
- A body is one of the journal's blobs. Rows are written before or with their bodies, and retention
  keeps the bodies that a row names.
- Damaged rows are skipped.
"""

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import islice

import msgspec
from msgspec.structs import replace

from memd.core.imports import Original, PastChange
from memd.core.text import sha256
from memd.core.values import Imported
from memd.state import blobs
from memd.state.database import Cursor, Database

# ``newest`` is the number of the newest change at that time, which shows how old the row is.
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
_NEWEST = "(SELECT coalesce(max(id), 0) FROM changes)"
_LIVE = "SELECT hash FROM shadows WHERE (directory, path) = (?, ?)"
_BODIES_AT_ONCE = 100  # saved in one transaction, for which other threads wait
_read_originals = msgspec.json.Decoder(list[Original]).decode
_read_change = msgspec.json.Decoder(PastChange).decode


class ImportTable:
    """The originals and past changes of imports. Methods block and raise StateUnusableError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of_directory(self, directory: str) -> Mapping[tuple[str, str], Original]:
        """Return a directory's originals by path and by the hash of the text that memd wrote."""
        rows = self._database.read(
            "SELECT path, exported, live, origin, kind FROM imported_files"
            " WHERE directory = ? AND live <> ''",
            (os.path.realpath(directory),),
        )
        # The state file may be damaged, so a value need not be a text.
        valid_rows = [row for row in rows if all(type(value) is str for value in row)]
        originals = [Original(*row) for row in valid_rows]
        return {(original.path, original.live): original for original in originals}

    def record(
        self, directory: str, originals: Iterable[Original], bodies: Mapping[str, bytes], at: float
    ) -> None:
        """Store originals and their bodies, given by hash, before the change set is applied.

        The effect ``Imported`` of that set fills in ``live`` for originals without it.
        """
        real_path = os.path.realpath(directory)
        with self._database.transaction() as cursor:
            _insert_originals(cursor, real_path, originals, at)
        self._save_bodies(bodies.items())

    def body(self, body_hash: str) -> bytes | None:
        """Return the body with this hash, or ``None`` if it is missing or was purged."""
        return blobs.read(self._database, body_hash)

    def past(self, directory: str) -> tuple[PastChange, ...]:
        """Return the past changes that archives brought for a directory, oldest first."""
        rows = self._database.read(  # as bytes, since one that is no UTF-8 would fail the query
            "SELECT CAST(value AS BLOB) AS value FROM past_changes WHERE directory = ?"
            " ORDER BY number",
            (os.path.realpath(directory),),
        )
        result = []
        for row in rows:
            # The errors of msgspec and of UTF-8 are ValueErrors.
            with suppress(ValueError, RecursionError):
                result.append(_read_change(row["value"]))
        return tuple(result)

    def add_past(
        self,
        directory: str,
        changes: Iterable[PastChange],
        bodies: Iterable[tuple[str, bytes]],
        at: float,
    ) -> int:
        """Store past changes, given oldest first, and bodies with their hashes.

        Return how many changes were new. The n-th of several equal changes is new if fewer than n
        are stored, so a repeated import adds nothing.
        """
        real_path = os.path.realpath(directory)
        new_changes = 0
        occurrences = Counter[str]()  # of equal changes, by digest
        with self._database.transaction() as cursor:
            for change in changes:
                value = msgspec.json.encode(change)
                digest = sha256(value)
                occurrences[digest] += 1
                cursor.execute(
                    "INSERT OR IGNORE INTO past_changes"  # noqa: S608 - fixed words
                    f" (directory, digest, occurrence, value, at, newest)"
                    f" VALUES (?, ?, ?, ?, ?, {_NEWEST})",
                    (real_path, digest, occurrences[digest], value.decode(), at),
                )
                is_new = cursor.rowcount == 1
                if is_new:
                    new_changes += 1
                    _insert_body_names(cursor, cursor.lastrowid or 0, change)
        self._save_bodies(bodies)
        return new_changes

    def hashes(self, directory: str, path: str) -> frozenset[str]:
        """Return the hashes of all texts that imports brought for one file of a directory."""
        place = (os.path.realpath(directory), path)
        rows = self._database.read(
            "SELECT exported AS hash FROM imported_files WHERE (directory, path) = (?1, ?2)"
            " UNION SELECT hash FROM past_bodies JOIN past_changes USING (number)"
            " WHERE (directory, path) = (?1, ?2)",
            place,
        )
        return frozenset(row["hash"] for row in rows)

    def _save_bodies(self, bodies: Iterable[tuple[str, bytes]]) -> None:
        """Store bodies, given with their hashes, in several short transactions."""
        remaining = iter(bodies)
        while batch := dict(islice(remaining, _BODIES_AT_ONCE)):
            with self._database.transaction() as cursor:
                blobs.save(cursor, batch)


def store_originals(cursor: Cursor, directory: str, effect: Imported, at: float) -> None:
    """Store the originals of an import, in the transaction that applies its change set.

    An original without ``live`` gets the file's hash from the baseline.
    """
    try:
        originals = _read_originals(effect.files)
    except (ValueError, RecursionError):
        return
    complete = []
    for original in originals:
        cursor.execute(_LIVE, (directory, original.path))
        row = cursor.fetchone()
        # The baseline was updated earlier in this transaction.
        if original.live or row is not None:
            complete.append(replace(original, live=original.live or row["hash"]))
    cursor.executemany(
        "DELETE FROM imported_files WHERE (directory, path, live) = (?, ?, '')",
        [(directory, original.path) for original in originals],
    )
    _insert_originals(cursor, directory, complete, at)


def _insert_originals(
    cursor: Cursor, directory: str, originals: Iterable[Original], at: float
) -> None:
    """Insert the rows of originals inside the caller's transaction."""
    cursor.executemany(
        f"INSERT OR REPLACE INTO imported_files VALUES (?, ?, ?, ?, ?, ?, ?, {_NEWEST})",  # noqa: S608 - fixed words
        [(directory, o.path, o.live, o.exported, o.origin, o.kind, at) for o in originals],
    )


def _insert_body_names(cursor: Cursor, number: int, change: PastChange) -> None:
    """Store the hashes of a past change's bodies, so that retention keeps these."""
    rows = {
        (body_hash, number, file.path)
        for file in change.files
        for body_hash in (file.before, file.after)
        if body_hash
    }
    cursor.executemany("INSERT OR IGNORE INTO past_bodies VALUES (?, ?, ?)", list(rows))
