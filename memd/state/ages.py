"""Decide which rows are old enough to be deleted.

Rules of this file
- A row's own time is not trusted, because the clock may have been wrong when it was written. The
  present time is trusted only once it is proved (``core/clock_check.py``).
- While the clock is proved, a mark is stored each day with the ids of the newest rows. A row is old
  if its id is covered by a mark from before the bound and its own time is before the bound too. So
  no row is deleted until a proved clock has counted its days.
"""

import threading

from msgspec import Struct

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
_SECONDS_BETWEEN_MARKS = DAY_SECONDS / 2  # one mark a day, however often memd starts: 15 KB a year


class Bound(Struct, frozen=True):
    """The limit below which rows are old.

    A row is old if its time is before ``before`` (seconds since 1970) and its id is at most
    ``change`` (table changes) or ``surfaced`` (table surfaced).
    """

    before: float = 0.0
    change: int = 0
    surfaced: int = 0


NO_BOUND = Bound()


class Ages:
    """The stored clock checks and daily marks. Methods block and raise StateUnusableError."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()  # held during an inspection
        self._last_inspection: float | None = None  # monotonic seconds

    def inspect(self, now: float, monotonic: float) -> ClockCheck:
        """Check the clock, store the check and return it; a proved clock also gets a daily mark.

        ``now`` is seconds since 1970, ``monotonic`` seconds of a clock that cannot be set.
        """
        with self._lock, self._database.transaction(synced=False) as cursor:
            cursor.execute("SELECT max(at) FROM changes")
            value = cursor.fetchone()[0]
            newest = value if isinstance(value, float) else 0.0  # the file may be damaged
            last = self._last_inspection
            seconds_since = 0.0 if last is None else monotonic - last
            check = inspect(last_check(self._database), newest, now, seconds_since)
            cursor.execute(
                "INSERT OR REPLACE INTO clock_checks VALUES (1, ?, ?, ?, ?)",
                (check.at, check.steady, check.jump, check.behind),
            )
            if check.proved:
                _mark(cursor, now)
            self._last_inspection = monotonic
        return check

    def bound(self, check: ClockCheck, days: float) -> Bound:
        """Return the bound of rows older than ``days``.

        It is ``NO_BOUND`` if the clock is not proved or no mark is that old.
        """
        before = check.at - days * DAY_SECONDS
        rows = self._database.read(
            "SELECT change, surfaced FROM clock_marks WHERE at <= ? ORDER BY at DESC LIMIT 1",
            (before,),
        )
        if not rows or not check.proved:
            return NO_BOUND
        return Bound(before, change=rows[0]["change"], surfaced=rows[0]["surfaced"])


def last_check(database: Database) -> ClockCheck | None:
    """Return the last stored clock check, or ``None``. Raises StateUnusableError."""
    rows = database.read("SELECT at, steady, jump, behind FROM clock_checks")
    return ClockCheck(*rows[0]) if rows else None


def _mark(cursor: Cursor, now: float) -> None:
    """Store a mark with the newest ids, unless one was made within the last half day."""
    cursor.execute(
        "INSERT INTO clock_marks SELECT ?,"
        " (SELECT coalesce(max(id), 0) FROM changes),"
        " (SELECT coalesce(max(id), 0) FROM surfaced)"
        " WHERE NOT EXISTS (SELECT 1 FROM clock_marks WHERE at BETWEEN ? AND ?)",
        (now, now - _SECONDS_BETWEEN_MARKS, now),
    )
