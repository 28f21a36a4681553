"""One dream at work, and the model that works for it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memd.agent.service import RunEnd
from memd.agent.step import Reason
from memd.core.settings import Settings, SpendSettings
from memd.core.values import Actor, Snapshot
from memd.dream import briefing
from memd.dream.pass_result import ReadyPass
from memd.dream.run import (
    DreamEndedError,
    DreamFailedError,
    DreamProgress,
    DreamRun,
    DreamTimeoutError,
    LockLostError,
    ModelRun,
)
from memd.dream.values import Wanted
from memd.model.errors import ModelUnavailableError
from memd.model.port import Usage
from memd.state import cursors, dreams, job_rows, journal, runs
from memd.state.database import open_database
from memd.testing.scripted_model import ScriptedModel, says
from memd.watch import locks
from tests.dream.bench import DAY, NOW, Bench

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"  # as such a token looks
LOCAL = ReadyPass(lambda _: lambda _tree: Wanted())


@pytest.fixture
def dream(tmp_path: Path) -> Iterator[DreamRun]:
    """Begin a dream."""
    schemas = (journal.SCHEMA, cursors.SCHEMA, job_rows.SCHEMA, dreams.SCHEMA, runs.SCHEMA)
    database = open_database(str(tmp_path / "state.db"), schemas)
    bench = Bench(tmp_path, database)
    bench.write("a.md", "Ana owns it.\n")
    bench.lock(NOW - DAY)
    held = locks.take(str(bench.memory), NOW, lambda *_: None, lambda *_: False)
    assert held is not None
    settings = Settings(spend=SpendSettings(prices="large 10 100 1 20"))
    yield DreamRun(bench.project, settings, held, bench.progress, 0.0, session="s1", client="c")
    held.reset()
    database.close()


def ended(*, finished: bool = True, text: str = "Done.") -> RunEnd:
    """Return a run that ended."""
    return RunEnd(
        finished=finished,
        reason=None if finished else Reason.MODEL,
        text=text,
        usage=Usage(1_000, 100, 5_000, 50),
        turns=4,
        calls=0,
        denied=0,
        touched=(),
        record=(),
        error=None if finished else ModelUnavailableError("gone"),
    )


def working_for(dream: DreamRun) -> ModelRun:
    """Return a model at work."""
    task = briefing.task(
        dream.project,
        Snapshot(dream.directory, (), None),
        model="large",
        now=NOW,
        last=dream.last,
        refusals=(),
        settings=dream.settings.dream,
        log_days=(),
    )
    model = ScriptedModel([says("x")])
    return ModelRun(dream, task, model, dream.workspace(), DreamProgress(dream.progress))


def test_a_dream_that_is_over_goes_no_further(dream: DreamRun) -> None:
    """Work goes on until the dream is over, and then ends at its next word."""
    assert dream.last == NOW - DAY
    dream.check()
    dream.over = True
    with pytest.raises(DreamEndedError):
        dream.check()


def test_history_tells_who_dreamt(dream: DreamRun) -> None:
    """With a model the change names it and whose words it worked on; without one neither."""
    local, large = dream.by(LOCAL), dream.by(ReadyPass(LOCAL.work, "large"))
    assert (local.actor, local.client, local.session) == (Actor.DREAM, "c", "s1")
    assert (local.model, local.origin) == ("", "")
    assert (large.model, large.origin, large.reason) == ("large", "assistant", "consolidation")


def test_two_runs_are_one_pass(dream: DreamRun) -> None:
    """Turns, tokens and dollars add up; a mending that fails leaves what the first run wanted."""
    working = working_for(dream)
    try:
        first = working.done(ended(text=f"Done with {TOKEN}."), NOW)
        assert (first.engine, first.turns, first.dollars) == ("large", 4, 0.026)
        assert TOKEN not in first.said
        second = working.done(ended(text="Mended."), NOW, first)
        assert (second.said, second.turns, second.usage.input) == ("Mended.", 8, 2_000)
        assert second.work is not first.work
        failed = working.done(ended(finished=False), NOW, first)
        assert (failed.said, failed.turns, failed.dollars) == (first.said, 8, 0.052)
        assert failed.work is first.work
        instead = working.instead(ended(finished=False), LOCAL)
        assert (instead.engine, instead.turns, instead.usage.input) == ("local", 0, 1_000)
        assert "gone" in instead.problem
        assert working.instead(ended(), LOCAL).problem == ""
    finally:
        working.workspace.close()


def test_two_runs_are_told_as_one() -> None:
    """The first write begins the updating, and a second run goes on counting."""
    reported: list[tuple[str, dict[str, Any]]] = []
    progress = DreamProgress(lambda phase, **facts: reported.append((phase, facts)))
    progress("asking", turn=1, tool_calls=0, touched=[], tokens=0)
    progress("tools", turn=1, tool_calls=2, touched=["a.md"], tokens=90, text="I join two.")
    progress.ran(turns=2, calls=3, tokens=100)
    progress.judging()
    progress("asking", turn=1, tool_calls=0, touched=["a.md"], tokens=0)
    assert reported == [
        ("starting", {"turn": 1, "tool_calls": 0, "touched": [], "tokens": 0}),
        (
            "updating",
            {
                "turn": 1,
                "tool_calls": 2,
                "touched": ["a.md"],
                "tokens": 90,
                "text": "I join two.",
            },
        ),
        ("judging", {}),
        ("updating", {"turn": 3, "tool_calls": 3, "touched": ["a.md"], "tokens": 100}),
    ]


def test_each_end_says_what_happened() -> None:
    """Each says it in a sentence, and those of a model count against the model."""
    assert "20 minutes" in str(DreamTimeoutError(20.0))
    assert "nothing was written" in str(DreamEndedError())
    assert "/m" in str(LockLostError("/m"))
    looped = DreamFailedError(replace(ended(finished=False), reason=Reason.LOOP, error=None))
    assert (looped.of_model, looped.retryable, looped.facts["turns"]) == (True, True, 4)
    assert str(looped) == "the model did not finish: it ran into its bound: loop"
    assert "gone" in str(DreamFailedError(ended(finished=False)))
