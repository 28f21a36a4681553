"""What is asked of those who run jobs."""

from typing import Any

import pytest

from memd.core import limits
from memd.jobs.breaker import PauseControl
from memd.jobs.running import Running, RunResult, UnknownJobKindError, runner_of
from memd.state.jobs import Job, JobState, JobTable
from tests.jobs.bench import Bench, ModelDownError


async def run(_running: Running) -> dict[str, Any]:
    """Run nothing."""
    return {}


def test_a_kind_without_a_runner_is_told() -> None:
    """A row may be of another memd's kind; that is an error with its name."""
    assert runner_of({"extract": run}, "extract") is run
    with pytest.raises(UnknownJobKindError) as caught:
        runner_of({"extract": run}, "paint")
    assert "paint" in caught.value.sentence


_ROW = Job(
    "j1", "extract", "/m", "/m", "s", {}, JobState.RUNNING, "", None, None, 1, 0.0, 0.0, None
)


def test_the_breaker_hears_of_models_alone(bench: Bench) -> None:
    """A model that failed is counted for the directory, one that worked ends the count."""
    control = PauseControl(JobTable(bench.database).pauses)
    down, worked, quiet = RunResult(row=_ROW), RunResult(row=_ROW), RunResult(row=_ROW)
    down.failed(ModelDownError(1))
    worked.result, quiet.result = {"turns": 1}, {"turns": 0}
    assert [run.about_model() for run in (down, worked, quiet)] == [True, True, False]
    for _ in range(limits.BREAKER_AFTER):
        down.report(control, 5.0)
    RunResult(result={"turns": 1}).report(control, 5.0)
    assert not control.model_allowed("/m", 5.0)
    worked.report(control, 5.0)
    assert control.model_allowed("/m", 5.0)
