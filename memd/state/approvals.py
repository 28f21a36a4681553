"""Which projects may include files from outside in their instruction files, as the user decided.

The rows are made by ``instructions.approve`` alone: nothing that lies in a repository is asked.
"""

from memd.state.database import Database

SCHEMA = """
CREATE TABLE IF NOT EXISTS approvals (
    root TEXT PRIMARY KEY,
    allowed INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
"""


class Approvals:
    """The decisions by project root. Methods block and raise StateUnusableError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, root: str) -> bool | None:
        """Return what the user decided for a project, ``None`` where they did not."""
        rows = self._database.read("SELECT allowed FROM approvals WHERE root = ?", (root,))
        return bool(rows[0]["allowed"]) if rows else None

    def decide(self, root: str, *, allowed: bool) -> None:
        """Write the user's decision in the place of the last one."""
        self._database.write("INSERT OR REPLACE INTO approvals VALUES (?, ?)", (root, allowed))
