"""The books of what models cost."""

import tempfile
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.core.settings import SpendSettings
from memd.daemon.app import SCHEMAS
from memd.state.ages import NO_BOUND, Ages, Bound
from memd.state.caps import Sum
from memd.state.database import Database, open_database
from memd.state.spend import Account, Booking, SpendTable, day_of, next_day
from memd.state.tally import Tally

NOON = datetime.fromisoformat("2026-03-05T12:00").timestamp()  # of this machine's day
DAY = 24 * 3600.0
RECALL = Account("recall", "/m", "claude-sonnet-5-5")
USED = Sum(1, 10, 20, 30, 40, 0.25)


def test_old_days_are_forgotten(database: Database) -> None:
    """The table does not grow for ever."""
    table = SpendTable(database)
    table.add(RECALL, USED, NOON - 500 * DAY)
    table.reserve(RECALL, USED, SpendSettings(), NOON)
    table.prune(NO_BOUND)
    assert len(table.summary(1000, "day", NOON)) == 2
    table.prune(Bound(NOON - 400 * DAY))
    assert len(table.summary(1000, "day", NOON)) == 1


def test_a_clock_that_stays_back_is_followed_after_a_day(database: Database) -> None:
    """What was booked far ahead stops nobody for longer than a day."""
    table, caps = SpendTable(database), SpendSettings(recall_requests_per_day=1)
    table.reserve(RECALL, USED, caps, NOON + 200 * DAY)
    looks = Ages(database)
    looks.inspect(NOON, 0.0)
    looks.inspect(NOON + DAY - 1, DAY - 1)
    assert isinstance(table.reserve(RECALL, USED, caps, NOON + DAY - 1), str)
    looks.inspect(NOON + DAY, DAY)
    assert isinstance(table.reserve(RECALL, USED, caps, NOON + DAY), Booking)
    assert isinstance(table.reserve(RECALL, USED, caps, NOON + DAY), str)
    assert isinstance(table.reserve(RECALL, USED, caps, NOON + 2 * DAY), Booking)


@pytest.mark.parametrize("steps", [[-1, 0], [-400, 0, -1, 0], [300, 0], [1, -1, 0]])
def test_no_way_of_the_clock_gives_a_day_twice(database: Database, steps: list[int]) -> None:
    """Wherever the clock was meanwhile, a day whose cap was reached has no room again."""
    table, caps = SpendTable(database), SpendSettings(recall_requests_per_day=1, recall_share=1)
    table.reserve(RECALL, USED, caps, NOON)
    for days in steps:
        last = table.reserve(RECALL, USED, caps, NOON + days * DAY)
    assert last == "spend.recall_requests_per_day"


def test_another_state_file_goes_on_with_the_day(tmp_path: Path) -> None:
    """A state file that was lost or moved begins with what the day has cost by then."""
    caps, tally = SpendSettings(recall_requests_per_day=2), Tally(str(tmp_path / "d" / "t.json"))
    for name, room in (("a", True), ("b", True), ("c", False), ("a", False)):
        database = open_database(str(tmp_path / name), SCHEMAS)
        table = SpendTable(database, tally)
        booking = table.reserve(RECALL, Sum(1, 100, dollars=0.1), caps, NOON)
        assert isinstance(booking, Booking) == room
        if isinstance(booking, Booking):
            table.finish(booking, Sum(1, 7, dollars=0.01))
        else:
            assert table.today(NOON, "recall").input == 14
        database.close()


def test_many_at_once_stay_under_the_cap(database: Database) -> None:
    """However many ask at the same time, no more is let through than there is room for."""
    table = SpendTable(database)
    caps = SpendSettings(recall_requests_per_day=5)
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
