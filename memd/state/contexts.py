"""What was decided about the results of conversations, and how large these are.

A session is its folder. Its decisions are rows of six texts and numbers, which the room ``context``
gives their meaning: call, hash, action, content, path, size. The primary key is what a decision is
about, so a decision that is written again replaces the one before.
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass

from memd.state.database import Database

SCHEMA = """
CREATE TABLE IF NOT EXISTS context_decisions (
    folder TEXT NOT NULL,
    call TEXT NOT NULL,
    hash TEXT NOT NULL,
    action TEXT NOT NULL,
    content TEXT NOT NULL,
    path TEXT NOT NULL,
    size INTEGER NOT NULL,
    PRIMARY KEY (folder, call, hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS context_paths ON context_decisions (path, size) WHERE path != '';
CREATE TABLE IF NOT EXISTS contexts (
    folder TEXT NOT NULL,
    conversation TEXT NOT NULL,
    at REAL NOT NULL,
    model TEXT NOT NULL,
    window INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    source TEXT NOT NULL,
    level TEXT NOT NULL,
    request TEXT NOT NULL,
    breaks INTEGER NOT NULL,
    missed INTEGER NOT NULL,
    PRIMARY KEY (folder, conversation)
) STRICT, WITHOUT ROWID;
"""

DecisionRow = tuple[str, str, str, str, str, int]


@dataclass(frozen=True, slots=True)
class ContextRow:
    """A conversation as it was last planned, ``at`` seconds since 1970.

    ``request`` is what its requests have to be the same in, as JSON, "" until that is decided;
    ``breaks`` counts the times that a cache was lost for no reason of memd's, ``missed`` the tokens
    that were paid again for them.
    """

    folder: str
    conversation: str
    at: float = 0.0
    model: str = ""
    window: int = 0
    messages: int = 0
    tokens: int = 0
    source: str = ""
    level: str = ""
    request: str = ""
    breaks: int = 0
    missed: int = 0


@dataclass(frozen=True, slots=True)
class ContextTotals:
    """All that there is: conversations, stored results and their bytes, and cache breaks."""

    conversations: int = 0
    results: int = 0
    bytes: int = 0
    breaks: int = 0
    missed: int = 0


class ContextTable:
    """The durable rows. All methods block and may raise StateUnusableError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def decisions(self, folder: str) -> tuple[DecisionRow, ...]:
        """Return what was decided about a session's results."""
        rows = self._database.read(
            "SELECT call, hash, action, content, path, size FROM context_decisions"
            " WHERE folder = ?",
            (folder,),
        )
        return tuple((*row,) for row in rows)

    def row(self, folder: str, conversation: str) -> ContextRow | None:
        """Return a conversation as it was last planned, ``None`` for one that never was."""
        rows = self._database.read(
            "SELECT * FROM contexts WHERE folder = ? AND conversation = ?", (folder, conversation)
        )
        return ContextRow(*rows[0]) if rows else None

    def rows(self, folder: str, most: int = -1) -> tuple[ContextRow, ...]:
        """Return the conversations whose folder begins so, those planned last first."""
        rows = self._database.read(
            "SELECT * FROM contexts WHERE substr(folder, 1, length(?1)) = ?1"
            " ORDER BY at DESC LIMIT ?2",
            (folder, most),
        )
        return tuple(ContextRow(*row) for row in rows)

    def unused(self, before: float) -> tuple[str, ...]:
        """Return the sessions of which no conversation was planned since a time."""
        rows = self._database.read(
            "SELECT folder FROM contexts GROUP BY folder HAVING max(at) < ?", (before,)
        )
        return tuple(row[0] for row in rows)

    def save(self, row: ContextRow, decisions: Sequence[DecisionRow] = ()) -> None:
        """Write a conversation's row, and with it decisions of its session.

        These are on the disk then; a row alone may be lost with the power.
        """
        with self._database.transaction(synced=bool(decisions)) as cursor:
            cursor.executemany(
                "INSERT OR REPLACE INTO context_decisions VALUES (?, ?, ?, ?, ?, ?, ?)",
                [(row.folder, *decision) for decision in decisions],
            )
            cursor.execute(
                "INSERT OR REPLACE INTO contexts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                astuple(row),
            )

    def forget(self, folder: str) -> int:
        """Remove all rows of a session and return how many there were."""
        with self._database.transaction() as cursor:
            tables = ("context_decisions", "contexts")
            deleted = 0
            for table in tables:
                cursor.execute(f"DELETE FROM {table} WHERE folder = ?", (folder,))  # noqa: S608 - fixed words
                deleted += cursor.rowcount
            return deleted

    def own_results(self, folder: str) -> tuple[tuple[str, str, int], ...]:
        """Return the call, path and size of results that only this session's decisions name."""
        rows = self._database.read(
            "SELECT DISTINCT call, path, size FROM context_decisions AS own"
            " WHERE folder = ?1 AND path != ''"
            " AND NOT EXISTS (SELECT 1 FROM context_decisions AS other"
            " WHERE other.path = own.path AND other.path != '' AND other.folder != ?1)",
            (folder,),
        )
        return tuple((*row,) for row in rows)

    def stored(self) -> tuple[int, int]:
        """Return how many results are stored, and their bytes."""
        rows = self._database.read(
            "SELECT count(*), coalesce(sum(size), 0) FROM"
            " (SELECT DISTINCT path, size FROM context_decisions WHERE path != '')"
        )
        results, size = rows[0]
        return results, size

    def totals(self) -> ContextTotals:
        """Return how much there is of everything."""
        rows = self._database.read(
            "SELECT count(*), coalesce(sum(breaks), 0), coalesce(sum(missed), 0) FROM contexts"
        )
        conversations, breaks, missed = rows[0]
        return ContextTotals(conversations, *self.stored(), breaks, missed)
