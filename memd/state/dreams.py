"""Store the locks of dreams, and read what recent dreams removed.

Rules of this file
- A lock file's earlier mtime is stored here before the file is touched. The row is deleted only
  after the file has its final mtime. So a row that is found at start belongs to a crashed dream.
- The transaction that applies a dream's change set also makes the dream's own time the one to be
  restored (``save``). So the lock's time and the memories change together, even in a crash.
- Rows that cannot be read are skipped, so that a damaged file does not prevent a start.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from memd.base.text import read_object
from memd.base.values import LockTaken
from memd.state.database import Cursor, Database, Row

# Times in ns are text: a file system may hold one that does not fit SQLite's 64 bits.
SCHEMA = """
CREATE TABLE IF NOT EXISTS dream_locks (
    directory TEXT PRIMARY KEY,
    pid INTEGER NOT NULL,
    taken_ns TEXT NOT NULL,
    prior_ns TEXT
) STRICT;
"""


class LockRow(Struct, frozen=True):
    """A lock that a dream took or was about to take.

    ``pid`` is the process, 0 if the row was deleted before the dream's change set was applied.
    ``taken_ns`` is the dream's own time. ``prior_ns`` is the mtime to restore if the dream fails,
    ``None`` if there was no lock file; it equals ``taken_ns`` once the change set is applied.
    """

    directory: str
    pid: int
    taken_ns: int
    prior_ns: int | None

    @property
    def finished(self) -> bool:
        """Whether the dream's change set was applied, so that its time remains."""
        return self.prior_ns == self.taken_ns


def save(cursor: Cursor, effect: LockTaken) -> None:
    """Make the dream's time the one to restore, in the transaction that applies its change set.

    If a newer dream holds the lock by now, its failure restores this time.
    """
    taken = str(effect.taken_ns)
    cursor.execute(
        "INSERT INTO dream_locks VALUES (?, 0, ?, ?)"
        " ON CONFLICT (directory) DO UPDATE SET prior_ns = excluded.prior_ns",
        (effect.directory, taken, taken),
    )


class DreamTable:
    """The rows of dream locks. All methods block and raise StateUnusableError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def remember(self, row: LockRow) -> None:
        """Store a lock's row, before the lock file is taken."""
        prior = None if row.prior_ns is None else str(row.prior_ns)
        self._database.write(
            "INSERT OR REPLACE INTO dream_locks VALUES (?, ?, ?, ?)",
            (row.directory, row.pid, str(row.taken_ns), prior),
        )

    def forget(self, directory: str) -> None:
        """Delete the row of a lock whose file has its final mtime."""
        self._database.write("DELETE FROM dream_locks WHERE directory = ?", (directory,))

    def removed_since(self, directory: str, since: float) -> tuple[frozenset[str], dict[str, int]]:
        """Return the paths that dreams removed after ``since``, and the lost words by path.

        Only memories that were removed without merging them count; the words are those that other
        memories lost. Dreams that were undone count as well. ``since`` is seconds since 1970.
        """
        rows = self._database.read(
            "SELECT result FROM jobs WHERE kind = 'dream' AND directory = ? AND ended >= ?"
            " AND state = 'completed'",
            (directory, since),
        )
        removed: set[str] = set()
        lost_words: Counter[str] = Counter()  # by path
        for row in rows:
            facts = _facts_of_change(row["result"])
            removed.update(_removed_paths(facts.get("removed")))
            lost_words.update(_lost_words(facts.get("lost")))
        return frozenset(removed), dict(lost_words)

    def locks(self) -> tuple[LockRow, ...]:
        """Return all rows, in the order of their directories."""
        # As bytes, because one text that is no UTF-8 would make the whole query fail.
        rows = self._database.read(
            "SELECT CAST(directory AS BLOB) AS directory, pid, CAST(taken_ns AS BLOB) AS taken_ns,"
            " CAST(prior_ns AS BLOB) AS prior_ns FROM dream_locks ORDER BY directory"
        )
        locks = (_read_lock(row) for row in rows)
        return tuple(lock for lock in locks if lock is not None)


def _read_lock(row: Row) -> LockRow | None:
    """Return the lock in a row, or ``None`` if the row is damaged."""
    prior = row["prior_ns"]
    try:
        directory = row["directory"].decode()
        taken_ns = int(row["taken_ns"])
        prior_ns = None if prior is None else int(prior)
    except ValueError:
        return None
    has_valid_path = "\0" not in directory
    return LockRow(directory, row["pid"], taken_ns, prior_ns) if has_valid_path else None


def _facts_of_change(result: str | None) -> dict[str, Any]:
    """Return the facts in a dream job's result, or an empty dict if the dream changed nothing."""
    facts = read_object(result)
    return facts if facts.get("change") else {}


def _removed_paths(items: Any) -> Iterator[str]:
    """Yield the paths of removed memories from the list in a dream job's result.

    The state file may be damaged: any other value has none.
    """
    for item in items if isinstance(items, list) else ():
        path = item.get("path") if isinstance(item, dict) else None
        if isinstance(path, str):
            yield path


def _lost_words(words: Any) -> dict[str, int]:
    """Return the lost words by path from a dream job's result, without invalid numbers."""
    if not isinstance(words, dict):
        return {}
    return {path: number for path, number in words.items() if type(number) is int and number > 0}
