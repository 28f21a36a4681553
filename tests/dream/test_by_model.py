"""Dreams by a model against a real store, with a model that says what it is told to."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.core.values import Actor
from memd.dream.values import Merge, Reasoned
from memd.model.port import Ask, Reply
from memd.state.jobs import JobState
from memd.watch import locks
from tests.dream.bench import DAY, NOW, Bench
from tests.dream.scripts import ANA, BO, both, filled, merging, read, write
from tests.scripted_model import calls, says
from tests.undoing import undo

pytestmark = pytest.mark.anyio


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Set up a store with a few memories."""
    with filled(tmp_path) as made:
        yield made


async def test_a_good_merge_is_one_change(bench: Bench) -> None:
    """It commits as one set with its provenance and report; undo restores byte for byte."""
    before = bench.content()
    dreaming, model = bench.taught(*merging(bench))
    job = bench.job()
    report = await bench.run(dreaming, job)
    assert report.merged == (Merge("deploys.md", "rollbacks.md"),)
    assert (report.engine, report.turns) == ("claude-opus-5-5-dream", 3)
    assert report.said == "I put the rollbacks beside the deploys."
    assert report.facts()["usage"] == {
        "input": 300,
        "output": 60,
        "cache_read": 0,
        "cache_created": 0,
    }
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
    assert {ask.kind for ask in model.requested} == {"dream"}
    assert bench.table.locks() == ()
    assert locks.consolidated_at(str(bench.memory)) == NOW
    phases = list(dict.fromkeys(bench.phases))
    assert phases == ["starting", "updating", "judging"]
    assert max(fact.get("turn", 0) for fact in bench.reported) == 3

    await undo(bench.store, str(bench.memory), change.id, change.by)
    after = bench.content()
    del after[locks.LOCK]
    assert {name: body for name, (body, _) in after.items()} == {
        name: body for name, (body, _) in before.items()
    }
    del after["MEMORY.md"], before["MEMORY.md"]
    assert after == before


async def test_a_merge_that_was_taken_back_is_not_made_again(bench: Bench) -> None:
    """After an undo the same wish leaves both memories alone, and the report says why."""
    script = merging(bench)
    report = await bench.run(bench.taught(*script)[0])
    (change,) = await bench.store.history(str(bench.memory))
    await undo(bench.store, str(bench.memory), change.id, change.by)
    bench.clock.advance(DAY)
    again = await bench.run(bench.taught(*script)[0])
    assert (report.merged != (), again.merged, again.problems) == (True, (), ())
    assert {left.path for left in again.left} == {"deploys.md", "rollbacks.md"}
    assert any("taken back" in left.reason for left in again.left)
    assert (bench.memory / "rollbacks.md").exists()


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
    reported = str(model.requested[-1].messages[-1]["content"][-1]["text"])
    assert report.problems[0] in reported
    assert model.requested[-1].messages[-2]["content"][0]["text"] == "Clean."
    (proposal,) = bench.proposals.of_directory(str(bench.memory))
    assert {edit.reason for edit in proposal.edits or ()} == {"I do not like it"}
    assert proposal.said == "I stay with it."


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
    assert report.usage.output == 100
    assert [turn["turn"] for turn in bench.runs.of(job)] == [1, 2, 3, 4, 5]
    assert [fact["turn"] for fact in bench.reported if "text" in fact] == [1, 2, 3, 4, 5]


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

    bench.write("party.md", "The party was on 2026-02-20.\n")
    why = "the party was on 2026-02-20, which is over"
    *script, _ = merging(bench, ("Read", {"file_path": "party.md"}))
    dreaming, _ = bench.taught(*script, calls(write("party.md", f"removed: {why}"), first=30), save)
    report = await bench.run(dreaming)
    assert report.problems == ()
    assert report.removed == (Reasoned("party.md", why),)
    assert {left.path for left in report.left} == {"deploys.md", "rollbacks.md"}
    assert (bench.memory / "deploys.md").read_text() == mine
    assert BO in (bench.memory / "rollbacks.md").read_text()


async def test_a_model_without_tools_dreams_in_one_request(bench: Bench) -> None:
    """It sees the memories whole; what the judge has against its answer is mended once."""
    update = {"op": "update", "path": "deploys.md", "body": f"{ANA}\n\n{BO}"}
    delete = {"op": "delete", "path": "rollbacks.md", "reason": "merged into deploys.md"}
    wrong = {"op": "delete", "path": "rollbacks.md", "reason": "it is of no use"}
    dreaming, model = bench.taught(says(json.dumps([wrong])), says(json.dumps([update, delete])))
    model.calls_tools = False
    report = await bench.run(dreaming)
    assert report.merged == (Merge("deploys.md", "rollbacks.md"),)
    assert report.turns == 2
    first, second = model.requested
    assert ANA in first.messages[0]["content"]
    assert not first.tools
    assert "rollbacks.md" in second.messages[-1]["content"]
    assert BO in (bench.memory / "deploys.md").read_text()
    assert not (bench.memory / "rollbacks.md").exists()
