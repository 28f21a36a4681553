"""The books of what models cost."""

import tempfile
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from memd.base.settings import SpendSettings
from memd.daemon.app import SCHEMAS
from memd.state.database import Database, open_database
from memd.state.spend import Account, Booking, SpendTable, Sum, day_of, next_day

NOON = datetime.fromisoformat("2026-03-05T12:00").timestamp()  # of this machine's day
DAY = 24 * 3600.0
RECALL = Account("recall", "/m", "claude-sonnet-5-5")
USED = Sum(1, 10, 20, 30, 40, 0.25)


def test_the_day_is_the_later_of_today_and_the_last_booked(database: Database) -> None:
    """A clock that is set back begins no day anew, and the next day has room again."""
    table, caps = SpendTable(database), SpendSettings(requests_per_day=1)
    assert isinstance(table.reserve(RECALL, USED, caps, NOON), Booking)
    for days in (0, -1, -400):
        assert table.reserve(RECALL, USED, caps, NOON + days * DAY) == "spend.requests_per_day"
    assert isinstance(table.reserve(RECALL, USED, caps, NOON + DAY), Booking)
    assert [(row.day, row.kind, row.requests) for row in table.rows(2, NOON + DAY)] == [
        ("2026-03-06", "recall", 1),
        ("2026-03-05", "recall", 1),
    ]


def test_many_at_once_stay_under_the_cap(database: Database) -> None:
    """However many ask at the same time, no more is let through than there is room for."""
    table = SpendTable(database)
    caps = SpendSettings(requests_per_day=5)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: table.reserve(RECALL, USED, caps, NOON), range(12)))
    table_of = [answer for answer in answers if isinstance(answer, Booking)]
    assert len(table_of) <= 5
    assert table.today(NOON).requests == len(table_of)


def test_a_day_begins_at_local_midnight() -> None:
    """The next day is later, at most 25 hours on, and another day than this."""
    begins = next_day(NOON)
    assert NOON < begins.timestamp() <= NOON + 25 * 3600
    assert (begins.hour, begins.minute) == (0, 0)
    assert day_of(begins.timestamp()) == "2026-03-06"
    assert day_of(begins.timestamp() - 1) == "2026-03-05"


MOVES = st.lists(st.tuples(st.floats(0, 0.5), st.floats(0, 1), st.booleans()), max_size=8)


@settings(max_examples=25)
@given(MOVES)
def test_the_books_are_never_below_what_was_spent(
    moves: list[tuple[float, float, bool]],
) -> None:
    """Whatever is corrected and whatever is lost on the way, the books hold at least the truth."""
    with tempfile.TemporaryDirectory() as folder:
        database = open_database(f"{folder}/state.db", SCHEMAS)
        table = SpendTable(database)
        spent = 0.0
        for most, part, reported in moves:
            booking = table.reserve(RECALL, Sum(1, dollars=most), SpendSettings(), NOON)
            if isinstance(booking, Booking):
                spent += most * part
                if reported:
                    table.finish(booking, Sum(1, dollars=most * part))
        results = table.today(NOON).dollars
        database.close()
        assert spent - 1e-6 <= results <= 1.0
