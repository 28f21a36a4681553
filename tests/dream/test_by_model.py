"""Dreams by a model against a real store, with a model that says what it is told to."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from memd.core.settings import DreamSettings, Settings
from memd.core.values import Actor, MemoryType
from memd.dream.ending import DreamFailedError, DreamTimeoutError
from memd.dream.report import Report
from memd.dream.service import LEFT_ALONE
from memd.dream.verdict import Merge, Removal
from memd.model.errors import (
    CapReachedError,
    ModelError,
    ModelNotConfiguredError,
    ModelRefusedError,
    ModelUnauthorisedError,
    ModelUnavailableError,
)
from memd.model.port import Ask, Reply, Usage
from memd.state import cursors, dreams, jobs, journal, runs
from memd.state.database import open_database
from memd.state.jobs import JobState
from memd.store import locks
from memd.testing.scripted_model import HANG, Answer, calls, says
from tests.dream.bench import DAY, NOW, Bench

pytestmark = pytest.mark.anyio

ON = Settings()
ANA = "Ana owns the deploys of the shop and does them on Tuesdays at 10:00 from the office."
BO = "Bo owns the rollbacks of the shop and is called at extension 4711 when one is needed."
CAP = CapReachedError("dream", "dollars_per_day", 1.0, "tomorrow")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Set up a store with a few memories."""
    schemas = (journal.SCHEMA, cursors.SCHEMA, jobs.SCHEMA, dreams.SCHEMA, runs.SCHEMA)
    database = open_database(str(tmp_path / "state.db"), schemas)
    made = Bench(tmp_path, database)
    made.write("deploys.md", f"{ANA}\n")
    made.write("rollbacks.md", f"{BO}\n")
    for name in ("board", "tracker", "wiki", "dashboard"):
        made.write(f"{name}.md", f"The {name} is at https://{name}.example and holds the rest.\n")
    (made.memory / "MEMORY.md").write_text("# Mine\n\n- [Deploys](deploys.md) — how they go\n")
    yield made
    database.close()


def read(*names: str) -> Reply:
    """Return a reply that reads memories."""
    return calls(*(("Read", {"file_path": name}) for name in names))


def write(name: str, text: str) -> tuple[str, dict[str, str]]:
    """Return a call that writes a file."""
    return "Write", {"file_path": name, "content": text}


def both(bench: Bench) -> str:
    """Return the memory that says what two say."""
    return (bench.memory / "deploys.md").read_text() + f"\n{BO}\n"


def merging(bench: Bench, *more: tuple[str, dict[str, str]]) -> tuple[Reply, ...]:
    """Return what a model says that merges two memories well."""
    return (
        read("deploys.md", "rollbacks.md", "board.md", "MEMORY.md"),
        calls(
            write("deploys.md", both(bench)),
            write("rollbacks.md", "removed: merged into deploys.md"),
            *more,
            first=10,
        ),
        says("I put the rollbacks beside the deploys."),
    )


async def test_a_good_merge_is_one_change(bench: Bench) -> None:
    """It commits as one set with its provenance and report; undo restores byte for byte."""
    before = bench.content()
    dreaming, model = bench.taught(*merging(bench))
    job = bench.job()
    report = await bench.run(dreaming, job)
    assert report.merged == (Merge("deploys.md", "rollbacks.md"),)
    assert (report.engine, report.turns) == ("claude-opus-5-5-dream", 3)
    assert report.said == "I put the rollbacks beside the deploys."
    assert report.usage == {"input": 300, "output": 60, "cache_read": 0, "cache_created": 0}
    assert report.dollars == pytest.approx((300 * 4 + 60 * 20) / 1e6)
    assert report.before is not None
    assert report.after is not None
    assert (report.before.memories, report.after.memories) == (6, 5)
    assert (bench.memory / "deploys.md").stat().st_mtime == NOW - DAY
    assert "(rollbacks.md)" not in (bench.memory / "MEMORY.md").read_text()
    (change,) = await bench.store.history(str(bench.memory))
    by = change.by
    assert (change.id, by.actor, by.model) == (report.change, Actor.DREAM, "claude-opus-5-5-dream")
    assert (by.origin, by.reason, by.session) == ("assistant", "consolidation", "s1")
    ended = bench.jobs.get(job)
    assert ended.state is JobState.COMPLETED
    assert ended.result is not None
    assert ended.result["turns"] == 3
    assert [turn["turn"] for turn in bench.runs.of(job)] == [1, 2, 3]
    assert {ask.kind for ask in model.asked} == {"dream"}
    assert bench.table.locks() == ()
    assert locks.consolidated_at(str(bench.memory)) == NOW
    phases = list(dict.fromkeys(bench.phases))
    assert phases == ["starting", "updating", "judging"]
    assert max(fact.get("turn", 0) for fact in bench.told) == 3

    await bench.store.undo(str(bench.memory), change.id, change.by)
    after = bench.content()
    del after[locks.LOCK]
    assert {name: body for name, (body, _) in after.items()} == {
        name: body for name, (body, _) in before.items()
    }
    del after["MEMORY.md"], before["MEMORY.md"]
    assert after == before


async def test_who_would_delete_everything_is_asked_once_and_kept_back(bench: Bench) -> None:
    """A model that goes on wanting what it may not have leaves a proposal and changes nothing."""
    names = sorted(path.name for path in bench.memory.glob("*.md") if path.name != "MEMORY.md")
    gone = [write(name, "removed: I do not like it") for name in names]
    before = bench.content()
    dreaming, model = bench.taught(
        read(*names), calls(*gone, first=20), says("Clean."), says("I stay with it.")
    )
    report = await bench.run(dreaming)
    assert report.change is None
    assert report.proposal is not None
    assert (report.turns, report.said) == (4, "I stay with it.")
    assert (report.removed, report.problems != ()) == ((), True)
    after = bench.content()
    del after[locks.LOCK]
    assert after == before
    told = str(model.asked[-1].messages[-1]["content"][-1]["text"])
    assert report.problems[0] in told
    assert model.asked[-1].messages[-2]["content"][0]["text"] == "Clean."
    (proposal,) = bench.table.proposals(str(bench.memory))
    assert {edit["reason"] for edit in proposal.content["edits"]} == {"I do not like it"}
    assert proposal.content["said"] == "I stay with it."


async def test_what_is_mended_is_committed(bench: Bench) -> None:
    """A model that is told what is wrong may put it right; both runs are one record."""
    lies = (
        read("deploys.md", "rollbacks.md"),
        calls(write("rollbacks.md", "removed: merged into deploys.md"), first=10),
        says("Merged."),
        calls(write("deploys.md", both(bench)), first=20),
        says("Now it is."),
    )
    dreaming, _ = bench.taught(*lies)
    job = bench.job()
    report = await bench.run(dreaming, job)
    assert report.merged == (Merge("deploys.md", "rollbacks.md"),)
    assert (report.proposal, report.turns, report.said) == (None, 5, "Now it is.")
    assert report.usage is not None
    assert report.usage["output"] == 100
    assert [turn["turn"] for turn in bench.runs.of(job)] == [1, 2, 3, 4, 5]
    assert [fact["turn"] for fact in bench.told if "text" in fact] == [1, 2, 3, 4, 5]


async def test_without_turns_or_success_nothing_is_mended(bench: Bench) -> None:
    """No turns left, or a mending that fails: what the first run wanted is the proposal."""
    script: tuple[Answer, ...] = (
        read("deploys.md", "rollbacks.md"),
        calls(write("rollbacks.md", "removed: merged into deploys.md"), first=10),
        says("Merged."),
        ModelUnavailableError("it broke off"),
    )
    three = replace(ON, dream=DreamSettings(max_turns=3))
    dreaming, model = bench.taught(*script)
    report = await bench.run(dreaming, settings=three)
    assert (report.proposal is not None, len(model.asked)) == (True, 3)
    bench.clock.advance(DAY)
    dreaming, model = bench.taught(*script)
    report = await bench.run(dreaming)
    assert (report.proposal is not None, len(model.asked)) == (True, 4)
    assert (report.said, report.turns) == ("Merged.", 3)
    assert len(bench.table.proposals(str(bench.memory))) == 1  # the same wish is one proposal


@pytest.mark.parametrize(
    "answers",
    [
        [calls(("Glob", {"pattern": "*"}))],
        [says("I cannot", stop="refusal")],
        [ModelUnavailableError("it broke off")],
    ],
)
async def test_a_model_that_does_not_finish_did_nothing(
    bench: Bench, answers: list[Answer]
) -> None:
    """Looping, refusing or gone: the job fails in words, and all is as it was, the lock too."""
    bench.lock(NOW - 3 * DAY)
    before = bench.content()
    dreaming, model = bench.taught(read("deploys.md"), *answers)
    job = bench.job()
    with pytest.raises(DreamFailedError) as caught:
        await bench.run(dreaming, job)
    assert (caught.value.of_model, caught.value.retryable) == (True, True)
    assert len(model.asked) <= 30
    assert bench.content() == before
    assert bench.table.locks() == ()
    assert bench.runs.of(job)[0]["turn"] == 1


@pytest.mark.parametrize(
    "error",
    [
        CAP,
        ModelNotConfiguredError("no key"),
        ModelUnauthorisedError("bad key"),
        ModelRefusedError(404, "no such model"),
    ],
)
async def test_who_cannot_be_asked_today_is_replaced(bench: Bench, error: ModelError) -> None:
    """At a cap or a closed door the fixed pass does it; the report says why and what it cost."""
    bench.write("again.md", f"{ANA}\n")
    dreaming, _ = bench.taught(read("deploys.md"), error)
    report = await bench.run(dreaming)
    assert (report.engine, report.model_problem) == ("local", error.sentence)
    assert (report.turns, len(report.merged)) == (0, 1)
    assert report.usage is not None
    assert report.usage["input"] == 100
    (change,) = await bench.store.history(str(bench.memory))
    assert (change.by.model, change.by.origin) == ("", "")


async def test_a_model_is_asked_only_where_it_may_be(bench: Bench) -> None:
    """Switched off, left alone after failures, or with nothing to look at, nobody is asked."""
    dreaming, model = bench.taught(says("All is well."))
    off = replace(ON, dream=DreamSettings(use_model=False))
    report = await bench.run(dreaming, settings=off)
    assert (report.engine, report.model_problem) == ("local", "")
    report = await bench.run(dreaming, allow_model=False)
    assert (report.engine, report.model_problem) == ("local", LEFT_ALONE)
    for path in bench.memory.glob("*.md"):
        path.unlink()
    report = await bench.run(dreaming)
    assert (report.engine, report.model_problem, model.asked) == ("local", "", [])
    (bench.memory / "logs/2026/03").mkdir(parents=True)
    (bench.memory / "logs/2026/03/2026-03-02.md").write_text("- 10:00 Ana owns the deploys\n")
    bench.lock(NOW - DAY)
    report = await bench.run(dreaming)
    assert (report.engine, len(model.asked)) == ("claude-opus-5-5-dream", 1)
    text = str(model.asked[0].messages[0]["content"][0]["text"])
    assert "logs/2026/03/2026-03-02.md" in text
    assert "last done on 2026-03-01" in text


async def test_a_person_who_edits_meanwhile_wins(bench: Bench) -> None:
    """A file that is saved during the dream stays as saved; the rest is committed and named."""
    mine = (bench.memory / "board.md").read_text().replace("the rest", "what Cy wrote")

    def save(ask: Ask) -> Reply:  # noqa: ARG001 - what is asked does not matter
        (bench.memory / "board.md").write_text(mine)
        return says("I put the rollbacks beside the deploys.")

    changed = (bench.memory / "board.md").read_text().replace("holds the rest", "holds it all")
    *script, _ = merging(bench, write("board.md", changed))
    dreaming, _ = bench.taught(*script, save)
    report = await bench.run(dreaming)
    assert report.merged == (Merge("deploys.md", "rollbacks.md"),)
    assert [(left.path, left.reason) for left in report.left] == [
        ("board.md", "somebody changed it during the dream")
    ]
    assert (bench.memory / "board.md").read_text() == mine
    assert not (bench.memory / "rollbacks.md").exists()


async def test_a_person_who_edits_a_target_keeps_what_was_to_go_into_it(bench: Bench) -> None:
    """Where the memory that took others in was saved meanwhile, none of them is removed."""
    mine = (bench.memory / "deploys.md").read_text() + "\nNot on holidays.\n"

    def save(ask: Ask) -> Reply:  # noqa: ARG001 - what is asked does not matter
        (bench.memory / "deploys.md").write_text(mine)
        return says("Done.")

    *script, _ = merging(bench, ("Read", {"file_path": "wiki.md"}))
    dreaming, _ = bench.taught(
        *script, calls(write("wiki.md", "removed: the wiki was shut down in May"), first=30), save
    )
    report = await bench.run(dreaming)
    assert report.problems == ()
    assert report.removed == (Removal("wiki.md", "the wiki was shut down in May"),)
    assert {left.path for left in report.left} == {"deploys.md", "rollbacks.md"}
    assert (bench.memory / "deploys.md").read_text() == mine
    assert BO in (bench.memory / "rollbacks.md").read_text()


async def test_a_cancelled_model_leaves_its_record_and_nothing_else(bench: Bench) -> None:
    """Cancelled while a model hangs, a dream ends with everything as it was but its record."""
    bench.lock(NOW - 3 * DAY)
    before = bench.content()
    *script, _ = merging(bench)
    dreaming, model = bench.taught(*script, HANG)
    job = bench.job()
    scope = anyio.CancelScope()

    async def run() -> None:
        with scope:
            await bench.run(dreaming, job)

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            while len(model.asked) < 3:
                await anyio.lowlevel.checkpoint()
            scope.cancel()
    assert scope.cancelled_caught
    assert bench.content() == before
    assert bench.table.locks() == ()
    assert len(bench.runs.of(job)) == 2


async def test_a_model_that_hangs_ends_with_the_dreams_time(bench: Bench) -> None:
    """The time of a dream covers all of it; what was written until then is not kept."""
    before = bench.content()
    *script, _ = merging(bench)
    dreaming, model = bench.taught(*script, HANG)
    failures: list[Exception] = []

    async def run() -> None:
        try:
            await bench.run(dreaming)
        except (DreamTimeoutError, DreamFailedError) as error:
            failures.append(error)

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            while len(model.asked) < 3:
                await anyio.lowlevel.checkpoint()
            bench.clock.advance(ON.dream.max_minutes * 60 * 0.95)
    (failure,) = failures
    assert isinstance(failure, DreamFailedError)
    assert failure.facts["reason"] == "time"
    assert bench.content() == before


async def test_a_record_that_cannot_be_kept_costs_no_dream(bench: Bench) -> None:
    """Without a place for its record a dream goes on, and the log says so."""
    dreaming, _ = bench.taught(says("All is well.", usage=Usage()))
    job = bench.job()
    with bench.database.transaction() as cursor:
        cursor.execute("DROP TABLE runs")
    report = await bench.run(dreaming, job)
    assert (report.engine, report.said) == ("claude-opus-5-5-dream", "All is well.")
    assert bench.noted == ["record_lost"]
    assert report.usage is None


async def test_a_third_does_not_go_bit_by_bit(bench: Bench) -> None:
    """What dreams removed of late counts, unless it came back; so does nothing older."""
    for name in ("atlas", "radio", "forum"):
        bench.write(f"{name}.md", f"The {name} is at https://{name}.example and is read by all.\n")

    async def dream(*names: str) -> Report:
        gone = [write(f"{name}.md", f"removed: the {name} was shut down") for name in names]
        dreaming, _ = bench.taught(
            read(*(f"{name}.md" for name in names)), calls(*gone, first=20), says("Gone.")
        )
        bench.clock.advance(DAY)
        return await bench.run(dreaming)

    first = await dream("atlas", "radio")
    assert len(first.removed) == 2
    second = await dream("board", "wiki")
    assert second.proposal is not None
    assert any("lately" in problem for problem in second.problems), second.problems
    bench.clock.advance(31 * DAY)
    third = await dream("board", "wiki")
    assert len(third.removed) == 2


async def test_rules_are_not_reworded(bench: Bench) -> None:
    """A model that turns a person's rule into its opposite is kept back with a reason."""
    path = bench.write("rule.md", "Always run the tests before a push.\n", MemoryType.FEEDBACK)
    opposite = path.read_text().replace("Always run", "Never run")
    before = path.read_bytes()
    dreaming, _ = bench.taught(
        read("rule.md"), calls(write("rule.md", opposite), first=5), says("Tightened."), says("No.")
    )
    report: Report = await bench.run(dreaming)
    assert (report.change, report.proposal is not None) == (None, True)
    assert any("rule.md" in problem for problem in report.problems)
    assert path.read_bytes() == before
