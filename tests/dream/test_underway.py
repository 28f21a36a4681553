"""One dream at work, and the model that works for it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.agent.service import Ended
from memd.agent.step import Reason
from memd.core.settings import Settings, SpendSettings
from memd.core.values import Actor, Snapshot
from memd.dream.ending import DreamEndedError
from memd.dream.findings import Done
from memd.dream.telling import Telling
from memd.dream.underway import Asked, Underway
from memd.dream.verdict import Wanted
from memd.model.errors import ModelUnavailableError
from memd.model.port import Usage
from memd.state import cursors, dreams, jobs, journal, runs
from memd.state.database import open_database
from memd.state.proposals import Refusal
from memd.testing.scripted_model import ScriptedModel, says
from memd.watch import locks
from tests.dream.bench import DAY, NOW, Bench

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"  # as such a token looks
LOCAL = Done(lambda _: lambda _tree: Wanted())


@pytest.fixture
def dream(tmp_path: Path) -> Iterator[Underway]:
    """Begin a dream."""
    schemas = (journal.SCHEMA, cursors.SCHEMA, jobs.SCHEMA, dreams.SCHEMA, runs.SCHEMA)
    database = open_database(str(tmp_path / "state.db"), schemas)
    bench = Bench(tmp_path, database)
    bench.write("a.md", "Ana owns it.\n")
    bench.lock(NOW - DAY)
    held = locks.take(str(bench.memory), NOW, lambda *_: None, lambda *_: False)
    assert held is not None
    settings = Settings(spend=SpendSettings(prices="large 10 100 1 20"))
    yield Underway(bench.project, settings, held, bench.progress, 0.0, session="s1", client="c")
    held.give_back()
    database.close()


def ended(*, finished: bool = True, text: str = "Done.") -> Ended:
    """Return a run that ended."""
    return Ended(
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


def asked(dream: Underway) -> Asked:
    """Return a model at work."""
    task = dream.task(Snapshot(dream.directory, (), None), "large", NOW, (), ())
    model = ScriptedModel([says("x")])
    return Asked(dream, task, model, dream.workspace(), Telling(dream.progress))


def test_a_dream_that_is_over_goes_no_further(dream: Underway) -> None:
    """Work goes on until the dream is over, and then ends at its next word."""
    dream.heed()
    dream.over = True
    with pytest.raises(DreamEndedError):
        dream.heed()


def test_history_tells_who_dreamt(dream: Underway) -> None:
    """With a model the change names it and whose words it worked on; without one neither."""
    local, large = dream.by(LOCAL), dream.by(Done(LOCAL.work, "large"))
    assert (local.actor, local.client, local.session) == (Actor.DREAM, "c", "s1")
    assert (local.model, local.origin) == ("", "")
    assert (large.model, large.origin, large.reason) == ("large", "assistant", "consolidation")


def test_a_model_is_told_when_it_was_last_and_what_was_refused(dream: Underway) -> None:
    """The time before this dream took the lock, and each refusal with its day and reason."""
    assert dream.last == NOW - DAY
    refused = (
        Refusal(("a.md", "b.md"), "merge a.md into b.md", "they differ", NOW - DAY),
        Refusal(("c.md",), "remove c.md", "", NOW - DAY),
    )
    task = dream.task(Snapshot(dream.directory, (), None), "large", NOW, (), refused)
    text = str(task.messages[0]["content"][0]["text"])
    assert "- on 2026-03-01, a.md, b.md: merge a.md into b.md because: they differ\n" in text
    assert "- on 2026-03-01, c.md: remove c.md\n" in text
    assert task.budget.turns == 30


def test_two_runs_are_one_pass(dream: Underway) -> None:
    """Turns, tokens and dollars add up; a mending that fails leaves what the first run wanted."""
    working = asked(dream)
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
