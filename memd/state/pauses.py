"""What holds background work up, kept over restarts: a person's pause, and a directory's breaker.

A breaker's row is there from the first failure of a model until it works again. What the numbers
mean is decided in ``memd/jobs/breaker.py``; this file keeps rows.
"""

from msgspec import Struct
from msgspec.structs import astuple

from memd.state.database import Database

SCHEMA = """
CREATE TABLE IF NOT EXISTS pauses (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    since REAL NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS breakers (
    directory TEXT PRIMARY KEY,
    failures INTEGER NOT NULL,
    since REAL NOT NULL,
    until REAL NOT NULL,
    why TEXT NOT NULL
) STRICT;
"""


class Breaker(Struct, frozen=True):
    """A directory whose jobs do without a model for a while, because models failed for it.

    ``failures`` in a row, the last at ``since`` with the sentence ``why``; after ``until`` the next
    job asks again. Times are seconds since 1970.
    """

    directory: str
    failures: int
    since: float
    until: float
    why: str


class Pauses:
    """The durable rows. All methods block and may raise StateUnusableError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def since(self) -> float | None:
        """Return when background work was paused, ``None`` where it is not."""
        rows = self._database.read("SELECT since FROM pauses")
        return float(rows[0]["since"]) if rows else None

    def pause(self, at: float) -> None:
        """Note that nothing may start from now on; an earlier pause stands."""
        self._database.write("INSERT OR IGNORE INTO pauses (one, since) VALUES (1, ?)", (at,))

    def resume(self) -> None:
        """Note that work goes on, and with models that failed."""
        with self._database.transaction() as cursor:
            cursor.execute("DELETE FROM pauses")
            cursor.execute("DELETE FROM breakers")

    def breakers(self) -> tuple[Breaker, ...]:
        """Return the directories whose last work with a model failed."""
        rows = self._database.read("SELECT * FROM breakers ORDER BY directory")
        return tuple(Breaker(**dict(row)) for row in rows)

    def breaker(self, directory: str) -> Breaker | None:
        """Return the breaker of a directory, ``None`` where its last model worked."""
        return next((row for row in self.breakers() if row.directory == directory), None)

    def save(self, breaker: Breaker) -> None:
        """Write a directory's breaker in the place of its last."""
        self._database.write(
            "INSERT OR REPLACE INTO breakers VALUES (?, ?, ?, ?, ?)", astuple(breaker)
        )

    def forget(self, directory: str) -> None:
        """Forget a directory's failures."""
        self._database.write("DELETE FROM breakers WHERE directory = ?", (directory,))
