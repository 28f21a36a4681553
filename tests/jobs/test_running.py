"""What is asked of those who run jobs."""

from memd.base import limits
from memd.jobs import breaker
from memd.jobs.breaker import Breaker
from memd.jobs.running import RunResult
from memd.state.docs import Docs
from memd.state.jobs import Job, JobState
from tests.jobs.bench import Bench, ModelDownError

_ROW = Job(
    "j1", "extract", "/m", "/m", "s", {}, JobState.RUNNING, "", None, None, 1, 0.0, 0.0, None
)


def test_the_breaker_hears_of_models_alone(bench: Bench) -> None:
    """A model that failed is counted for the directory, one that worked ends the count."""
    rows = Docs(bench.database)
    down, worked, quiet = RunResult(row=_ROW), RunResult(row=_ROW), RunResult(row=_ROW)
    down.record_failure(ModelDownError(1))
    worked.result, quiet.result = {"turns": 1}, {"turns": 0}
    assert [run.used_model() for run in (down, worked, quiet)] == [True, True, False]
    for _ in range(limits.BREAKER_AFTER):
        down.report(rows, 5.0)
    RunResult(result={"turns": 1}).report(rows, 5.0)
    assert breaker.is_open(rows.get(Breaker, "/m"), 5.0)
    worked.report(rows, 5.0)
    assert not breaker.is_open(rows.get(Breaker, "/m"), 5.0)
