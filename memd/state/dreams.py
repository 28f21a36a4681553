"""What dreams must not forget: the locks that they hold, and what they took away lately.

Rules of this file
- A lock's prior time is written here before the lock file is touched, and the row goes only after
  the file is settled. A row met at start belongs to a dream that a crash ended.
- The transaction that makes a dream's change true also makes the dream's own time the one to be
  put back (``save``). So the lock's time and the memories move together, whatever ends the process.
- Rows are input: one that cannot be read is as if it were not there, and keeps nothing from
  starting.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from memd.core.text import read_object
from memd.core.values import LockTaken
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


@dataclass(frozen=True, slots=True)
class LockRow:
    """A lock that was, or was about to be, taken: by whom, when, and what is to be put back.

    ``prior_ns`` is the lock file's earlier mtime, ``None`` when there was no file; it is
    ``taken_ns`` once the dream's change is true. ``pid`` 0 is a dream whose row had gone before.
    """

    directory: str
    pid: int
    taken_ns: int
    prior_ns: int | None

    @property
    def finished(self) -> bool:
        """Whether the dream's change is true, so that its time stands."""
        return self.prior_ns == self.taken_ns


def save(cursor: Cursor, effect: LockTaken) -> None:
    """Let the time of a dream stand, inside the transaction that makes its change true.

    Where a newer dream holds the lock by now, this time is what its failure puts back.
    """
    taken = str(effect.taken_ns)
    cursor.execute(
        "INSERT INTO dream_locks VALUES (?, 0, ?, ?)"
        " ON CONFLICT (directory) DO UPDATE SET prior_ns = excluded.prior_ns",
        (effect.directory, taken, taken),
    )


class DreamTable:
    """The durable rows of dreams. All methods block and raise StateUnusableError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def remember(self, row: LockRow) -> None:
        """Write down what a lock file was before it is taken."""
        prior = None if row.prior_ns is None else str(row.prior_ns)
        self._database.write(
            "INSERT OR REPLACE INTO dream_locks VALUES (?, ?, ?, ?)",
            (row.directory, row.pid, str(row.taken_ns), prior),
        )

    def forget(self, directory: str) -> None:
        """Drop the row of a lock that is settled."""
        self._database.write("DELETE FROM dream_locks WHERE directory = ?", (directory,))

    def lately(self, directory: str, since: float) -> tuple[frozenset[str], dict[str, int]]:
        """Return what dreams took away since a time, whether or not it was taken back.

        These are the memories that they removed without merging them, and how many words each of
        the others lost.
        """
        rows = self._database.read(
            "SELECT result FROM jobs WHERE kind = 'dream' AND directory = ? AND ended >= ?"
            " AND state = 'completed'",
            (directory, since),
        )
        results = [_changed(row["result"]) for row in rows]
        gone = frozenset(path for facts in results for path in _removed(facts.get("removed")))
        lost: Counter[str] = Counter()
        for facts in results:
            words = facts.get("lost")
            lost.update(
                {path: n for path, n in words.items() if type(n) is int and n > 0}
                if isinstance(words, dict)
                else {}
            )
        return gone, dict(lost)

    def locks(self) -> tuple[LockRow, ...]:
        """Return all rows, in the order of their directories."""
        # As bytes: one text that is no UTF-8 would spoil the reading of all.
        rows = self._database.read(
            "SELECT CAST(directory AS BLOB) AS directory, pid, CAST(taken_ns AS BLOB) AS taken_ns,"
            " CAST(prior_ns AS BLOB) AS prior_ns FROM dream_locks ORDER BY directory"
        )
        return tuple(lock for row in rows if (lock := _lock(row)) is not None)


def _lock(row: Row) -> LockRow | None:
    """Return a lock's row, ``None`` where it is none that memd wrote."""
    prior = row["prior_ns"]
    try:
        directory = row["directory"].decode()
        taken_ns, prior_ns = int(row["taken_ns"]), None if prior is None else int(prior)
    except ValueError:
        return None
    return None if "\0" in directory else LockRow(directory, row["pid"], taken_ns, prior_ns)


def _changed(result: str | None) -> dict[str, Any]:
    """Return what a dream's job says of a dream that changed something, else nothing."""
    facts = read_object(result)
    return facts if facts.get("change") else {}


def _removed(gone: Any) -> Iterator[str]:
    """Yield the memories that a dream's result says it removed."""
    for item in gone if isinstance(gone, list) else ():
        path = item.get("path") if isinstance(item, dict) else None
        if isinstance(path, str):
            yield path
