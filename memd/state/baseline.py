"""The baseline: the last known state of each file in each memory directory.

A difference from it is an external edit, which ``watch/external.py`` journals.

Rules of this file
- A directory has no baseline before its first scan, which fills it and counts as no change.
- The body of every file in the baseline is in the journal's ``blobs``, so that an overwritten text
  can be restored. Of files larger than a memory may be, only the hash is stored. Pruning keeps the
  blobs that a row of ``shadows`` names.
- A commit updates the baseline in the transaction that marks its change set applied, so memd's own
  writes never look like external edits.
- An empty fingerprint means that the hash is known, but the file's bytes have to be read again
  before its status is trusted.
"""

from collections.abc import Iterable, Mapping
from itertools import islice

from msgspec import Struct, field

from memd.state import blobs
from memd.state.database import Cursor, Database, Row
from memd.state.records import bounded

SCHEMA = """
CREATE TABLE IF NOT EXISTS shadows (
    directory TEXT NOT NULL,
    path TEXT NOT NULL,
    hash TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    mtime_ns INTEGER,
    mode INTEGER,
    PRIMARY KEY (directory, path)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS shadows_of_blob ON shadows (hash);
CREATE TABLE IF NOT EXISTS shadow_directories (
    directory TEXT PRIMARY KEY,
    at REAL NOT NULL
) WITHOUT ROWID;
"""
_FILES = "SELECT path, hash, fingerprint, mtime_ns, mode FROM shadows WHERE directory = ?"
_PAGE = 2000  # files; other threads may use the state file between two pages
_QUERY_PATHS = 500  # paths in one query; every build of SQLite takes 999 parameters


class FileState(Struct, frozen=True):
    """The last known state of a file: the SHA-256 of its bytes, and its status at that time.

    ``fingerprint`` is "" if the status does not prove that the bytes are unchanged. ``mtime_ns``
    and ``mode`` are ``None`` if the file was not inspected since memd wrote it.
    """

    hash: str
    fingerprint: str = ""
    mtime_ns: int | None = None
    mode: int | None = None


class BaselineChange(Struct, frozen=True):
    """New states of a baseline's files, and the texts that belong to them."""

    # By path; ``None`` for a file that was removed.
    states: Mapping[str, FileState | None] = field(default_factory=dict)
    bodies: Mapping[str, bytes] = field(default_factory=dict)  # compressed, by hash


class Baseline:
    """The baselines in the state file. All methods block and raise StateUnusableError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def is_scanned(self, directory: str) -> bool:
        """Return whether a directory has been scanned as a whole."""
        return bool(
            self._database.read(
                "SELECT 1 FROM shadow_directories WHERE directory = ?", (directory,)
            )
        )

    def fingerprints(self, directory: str) -> dict[str, str]:
        """Return the fingerprint of each file of a directory, by path."""
        result: dict[str, str] = {}
        last_path: object = ""
        while True:
            rows = self._database.read(
                "SELECT path, fingerprint FROM shadows WHERE directory = ? AND path > ?"
                " ORDER BY path LIMIT ?",
                (directory, last_path, _PAGE),
            )
            # The state file may be damaged, so a path need not be a text.
            result |= {path: value for path, value in rows if isinstance(path, str)}
            if len(rows) < _PAGE:
                return result
            last_path = rows[-1]["path"]

    def states(self, directory: str, paths: Iterable[str]) -> dict[str, FileState]:
        """Return the states of the given paths of a directory, without those not stored."""
        result: dict[str, FileState] = {}
        remaining = iter(paths)
        while batch := list(islice(remaining, _QUERY_PATHS)):
            slots = ",".join("?" * len(batch))
            rows = self._database.read(f"{_FILES} AND path IN ({slots})", (directory, *batch))
            for row in rows:
                if isinstance(row["path"], str):
                    result[row["path"]] = _state_of(row)
        return result

    def directories(self) -> tuple[str, ...]:
        """Return every directory that has been scanned as a whole."""
        rows = self._database.read("SELECT directory FROM shadow_directories ORDER BY directory")
        return tuple(row["directory"] for row in rows)

    def move(self, directory: str, moves: BaselineChange) -> None:
        """Update the baseline in a transaction of its own, without a change set in the journal."""
        with self._database.transaction() as cursor:
            move(cursor, directory, moves)

    def mark_scanned(self, directory: str, at: float) -> None:
        """Note that the whole directory is in the baseline; ``at`` is seconds since 1970."""
        self._database.write(
            "INSERT OR REPLACE INTO shadow_directories VALUES (?, ?)", (directory, at)
        )


def move(cursor: Cursor, directory: str, moves: BaselineChange) -> None:
    """Update a directory's baseline inside the caller's transaction."""
    blobs.save_packed(cursor, moves.bodies.items())
    cursor.executemany(
        "INSERT OR REPLACE INTO shadows (directory, path, hash, fingerprint, mtime_ns, mode)"
        " VALUES (?,?,?,?,?,?)",
        [
            (directory, path, state.hash, state.fingerprint, bounded(state.mtime_ns), state.mode)
            for path, state in moves.states.items()
            if state is not None
        ],
    )
    cursor.executemany(
        "DELETE FROM shadows WHERE directory = ? AND path = ?",
        [(directory, path) for path, state in moves.states.items() if state is None],
    )


def update_for_commit(
    cursor: Cursor, directory: str, files: Iterable[tuple[str, str | None, int | None]]
) -> None:
    """Update the baseline after a change set was applied, inside the caller's transaction.

    ``files`` are paths with the new hash (``None`` for a removed file) and the mode.
    """
    states: dict[str, FileState | None] = {}
    for path, new_hash, mode in files:
        states[path] = None if new_hash is None else FileState(new_hash, mode=mode)
    move(cursor, directory, BaselineChange(states))


def _state_of(row: Row) -> FileState:
    """Return the state in a row, or one with an empty hash if the row is damaged."""
    body_hash, fingerprint = row["hash"], row["fingerprint"]
    mtime_ns, mode = row["mtime_ns"], row["mode"]
    has_texts = type(body_hash) is str and type(fingerprint) is str
    has_numbers = type(mtime_ns or 0) is int and type(mode or 0) is int
    if not has_texts or not has_numbers:
        return FileState("")
    return FileState(body_hash, fingerprint, mtime_ns, mode)
