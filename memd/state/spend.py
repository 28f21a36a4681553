"""Store what models were used for and what it cost, by day, and enforce the spending caps.

Rules of this file
- Before a request is sent, the most that it may cost is booked, in the transaction that checks the
  caps. The booking is corrected once the usage is known. So the books are never below the real
  cost, even after a crash. A cap limits a day, for all kinds of work together.
- One row has the sums of a day, kind of work, project and model. Days are local; a correction goes
  to the day of its booking.
- Usage counts for the later of today and the last booked day, so a clock that is set back does not
  begin the day's caps anew. The newest 400 days are kept (``store/forget.py``).
"""

import operator
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import astuple

from memd.base.settings import KINDS, SpendSettings
from memd.state.database import Cursor, Database

SCHEMA = """
CREATE TABLE IF NOT EXISTS spend (
    day TEXT NOT NULL,
    kind TEXT NOT NULL,
    project TEXT NOT NULL,
    model TEXT NOT NULL,
    requests INTEGER NOT NULL,
    input INTEGER NOT NULL,
    output INTEGER NOT NULL,
    cache_read INTEGER NOT NULL,
    cache_created INTEGER NOT NULL,
    money REAL NOT NULL,
    PRIMARY KEY (day, kind, project, model)
) STRICT;
"""

_PROMPTS = "recall"  # never answered by a program, since that is too slow for a waiting person
_SUMS = (
    "sum(requests) AS requests, sum(input) AS input, sum(output) AS output,"
    " sum(cache_read) AS cache_read, sum(cache_created) AS cache_created,"
    " round(sum(money), 9) AS dollars"
)
# A correction may be negative; rounding must not leave a sum of money below zero.
_ADD = """
INSERT INTO spend VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (day, kind, project, model) DO UPDATE SET
    requests = requests + excluded.requests,
    input = input + excluded.input,
    output = output + excluded.output,
    cache_read = cache_read + excluded.cache_read,
    cache_created = cache_created + excluded.cache_created,
    money = max(0, money + excluded.money)
"""


class Sum(Struct, frozen=True):
    """An amount of usage: requests, tokens of each sort, and US dollars."""

    requests: int = 0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_created: int = 0
    dollars: float = 0.0

    @property
    def tokens(self) -> int:
        """The number of all tokens, cached ones included."""
        return self.input + self.output + self.cache_read + self.cache_created

    def __add__(self, other: "Sum") -> "Sum":
        """Return the sum of both, field by field."""
        return Sum(*map(operator.add, astuple(self), astuple(other)))


class Account(Struct, frozen=True):
    """What a request is booked under: kind of work, project's memory directory, and model."""

    kind: str
    project: str
    model: str


class Booking(Struct, frozen=True):
    """A request that was booked with the most that it may cost."""

    account: Account
    day: str
    booked: Sum


class SpendRow(Sum, frozen=True, kw_only=True):
    """The usage of a day for one kind of work in one project (its memory directory)."""

    day: str
    kind: str
    project: str


class SpendTable:
    """The table of usage and cost. Methods block and raise StateUnusableError.

    Times are seconds since 1970.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def reserve(
        self,
        account: Account,
        most: Sum,
        settings: SpendSettings,
        now: float,
        *,
        by_runs: bool = False,
    ) -> Booking | str:
        """Book the most that a request may cost, or return the name of the cap that it exceeds.

        ``by_runs`` says that a program answers, so that the number of its runs a day is limited
        too.
        """
        with self._database.transaction() as cursor:
            day = self._booking_day(now)
            kinds = self._usage_of_day(day)
            cap = exceeded_cap(account.kind, kinds, most, settings, by_runs=by_runs)
            if cap:
                return cap
            _add_usage(cursor, day, account, most)
        return Booking(account, day, most)

    def finish(self, booking: Booking, used: Sum) -> None:
        """Replace a booking's estimate by the real usage."""
        pairs = zip(astuple(used), astuple(booking.booked), strict=True)
        change = Sum(*(real - booked for real, booked in pairs))
        with self._database.transaction() as cursor:
            _add_usage(cursor, booking.day, booking.account, change)

    def today(self, now: float, kind: str = "") -> Sum:
        """Return what was used today, for one kind or for everything."""
        kinds = self._usage_of_day(self._booking_day(now))
        return kinds.get(kind, Sum()) if kind else sum(kinds.values(), Sum())

    def rows(self, days: int, now: float) -> tuple[SpendRow, ...]:
        """Return the usage of the last ``days``, today included, the newest day first."""
        first = _local(now).date() - timedelta(days=days - 1)
        rows = self._database.read(
            f"SELECT day, kind, project, {_SUMS} FROM spend WHERE day >= ?"  # noqa: S608 - our own words
            " GROUP BY day, kind, project ORDER BY day DESC, kind, project",
            (first.isoformat(),),
        )
        return tuple(SpendRow(**dict(row)) for row in rows)

    def caps(self, settings: SpendSettings, now: float, *, by_runs: bool = False) -> dict[str, str]:
        """Return the exceeded cap for each kind of work that may send no request today."""
        used = self._usage_of_day(self._booking_day(now))
        next_request = Sum(requests=1)
        caps: dict[str, str] = {}
        for kind in KINDS:
            cap = exceeded_cap(kind, used, next_request, settings, by_runs=by_runs)
            if cap:
                caps[kind] = cap
        return caps

    def _booking_day(self, now: float) -> str:
        """Return the day to which a booking made now belongs."""
        last = self._database.read("SELECT max(day) AS day FROM spend")[0]["day"]
        return max(day_of(now), last or "")

    def _usage_of_day(self, day: str) -> dict[str, Sum]:
        """Return the usage of a day by kind."""
        rows = self._database.read(
            f"SELECT kind, {_SUMS} FROM spend WHERE day = ? GROUP BY kind",  # noqa: S608 - our own words
            (day,),
        )
        return {kind: Sum(*sums) for kind, *sums in rows}


def exceeded_cap(
    kind: str, used: Mapping[str, Sum], more: Sum, settings: SpendSettings, *, by_runs: bool = False
) -> str:
    """Return the name of the setting whose cap ``more`` would exceed, or "".

    ``used`` is today's usage by kind. ``by_runs`` says that a program answers, so that the number
    of its runs is limited too.
    """
    after = sum(used.values(), Sum()) + more
    if after.dollars > settings.dollars_per_day:
        return "spend.dollars_per_day"
    if after.requests > settings.requests_per_day:
        return "spend.requests_per_day"
    # A program never answers prompts, so their requests are no runs.
    runs = after.requests - used.get(_PROMPTS, Sum()).requests
    if by_runs and kind != _PROMPTS and runs > settings.runs_per_day:
        return "spend.runs_per_day"
    return ""


def day_of(now: float) -> str:
    """Return the local day of a time, as ISO 8601."""
    return _local(now).date().isoformat()


def next_day(now: float) -> datetime:
    """Return when the next local day begins."""
    tomorrow = _local(now).replace(tzinfo=None, hour=0, minute=0, second=0, microsecond=0)
    return (tomorrow + timedelta(days=1)).astimezone()


def _local(now: float) -> datetime:
    """Return a time in seconds since 1970 in the local time zone."""
    return datetime.fromtimestamp(now).astimezone()


def _add_usage(cursor: Cursor, day: str, account: Account, used: Sum) -> None:
    """Add usage to the row of a day and account, inside the caller's transaction."""
    row: Sequence[object] = (day, account.kind, account.project, account.model, *astuple(used))
    cursor.execute(_ADD, row)
