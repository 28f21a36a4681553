"""Which project root a memory directory belongs to.

A slug is not injective: two roots may meet in one directory and would share memories
without anybody having asked for it. The first root that was seen is remembered.
"""

from memd.core.recent import Recent
from memd.state.database import Database

SCHEMA = """
CREATE TABLE IF NOT EXISTS roots (
    directory TEXT PRIMARY KEY,
    root TEXT NOT NULL
) STRICT, WITHOUT ROWID;
"""


class Roots:
    """The remembered roots. Methods block and raise StateUnusableError."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: Recent[str, str] = Recent()

    def owner(self, directory: str, root: str) -> str:
        """Return the root that a directory belongs to: this one when none was seen before."""
        known = self._known.get(directory)
        if known is None:
            self._database.write("INSERT OR IGNORE INTO roots VALUES (?, ?)", (directory, root))
            row = self._database.read("SELECT root FROM roots WHERE directory = ?", (directory,))
            known = self._known[directory] = str(row[0]["root"])
        return known

    def all(self) -> dict[str, str]:
        """Return the remembered roots by directory."""
        rows = self._database.read("SELECT directory, root FROM roots ORDER BY directory")
        return {row["directory"]: row["root"] for row in rows}

    def move(self, directory: str, root: str) -> None:
        """Let a directory belong to another root, since its old one is gone."""
        self._database.write("UPDATE roots SET root = ? WHERE directory = ?", (root, directory))
        self._known[directory] = root
