"""Store the decisions about tool results of conversations, and the conversations' sizes.

A session is identified by its folder. The room ``context`` defines the meaning of a decision's
columns: call, hash, action, content, path and size. The primary key names the tool result, so a
newer decision about it replaces the older one.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import astuple

from memd.core.limits import STORED_BYTES
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

_MOST_SESSIONS = 1000
_MOST_BYTES = STORED_BYTES * 7 // 8  # so that there is room again
DecisionRow = tuple[str, str, str, str, str, int]  # call, hash, action, content, path, size


class ContextRow(Struct, frozen=True):
    """The last plan of a conversation."""

    folder: str  # of the session
    conversation: str
    at: float = 0.0  # when it was planned, in seconds since 1970
    model: str = ""
    window: int = 0
    messages: int = 0
    tokens: int = 0
    source: str = ""
    level: str = ""
    # JSON with the parts that all requests have to share, "" until that is decided.
    request: str = ""
    breaks: int = 0  # cache losses that memd did not cause
    missed: int = 0  # tokens that were paid again because of them


class ContextTotals(Struct, frozen=True):
    """Totals of all sessions: conversations, stored results, their bytes, and cache breaks."""

    conversations: int = 0
    results: int = 0
    bytes: int = 0
    breaks: int = 0
    missed: int = 0


class ContextTable:
    """The rows of decisions and conversations. Methods block and raise StateUnusableError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def decisions(self, folder: str) -> tuple[DecisionRow, ...]:
        """Return the decisions about a session's tool results."""
        rows = self._database.read(
            "SELECT call, hash, action, content, path, size FROM context_decisions"
            " WHERE folder = ?",
            (folder,),
        )
        return tuple((*row,) for row in rows)

    def row(self, folder: str, conversation: str) -> ContextRow | None:
        """Return the stored plan of a conversation, or ``None`` if it was never planned."""
        rows = self._database.read(
            "SELECT * FROM contexts WHERE folder = ? AND conversation = ?", (folder, conversation)
        )
        return ContextRow(*rows[0]) if rows else None

    def rows(self, folder: str, most: int = -1) -> tuple[ContextRow, ...]:
        """Return up to ``most`` conversations whose folder begins with ``folder``.

        Those planned last come first; -1 stands for all.
        """
        rows = self._database.read(
            "SELECT * FROM contexts WHERE substr(folder, 1, length(?1)) = ?1"
            " ORDER BY at DESC LIMIT ?2",
            (folder, most),
        )
        return tuple(ContextRow(*row) for row in rows)

    def surplus(self) -> tuple[str, ...]:
        """Return the folders of the sessions planned longest ago that are too many or too large."""
        rows = self._database.read(
            "SELECT folder FROM (SELECT folder,"
            " row_number() OVER newest_first AS number, sum(size) OVER newest_first AS size FROM"
            " (SELECT folder, max(at) AS at, (SELECT coalesce(sum(size), 0) FROM context_decisions"
            " WHERE folder = contexts.folder AND path != '') AS size FROM contexts GROUP BY folder)"
            " WINDOW newest_first AS (ORDER BY at DESC, folder)) WHERE number > ? OR size > ?",
            (_MOST_SESSIONS, _MOST_BYTES),
        )
        return tuple(row[0] for row in rows)

    def save(self, row: ContextRow, decisions: Sequence[DecisionRow] = ()) -> None:
        """Store a conversation's row together with decisions of its session.

        With decisions the write is synced; a row alone may be lost in a power cut.
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
        deleted = 0
        with self._database.transaction() as cursor:
            for table in ("context_decisions", "contexts"):
                cursor.execute(f"DELETE FROM {table} WHERE folder = ?", (folder,))  # noqa: S608 - fixed words
                deleted += cursor.rowcount
        return deleted

    def own_results(self, folder: str) -> tuple[tuple[str, str, int], ...]:
        """Return call, path and size of stored results that no other session's decisions name."""
        rows = self._database.read(
            "SELECT DISTINCT call, path, size FROM context_decisions AS own"
            " WHERE folder = ?1 AND path != ''"
            " AND NOT EXISTS (SELECT 1 FROM context_decisions AS other"
            " WHERE other.path = own.path AND other.path != '' AND other.folder != ?1)",
            (folder,),
        )
        return tuple((*row,) for row in rows)

    def stored(self) -> tuple[int, int]:
        """Return how many tool results are stored, and their bytes."""
        rows = self._database.read(
            "SELECT count(*), coalesce(sum(size), 0) FROM"
            " (SELECT DISTINCT path, size FROM context_decisions WHERE path != '')"
        )
        results, size = rows[0]
        return results, size

    def totals(self) -> ContextTotals:
        """Return the totals of all sessions."""
        rows = self._database.read(
            "SELECT count(*), coalesce(sum(breaks), 0), coalesce(sum(missed), 0) FROM contexts"
        )
        conversations, breaks, missed = rows[0]
        return ContextTotals(conversations, *self.stored(), breaks, missed)
