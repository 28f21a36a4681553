"""How one run of a job ended."""

from memd.core import limits
from memd.jobs.ending import Ending
from memd.jobs.standstill import Standstill
from memd.state.jobs import Job, JobState, JobTable
from tests.jobs.bench import Bench, LaterError, ModelDownError, NeverError

_ROW = Job(
    "j1", "extract", "/m", "/m", "s", {}, JobState.RUNNING, "", None, None, 1, 0.0, 0.0, None
)


def test_a_failure_that_may_pass_has_another_try() -> None:
    """What follows tells how often it failed so, and when to try again."""
    run = Ending(row=_ROW)
    run.failed(LaterError())
    follows = run.setback()
    assert (follows.again, follows.parked, follows.pause) == (True, False, limits.RETRY_SECONDS)
    assert follows.error["times"] == 1
    assert not run.about_model()


def test_other_failures_are_the_end() -> None:
    """A failure that cannot pass is neither tried again nor parked, nor is an unexpected one."""
    never, broken = Ending(row=_ROW), Ending(row=_ROW)
    never.failed(NeverError())
    broken.broke("e1")
    assert never.setback().error == {"kind": "never", "message": "this cannot work"}
    assert broken.setback().error["id"] == "e1"
    for run in (never, broken):
        assert (run.setback().again, run.setback().parked) == (False, False)


def test_a_run_that_did_not_begin_is_tried_again() -> None:
    """Where the state file let no job begin nothing is counted."""
    run = Ending()
    run.failed(LaterError())
    assert run.setback().again
    assert Ending().setback().error == {}


def test_the_breaker_hears_of_models_alone(bench: Bench) -> None:
    """A model that failed is counted for the directory, one that worked ends the count."""
    standstill = Standstill(JobTable(bench.database).pauses)
    down, worked, quiet = Ending(row=_ROW), Ending(row=_ROW), Ending(row=_ROW)
    down.failed(ModelDownError(1))
    worked.result, quiet.result = {"turns": 1}, {"turns": 0}
    assert [run.about_model() for run in (down, worked, quiet)] == [True, True, False]
    for _ in range(limits.BREAKER_AFTER):
        down.tell(standstill, 5.0)
    Ending(result={"turns": 1}).tell(standstill, 5.0)
    assert not standstill.model_allowed("/m", 5.0)
    worked.tell(standstill, 5.0)
    assert standstill.model_allowed("/m", 5.0)
