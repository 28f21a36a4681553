"""Whether the clock can be believed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.core.clock_check import DAY_SECONDS, ClockCheck, day_to_book, inspect

NOON = 1_760_000_000.0
PROVED = ClockCheck(NOON, DAY_SECONDS)


@pytest.mark.parametrize(
    ("jump", "words"),
    [(200, "ahead by 200 days"), (-1, "back by 24.0 hours"), (-400, "back by 400")],
)
def test_a_jump_begins_the_day_anew_and_is_named(jump: int, words: str) -> None:
    """A proved clock that jumps is not proved until it has run for another day."""
    results = inspect(PROVED, NOON, NOON + jump * DAY_SECONDS, 0.0)
    assert not results.proved
    assert words in results.problem
    soon = inspect(results, 0.0, results.at + 60, 60.0)
    assert words in soon.problem
    after = inspect(soon, 0.0, soon.at + DAY_SECONDS, DAY_SECONDS)
    assert after.proved
    assert after.problem == ""


def test_a_clock_behind_what_is_recorded_is_not_proved() -> None:
    """However long it runs: a change of a time to come says that one of the two is wrong."""
    results = inspect(PROVED, NOON + 3 * DAY_SECONDS, NOON + DAY_SECONDS, DAY_SECONDS)
    assert not results.proved
    assert "2 days behind the newest recorded change" in results.problem


@given(
    st.lists(
        st.tuples(st.floats(-500 * DAY_SECONDS, 500 * DAY_SECONDS), st.floats(0, 3600.0)),
        max_size=30,
    )
)
def test_no_jumps_prove_a_clock(steps: list[tuple[float, float]]) -> None:
    """Only time that went by while memd ran counts, whatever the clock did."""
    check, now, ran = None, NOON, 0.0
    for jump, passed in steps:
        now += jump + passed
        ran += passed
        check = inspect(check, NOON, now, passed)
        assert check.steady <= ran
        assert not check.proved or ran >= DAY_SECONDS


def test_a_day_to_book_does_not_go_back() -> None:
    """Spending counts for the day of the last booking where the clock is before it."""
    assert day_to_book("2026-03-05", "", steady=False) == "2026-03-05"
    assert day_to_book("2026-03-06", "2026-03-05", steady=False) == "2026-03-06"
    assert day_to_book("2026-03-04", "2026-03-05", steady=False) == "2026-03-05"
    assert day_to_book("2026-03-04", "2026-03-05", steady=True) == "2026-03-04"
