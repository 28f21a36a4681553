"""How old rows are."""

import pytest

from memd.core.clock_check import DAY_SECONDS
from memd.core.values import Actor, Provenance
from memd.state.ages import NO_BOUND, Ages, Bound
from memd.state.database import Database
from memd.state.journal import Journal
from memd.state.records import PlannedChange, Step

NOON = 1_760_000_000.0


def change(database: Database, at: float) -> None:
    """Journal a change of this time."""
    book = Journal(database)
    intent = PlannedChange(
        "/m", at, Provenance(Actor.CLIENT), "", "ab", (Step("a", "1", None),), {}
    )
    book.mark_applied(book.record(intent), at)


def days(database: Database, start: float, count: int) -> Ages:
    """Run for some days, with a look at the clock each day."""
    ages = Ages(database)
    for day in range(count + 1):
        ages.inspect(start + day * DAY_SECONDS, day * DAY_SECONDS)
    return ages


@pytest.mark.parametrize("jump", [200, -1, -400])
def test_after_a_jump_nothing_is_old(database: Database, jump: int) -> None:
    """Neither at the start after it nor within a day; then what was marked before is."""
    change(database, NOON - 500 * DAY_SECONDS)
    days(database, NOON, 2)
    ages, wrong = Ages(database), NOON + (2 + jump) * DAY_SECONDS
    assert ages.bound(ages.inspect(wrong, 0.0), 1) == NO_BOUND
    assert ages.bound(ages.inspect(wrong + DAY_SECONDS - 1, DAY_SECONDS - 1), 1) == NO_BOUND
    after = ages.bound(ages.inspect(wrong + DAY_SECONDS, DAY_SECONDS), 1)
    assert (after != NO_BOUND) == (jump > -400)


def test_what_was_written_under_a_wrong_clock_is_as_young_as_it_is(database: Database) -> None:
    """A change of a clock that was 400 days behind counts from the next proved day on."""
    change(database, NOON)
    days(database, NOON, 3)
    change(database, NOON - 400 * DAY_SECONDS)
    ages = days(database, NOON + 4 * DAY_SECONDS, 100)
    check = ages.inspect(NOON + 104 * DAY_SECONDS, 100 * DAY_SECONDS)
    assert ages.bound(check, 101) == Bound(NOON + 3 * DAY_SECONDS, 1)
    assert ages.bound(check, 98).change == 2


def test_the_day_is_counted_over_restarts(database: Database) -> None:
    """Several short runs make a day together, and one mark a day is enough."""
    for run in range(60):
        ages = Ages(database)
        start = NOON + run * DAY_SECONDS / 4
        for passed in (0.0, 3600.0):
            check = ages.inspect(start + passed, 500.0 * run + passed)
    assert check.proved
    marks = database.read("SELECT at FROM clock_marks")
    assert 5 <= len(marks) <= 15


def test_a_mark_of_a_time_to_come_keeps_no_new_one_away(database: Database) -> None:
    """A clock that ran wrong for a day, and was mended, is marked as before."""
    days(database, NOON + 300 * DAY_SECONDS, 1)
    ages = days(database, NOON, 2)
    check = ages.inspect(NOON + 3 * DAY_SECONDS, 3 * DAY_SECONDS)
    assert ages.bound(check, 1).before == NOON + 2 * DAY_SECONDS
