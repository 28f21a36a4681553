"""Store what stops background work across restarts: a person's pause, and circuit breakers.

A directory's circuit breaker exists from the first failure of a model until one works again.
``memd/jobs/breaker.py`` decides what its numbers mean; this file only stores them.
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
    """A directory whose jobs run without a model for a while, because models failed for it.

    ``failures`` counts failures in a row, the last at ``since`` with the error message ``why``.
    After ``until`` the next job calls a model again. Times are seconds since 1970.
    """

    directory: str
    failures: int
    since: float
    until: float
    why: str


class Pauses:
    """The stored pause and circuit breakers. Methods block and may raise StateUnusableError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def since(self) -> float | None:
        """Return when a person paused background work, ``None`` if it is not paused."""
        rows = self._database.read("SELECT since FROM pauses")
        return float(rows[0]["since"]) if rows else None

    def pause(self, at: float) -> None:
        """Store that background work is paused; an earlier pause keeps its time."""
        self._database.write("INSERT OR IGNORE INTO pauses (one, since) VALUES (1, ?)", (at,))

    def resume(self) -> None:
        """Delete the pause and all circuit breakers."""
        with self._database.transaction() as cursor:
            cursor.execute("DELETE FROM pauses")
            cursor.execute("DELETE FROM breakers")

    def breakers(self) -> tuple[Breaker, ...]:
        """Return the circuit breakers of all directories."""
        rows = self._database.read("SELECT * FROM breakers ORDER BY directory")
        return tuple(Breaker(**dict(row)) for row in rows)

    def breaker(self, directory: str) -> Breaker | None:
        """Return the circuit breaker of a directory, ``None`` if its last model call worked."""
        return next((row for row in self.breakers() if row.directory == directory), None)

    def save(self, breaker: Breaker) -> None:
        """Store a directory's circuit breaker and replace an earlier one."""
        self._database.write(
            "INSERT OR REPLACE INTO breakers VALUES (?, ?, ?, ?, ?)", astuple(breaker)
        )

    def forget(self, directory: str) -> None:
        """Delete a directory's circuit breaker."""
        self._database.write("DELETE FROM breakers WHERE directory = ?", (directory,))
