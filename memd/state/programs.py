"""The programs that memd has started to answer for a model, so that a start after a kill ends them.

A row is there from before a program begins until nothing of it is left.
"""

from msgspec import Struct

from memd.state.database import Database

SCHEMA = """
CREATE TABLE IF NOT EXISTS programs (
    mark TEXT PRIMARY KEY,
    pid INTEGER NOT NULL,
    began REAL NOT NULL
) STRICT, WITHOUT ROWID;
"""


class StartedProgram(Struct, frozen=True):
    """A program: the mark in its environment, its process and group, and when that began.

    ``pid`` is 0 as long as it is not known. ``began`` is seconds since 1970 as the system counts.
    """

    mark: str
    pid: int = 0
    began: float = 0.0


class Programs:
    """The rows. Methods block and raise StateUnusableError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, program: StartedProgram) -> None:
        """Note a program that begins, or what is known of it by now."""
        # Only the end of this process makes it needed, and that leaves what was written.
        with self._database.transaction(synced=False) as cursor:
            row = (program.mark, program.pid, program.began)
            cursor.execute("INSERT OR REPLACE INTO programs VALUES (?, ?, ?)", row)

    def remove(self, program: StartedProgram) -> None:
        """Forget a program of which nothing is left."""
        with self._database.transaction(synced=False) as cursor:
            cursor.execute("DELETE FROM programs WHERE mark = ?", (program.mark,))

    def all(self) -> tuple[StartedProgram, ...]:
        """Return the programs of which something may be left."""
        rows = self._database.read("SELECT mark, pid, began FROM programs")
        return tuple(StartedProgram(row["mark"], row["pid"], row["began"]) for row in rows)
