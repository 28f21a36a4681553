"""How old rows are, for all that goes by its age.

Rules of this file
- The time with which a row was written proves nothing: the clock may have been wrong. Nor does the
  time now, until it is proved (``core/clock_check.py``).
- While the clock is proved, a mark is made each day: the numbers of the newest rows at that time.
  A row is old if a mark before the bound covers it and its own time is before the bound, too. So
  no row goes before a clock that was proved has counted its days, whatever the clock told when
  the row was written or memd was started.
"""

import threading
from dataclasses import dataclass

from memd.core.clock_check import DAY_SECONDS, ClockCheck, inspect
from memd.state.database import Cursor, Database

SCHEMA = """
CREATE TABLE IF NOT EXISTS clock_checks (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    at REAL NOT NULL,
    steady REAL NOT NULL,
    jump REAL NOT NULL,
    behind REAL NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS clock_marks (
    at REAL PRIMARY KEY,
    change INTEGER NOT NULL,
    surfaced INTEGER NOT NULL
) STRICT;
"""
_BETWEEN_MARKS = DAY_SECONDS / 2  # one a day, however often memd starts: 15 KB a year


@dataclass(frozen=True, slots=True)
class Bound:
    """What is old: of a time before ``before`` (seconds since 1970), up to these numbers."""

    before: float = 0.0
    change: int = 0
    surfaced: int = 0


NOTHING = Bound()


class Ages:
    """Looks at the clock, kept over restarts. All methods block and raise StateUnusableError."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._looking = threading.Lock()
        self._looked: float | None = None

    def inspect(self, now: float, monotonic: float) -> ClockCheck:
        """Look at the clock; ``monotonic`` is seconds of one that cannot be set."""
        with self._looking, self._database.transaction(synced=False) as cursor:
            cursor.execute("SELECT max(at) FROM changes")
            value = cursor.fetchone()[0]
            newest = value if isinstance(value, float) else 0.0  # a row is input
            passed = 0.0 if self._looked is None else monotonic - self._looked
            check = inspect(last_check(self._database), newest, now, passed)
            cursor.execute(
                "INSERT OR REPLACE INTO clock_checks VALUES (1, ?, ?, ?, ?)",
                (check.at, check.steady, check.jump, check.behind),
            )
            if check.proved:
                _mark(cursor, now)
            self._looked = monotonic
        return check

    def bound(self, check: ClockCheck, days: float) -> Bound:
        """Return what is older than so many days; nothing while the clock is not proved."""
        before = check.at - days * DAY_SECONDS
        rows = self._database.read(
            "SELECT change, surfaced FROM clock_marks WHERE at <= ? ORDER BY at DESC LIMIT 1",
            (before,),
        )
        return Bound(before, *rows[0]) if rows and check.proved else NOTHING


def last_check(database: Database) -> ClockCheck | None:
    """Return the last look at the clock, if any. Raises StateUnusableError."""
    rows = database.read("SELECT at, steady, jump, behind FROM clock_checks")
    return ClockCheck(*rows[0]) if rows else None


def _mark(cursor: Cursor, now: float) -> None:
    cursor.execute(
        "INSERT INTO clock_marks SELECT ?,"
        " (SELECT coalesce(max(id), 0) FROM changes),"
        " (SELECT coalesce(max(id), 0) FROM surfaced)"
        " WHERE NOT EXISTS (SELECT 1 FROM clock_marks WHERE at BETWEEN ? AND ?)",
        (now, now - _BETWEEN_MARKS, now),
    )
