"""Store which projects the user allows to include outside files in their instruction files.

Only ``instructions.approve`` writes rows; files in a repository cannot grant themselves approval.
"""

from memd.state.database import Database

SCHEMA = """
CREATE TABLE IF NOT EXISTS approvals (
    root TEXT PRIMARY KEY,
    allowed INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
"""


class Approvals:
    """The user's decisions by project root. Methods block and raise StateUnusableError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, root: str) -> bool | None:
        """Return whether the user allowed a project, or ``None`` if they have not decided."""
        rows = self._database.read("SELECT allowed FROM approvals WHERE root = ?", (root,))
        return bool(rows[0]["allowed"]) if rows else None

    def decide(self, root: str, *, allowed: bool) -> None:
        """Store the user's decision and replace an earlier one."""
        self._database.write("INSERT OR REPLACE INTO approvals VALUES (?, ?)", (root, allowed))
