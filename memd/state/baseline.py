"""The baseline: what memd last knew of each file of each memory directory.

Whatever differs from it was done by somebody else, and ``watch/external.py`` journals it. Rules:
- A directory that was never looked at has no baseline; its first sight fills it and is no change.
- The body of every file in the baseline lies in the journal's ``blobs``, so that what others
  overwrite can be brought back; only the hash is known of what is larger than a memory may be.
  Pruning keeps the blobs that a row of ``shadows`` names.
- A commit moves the baseline in the transaction that marks it applied. So a set is either not
  finished, or its files are no surprise.
- An empty fingerprint says: the hash is known, look at the bytes before trusting the status.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice

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
_FILES = "SELECT path, hash, fingerprint, mtime_ns, mode FROM shadows WHERE directory = ?1"
_PAGE = 2000  # files; between two pages others may use the state file
_PART = 500  # paths in one question; SQLite takes 999 everywhere


@dataclass(frozen=True, slots=True)
class FileState:
    """One file as memd last knew it: the SHA-256 of its bytes, and its status then.

    ``fingerprint`` is "" where the status cannot vouch for the bytes. ``mtime_ns`` and ``mode``
    are ``None`` where nobody has looked since memd wrote it.
    """

    hash: str
    fingerprint: str = ""
    mtime_ns: int | None = None
    mode: int | None = None


@dataclass(frozen=True, slots=True)
class BaselineChange:
    """How a baseline changes: files by path (``None``: gone), and packed bodies by hash."""

    states: Mapping[str, FileState | None] = field(default_factory=dict)
    bodies: Mapping[str, bytes] = field(default_factory=dict)


class Baseline:
    """The baselines in the state file. All methods block and raise StateUnusableError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def knows(self, directory: str) -> bool:
        """Say whether a directory was ever looked at."""
        return bool(
            self._database.read(
                "SELECT 1 FROM shadow_directories WHERE directory = ?", (directory,)
            )
        )

    def fingerprints(self, directory: str) -> dict[str, str]:
        """Return the fingerprint of each file of a directory, by path."""
        result: dict[str, str] = {}
        last: object = ""
        while True:
            rows = self._database.read(
                "SELECT path, fingerprint FROM shadows WHERE directory = ? AND path > ?"
                " ORDER BY path LIMIT ?",
                (directory, last, _PAGE),
            )
            result.update((path, mark) for path, mark in rows if isinstance(path, str))
            if len(rows) < _PAGE:
                return result
            last = rows[-1]["path"]

    def some(self, directory: str, paths: Iterable[str]) -> dict[str, FileState]:
        """Return those of some files of a directory that are known, by path."""
        result: dict[str, FileState] = {}
        left = iter(paths)
        while part := list(islice(left, _PART)):
            places = ",".join("?" * len(part))
            rows = self._database.read(f"{_FILES} AND path IN ({places})", (directory, *part))
            result |= {r["path"]: _state_of(r) for r in rows if isinstance(r["path"], str)}
        return result

    def directories(self) -> tuple[str, ...]:
        """Return every directory that was ever looked at."""
        rows = self._database.read("SELECT directory FROM shadow_directories ORDER BY directory")
        return tuple(row["directory"] for row in rows)

    def move(self, directory: str, moves: BaselineChange) -> None:
        """Take over what a look has found, without a change of the history."""
        with self._database.transaction() as cursor:
            move(cursor, directory, moves)

    def seen(self, directory: str, at: float) -> None:
        """Say that the whole directory is in the baseline; ``at`` is seconds since 1970."""
        self._database.write(
            "INSERT OR REPLACE INTO shadow_directories VALUES (?, ?)", (directory, at)
        )


def move(cursor: Cursor, directory: str, moves: BaselineChange) -> None:
    """Change rows of a baseline inside the caller's transaction."""
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


def committed(
    cursor: Cursor, directory: str, files: Iterable[tuple[str, str | None, int | None]]
) -> None:
    """Let the baseline follow a set that was applied: path, new hash (``None``: gone), and mode."""
    states = {path: None if key is None else FileState(key, mode=mode) for path, key, mode in files}
    move(cursor, directory, BaselineChange(states))


def _state_of(row: Row) -> FileState:
    texts, numbers = (row["hash"], row["fingerprint"]), (row["mtime_ns"] or 0, row["mode"] or 0)
    sane = {type(text) for text in texts} == {str} and {type(n) for n in numbers} == {int}
    return FileState(*texts, row["mtime_ns"], row["mode"]) if sane else FileState("")
