"""Store which project root each memory directory belongs to.

Two roots can have the same slug, and so the same directory; they would share memories although
nobody wants that. So the first root that uses a directory owns it.
"""

from memd.base.recent import Recent
from memd.state.database import Database

SCHEMA = """
CREATE TABLE IF NOT EXISTS roots (
    directory TEXT PRIMARY KEY,
    root TEXT NOT NULL
) STRICT, WITHOUT ROWID;
"""


class Roots:
    """The owner of each memory directory. Methods block and raise StateUnusableError."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: Recent[str, str] = Recent()  # owners by memory directory

    def owner(self, directory: str, root: str) -> str:
        """Return the root that owns a directory; ``root`` becomes the owner if there is none."""
        known = self._known.get(directory)
        if known is None:
            self._database.write("INSERT OR IGNORE INTO roots VALUES (?, ?)", (directory, root))
            row = self._database.read("SELECT root FROM roots WHERE directory = ?", (directory,))
            known = self._known[directory] = str(row[0]["root"])
        return known

    def all(self) -> dict[str, str]:
        """Return all owners by memory directory."""
        rows = self._database.read("SELECT directory, root FROM roots ORDER BY directory")
        return {row["directory"]: row["root"] for row in rows}

    def move(self, directory: str, root: str) -> None:
        """Make another root the owner of a directory whose old root no longer exists."""
        self._database.write("UPDATE roots SET root = ? WHERE directory = ?", (root, directory))
        self._known[directory] = root
