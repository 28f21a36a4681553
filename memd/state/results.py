"""Store which tool results memd stored in files, so that their sizes have bounds.

A session is identified by the folder of its results.
"""

from msgspec import Struct

from memd.base.limits import STORED_BYTES
from memd.state.database import Database

SCHEMA = """
CREATE TABLE IF NOT EXISTS stored_results (
    folder TEXT NOT NULL,
    name TEXT NOT NULL,
    size INTEGER NOT NULL,
    at REAL NOT NULL,
    PRIMARY KEY (folder, name)
) STRICT, WITHOUT ROWID;
"""

_MOST_BYTES = STORED_BYTES * 7 // 8  # so that there is room again


class StoredTotals(Struct, frozen=True):
    """How many results are stored, and their bytes."""

    results: int = 0
    bytes: int = 0


class ResultTable:
    """The rows of stored results. Methods block and raise StateUnusableError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, folder: str, name: str, size: int, at: float) -> None:
        """Record a file of ``size`` bytes that was stored ``at`` seconds since 1970."""
        with self._database.transaction(synced=False) as cursor:
            cursor.execute(
                "INSERT OR REPLACE INTO stored_results VALUES (?, ?, ?, ?)",
                (folder, name, size, at),
            )

    def of_session(self, folder: str) -> dict[str, int]:
        """Return the sizes of a session's results by file name."""
        rows = self._database.read(
            "SELECT name, size FROM stored_results WHERE folder = ?", (folder,)
        )
        return {row[0]: row[1] for row in rows}

    def forget(self, folder: str) -> None:
        """Remove the rows of a session."""
        with self._database.transaction() as cursor:
            cursor.execute("DELETE FROM stored_results WHERE folder = ?", (folder,))

    def surplus(self) -> tuple[str, ...]:
        """Return the folders of the sessions that stored longest ago and are too large."""
        rows = self._database.read(
            "SELECT folder FROM (SELECT folder, sum(size) OVER (ORDER BY at DESC, folder) AS total"
            " FROM (SELECT folder, max(at) AS at, sum(size) AS size FROM stored_results"
            " GROUP BY folder)) WHERE total > ?",
            (_MOST_BYTES,),
        )
        return tuple(row[0] for row in rows)

    def totals(self) -> StoredTotals:
        """Return the totals of all sessions."""
        rows = self._database.read("SELECT count(*), coalesce(sum(size), 0) FROM stored_results")
        return StoredTotals(*rows[0])
