"""A person's pause, and the breaker of a directory's models."""

import pytest

from memd.base import limits
from memd.jobs import breaker
from memd.jobs.breaker import Breaker, WorkState
from memd.state.docs import Docs
from tests.jobs.bench import Bench


@pytest.mark.parametrize("now", [0.0, 4e9])
def test_a_directorys_pause_grows_within_its_bound(bench: Bench, now: float) -> None:
    """Two failures open nothing, the third does; each pause is twice the last, up to the most."""
    rows = Docs(bench.database)
    seconds = []
    for count in range(1, 41):
        breaker.model_failed(rows, "/m", "why", now)
        row = rows.get(Breaker, "/m")
        assert row is not None
        seconds.append(row.until - row.since)
        assert breaker.model_allowed(rows, "/m", now) is (count < limits.BREAKER_AFTER)
        assert breaker.model_allowed(rows, "/m", row.until)
        assert breaker.model_allowed(rows, "/m", now - 1)  # the clock was set back
    grown = [0.0, 0.0, *(limits.BREAKER_SECONDS * 2**n for n in range(38))]
    most = limits.BREAKER_SECONDS_MOST
    assert seconds == pytest.approx([min(s, most) for s in grown], abs=1e-3)


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
