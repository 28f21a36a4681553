"""Store the programs that memd started as models, so that a restart after a crash can end them.

A row exists from before a program starts until none of its processes is left.
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
    """A program: the mark in its environment, its process id and start time.

    ``pid`` is also its process group, 0 if it is not known yet. ``began`` is the start time in
    seconds since 1970, as the system counts it.
    """

    mark: str
    pid: int = 0
    began: float = 0.0


class Programs:
    """The rows of started programs. Methods block and raise StateUnusableError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, program: StartedProgram) -> None:
        """Store a program that is about to start, or replace its row."""
        # Not synced: after a power cut no program is left, and a killed process loses no write.
        with self._database.transaction(synced=False) as cursor:
            row = (program.mark, program.pid, program.began)
            cursor.execute("INSERT OR REPLACE INTO programs VALUES (?, ?, ?)", row)

    def remove(self, program: StartedProgram) -> None:
        """Delete the row of a program that has no process left."""
        with self._database.transaction(synced=False) as cursor:
            cursor.execute("DELETE FROM programs WHERE mark = ?", (program.mark,))

    def all(self) -> tuple[StartedProgram, ...]:
        """Return the programs that may still have processes."""
        rows = self._database.read("SELECT mark, pid, began FROM programs")
        return tuple(StartedProgram(row["mark"], row["pid"], row["began"]) for row in rows)
