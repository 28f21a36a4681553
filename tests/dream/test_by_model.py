"""Dreams by a model against a real store, with a model that says what it is told to."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.dream.values import Merge
from memd.watch import locks
from tests.dream.bench import DAY, Bench
from tests.dream.scripts import ANA, BO, both, filled, merging, read, write
from tests.scripted_model import calls, says
from tests.undoing import undo

pytestmark = pytest.mark.anyio


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Set up a store with a few memories."""
    with filled(tmp_path) as made:
        yield made


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
