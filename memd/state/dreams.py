"""What dreams must not forget: the locks they hold and the proposals they left.

Rules of this file
- A lock's prior time is written here before the lock file is touched, and the row goes only after
  the file is settled (spec 5.2). A row met at start belongs to a dream that a crash ended.
- The transaction that makes a dream's change true also makes the dream's own time the one to be
  put back (``keep``). So the lock's time and the memories move together, whatever ends the process.
- A proposal is what a dream wanted and the judge did not let through; nothing of it was done.
"""

import json
from dataclasses import dataclass
from typing import Any

from memd.core.values import LockKept
from memd.state.database import Cursor, Database

# Times in ns are text: a file system may hold one that does not fit SQLite's 64 bits.
SCHEMA = """
CREATE TABLE IF NOT EXISTS dream_locks (
    directory TEXT PRIMARY KEY,
    pid INTEGER NOT NULL,
    taken_ns TEXT NOT NULL,
    prior_ns TEXT
) STRICT;
CREATE TABLE IF NOT EXISTS proposals (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    directory TEXT NOT NULL,
    job TEXT NOT NULL,
    at REAL NOT NULL,
    content TEXT NOT NULL
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
    def kept(self) -> bool:
        """Whether the dream's change is true, so that its time stands."""
        return self.prior_ns == self.taken_ns


@dataclass(frozen=True, slots=True)
class Proposal:
    """A dream that was not committed; ``content`` is JSON: edits, report and the problems."""

    id: str
    directory: str
    job: str
    at: float
    content: dict[str, Any]


def keep(cursor: Cursor, effect: LockKept) -> None:
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
        with self._database.transaction() as cursor:
            cursor.execute(
                "INSERT OR REPLACE INTO dream_locks VALUES (?, ?, ?, ?)",
                (row.directory, row.pid, str(row.taken_ns), prior),
            )

    def forget(self, directory: str) -> None:
        """Drop the row of a lock that is settled."""
        with self._database.transaction() as cursor:
            cursor.execute("DELETE FROM dream_locks WHERE directory = ?", (directory,))

    def locks(self) -> tuple[LockRow, ...]:
        """Return all rows, in the order of their directories."""
        rows = self._database.read("SELECT * FROM dream_locks ORDER BY directory")
        return tuple(
            LockRow(
                directory=row["directory"],
                pid=row["pid"],
                taken_ns=int(row["taken_ns"]),
                prior_ns=None if row["prior_ns"] is None else int(row["prior_ns"]),
            )
            for row in rows
        )

    def propose(self, directory: str, job: str, at: float, content: dict[str, Any]) -> str:
        """Keep a proposal and return its id."""
        with self._database.transaction() as cursor:
            cursor.execute(
                "INSERT INTO proposals (directory, job, at, content) VALUES (?, ?, ?, ?)",
                (directory, job, at, json.dumps(content)),
            )
            return f"p{cursor.lastrowid}"

    def proposals(self, directory: str) -> tuple[Proposal, ...]:
        """Return the proposals for one memory directory, the newest first."""
        rows = self._database.read(
            "SELECT * FROM proposals WHERE directory = ? ORDER BY number DESC", (directory,)
        )
        return tuple(
            Proposal(
                id=f"p{row['number']}",
                directory=row["directory"],
                job=row["job"],
                at=row["at"],
                content=json.loads(row["content"]),
            )
            for row in rows
        )
