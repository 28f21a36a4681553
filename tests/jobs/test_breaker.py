"""What a failure leads to."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.base import limits
from memd.jobs import breaker
from memd.jobs.breaker import Breaker, WorkState
from memd.state.docs import Docs
from tests.jobs.bench import Bench

_DOWN = {"kind": "down", "message": "overloaded (request req_01AB), try in 5 s"}


@pytest.mark.parametrize(
    ("before", "error", "times"),
    [
        (None, _DOWN, 1),
        (_DOWN, _DOWN, 2),
        ({**_DOWN, "times": 2}, _DOWN, 3),
        ({**_DOWN, "times": "2"}, _DOWN, 1),
        ({**_DOWN, "message": "overloaded (request req_9), try in 12.5 s"}, _DOWN, 2),
        ({**_DOWN, "message": "overloaded"}, _DOWN, 1),
        ({**_DOWN, "kind": "other", "times": 2}, _DOWN, 1),
        ({}, _DOWN, 1),
    ],
)
def test_the_same_failure_is_counted(
    before: dict[str, Any] | None, error: dict[str, Any], times: int
) -> None:
    """Failures are the same by kind and sentence, whatever numbers and ids are in it."""
    assert breaker.failures_in_a_row(before, error) == times


@given(st.integers(1, 200), st.floats(0, 4e9))
def test_a_directorys_pause_grows_within_its_bound(count: int, now: float) -> None:
    """Two failures open nothing, the third does; each pause is twice the last, up to the most."""
    row: Breaker | None = None
    seconds = []
    for _ in range(count):
        row = breaker.breaker_after_failure(row, "/m", "why", now)
        seconds.append(row.until - row.since)
        assert breaker.is_open(row, now) is (row.failures >= limits.BREAKER_AFTER)
        assert not breaker.is_open(row, row.until)
        assert not breaker.is_open(row, now - 1)  # the clock was set back
    grown = [0.0, 0.0, *(limits.BREAKER_SECONDS * 2**n for n in range(count))]
    most = limits.BREAKER_SECONDS_MOST
    assert seconds == pytest.approx([min(s, most) for s in grown[:count]], abs=1e-3)
    assert not breaker.is_open(None, now)


def test_what_holds_work_up_is_in_the_state_file(bench: Bench) -> None:
    """A pause begins once, and a breaker opens for one directory until a model works there."""
    rows = Docs(bench.database)
    for now in (10.0, 20.0):
        breaker.pause_work(rows, now)
    for _ in range(limits.BREAKER_AFTER):
        breaker.model_failed(rows, "/m", "down", 10.0)
    breaker.model_failed(rows, "/n", "down", 10.0)
    state = breaker.work_state(rows, 11.0, 2)
    assert (state.paused_since, state.waiting) == (10.0, 2)
    assert [row.directory for row in state.breakers] == ["/m"]
    assert not breaker.work_state(rows, 10.0 + limits.BREAKER_SECONDS, 2).breakers
    for directory in ("/m", "/never"):
        breaker.model_worked(rows, directory)
    assert not breaker.work_state(rows, 11.0, 2).breakers


def test_a_person_closes_all_breakers(bench: Bench) -> None:
    """Who lets work go on lets it ask models again."""
    rows = Docs(bench.database)
    breaker.pause_work(rows, 10.0)
    for directory in ("/m", "/n"):
        for _ in range(limits.BREAKER_AFTER):
            breaker.model_failed(rows, directory, "down", 10.0)
    breaker.resume_work(rows)
    assert breaker.work_state(rows, 11.0, 0) == WorkState(None, 0, ())
