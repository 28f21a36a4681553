"""A run with one request: its answer, and what it is told when something of that cannot stand."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.agent import operations
from memd.agent import service as agent
from memd.agent.service import RunEnd
from memd.agent.workspace import Workspace
from tests.scripted_model import ScriptedModel, says
from tests.support.clock import FakeClock

OLD = (
    b"---\nname: old\ndescription: a port\nmetadata:\n  type: project\n  x: 1\n---\n\nIt is 8080.\n"
)
CREATE = {
    "op": "create",
    "type": "feedback",
    "name": "No tabs: ever",
    "description": "tabs: never #style",
    "body": "No tabs.",
    "said": "never use tabs",
}


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    """Open a directory with one memory."""
    (tmp_path / "old.md").write_bytes(OLD)
    with Workspace(str(tmp_path), origin="user", removals=True) as opened:
        yield opened


async def shoot(
    workspace: Workspace, *answers: object, shown: bool = True
) -> tuple[RunEnd, ScriptedModel]:
    """Run a model that answers with these values, as JSON where they are none of text."""
    texts = [a if isinstance(a, str) else json.dumps(a) for a in answers]
    model = ScriptedModel([says(text) for text in texts])
    memories = (("old.md", OLD.decode()),) if shown else ()
    task = agent.single_shot.task("extract", "m", "Look.", directory="/m", shown=memories)
    return await agent.run(task, model, workspace, FakeClock(), lambda *_, **__: None), model


def written(workspace: Workspace) -> dict[str, str]:
    """Return what a run wants: the text of each file, or why it goes."""
    return {f.path: (f.content or f.reason.encode()).decode() for f in workspace.proposal().files}


@pytest.mark.anyio
async def test_one_answer_creates_updates_and_deletes(workspace: Workspace) -> None:
    """Operations end in the workspace: heads are memd's, quotations the last lines of a body."""
    ended, model = await shoot(workspace, f"Sure!\n```json\n{json.dumps([CREATE])}\n```\nDone.")
    assert (ended.finished, ended.turns, len(model.requested)) == (True, 1, 1)
    text = written(workspace)["no-tabs-ever.md"]
    assert 'description: "tabs: never #style"' in text
    assert text.endswith('\n\nNo tabs.\n\n**Said:** "never use tabs"\n')
    change = {"op": "update", "path": "old.md", "body": "It is 9090.", "name": None}
    await shoot(workspace, [change])
    assert written(workspace)["old.md"] == OLD.decode().replace("8080", "9090")
    await shoot(workspace, [{"op": "delete", "path": "old.md", "said": "forget the port"}])
    assert written(workspace)["old.md"] == '"forget the port"'


@pytest.mark.anyio
async def test_what_is_wrong_is_named_once(workspace: Workspace) -> None:
    """One more request says what was refused and why; what stands by then is not asked again."""
    wrong = [CREATE, {"op": "rename"}, {"op": "create", "path": "../x.md", **CREATE}]
    wrong[1]["half \ud800"] = "x"
    ended, model = await shoot(workspace, wrong, [])
    assert (ended.finished, ended.turns) == (True, 2)
    told = model.requested[1].messages[-1]["content"]
    assert "operation 2" in told
    assert "operation 3" in told
    assert "operation 1" not in told
    assert all(isinstance(message["content"], str) for message in model.requested[1].messages)
    assert list(written(workspace)) == ["no-tabs-ever.md"]


@pytest.mark.anyio
async def test_what_stays_wrong_costs_nothing_else(workspace: Workspace) -> None:
    """After the second answer what made sense is done; an answer without any sense fails."""
    ended, model = await shoot(workspace, [CREATE, {"op": "x"}], "no")
    assert (ended.finished, ended.touched) == (True, ("no-tabs-ever.md",))
    assert len(model.requested) == 2
    ended, model = await shoot(workspace, "nothing new", "really nothing")
    assert (ended.finished, str(ended.reason), len(model.requested)) == (
        False,
        "malformed_calls",
        2,
    )


@pytest.mark.anyio
async def test_the_index_is_no_memory(workspace: Workspace) -> None:
    """An operation on the index, in any case, is refused and stages nothing there."""
    wrong = [CREATE, {**CREATE, "op": "create", "path": "Memory.md"}]
    await shoot(workspace, wrong, [])
    assert all("memory.md" not in file.path.lower() for file in workspace.proposal().files)


@pytest.mark.anyio
async def test_only_what_was_shown_is_changed(workspace: Workspace) -> None:
    """An update of another memory, or a second one of its name, is answered with its text."""
    change = {"op": "update", "path": "old.md", "body": "It is 9090."}
    ended, model = await shoot(workspace, [change], [change], shown=False)
    assert "It is 8080." in model.requested[1].messages[-1]["content"]
    assert ended.finished
    assert written(workspace)["old.md"].endswith("It is 9090.\n")
    _, model = await shoot(workspace, [CREATE | {"path": "old.md"}], [], shown=False)
    assert "there already" in model.requested[1].messages[-1]["content"]


NOISE = st.text(st.characters(codec="utf-8", exclude_characters="[]{}"), max_size=40)
ITEMS = st.lists(
    st.dictionaries(st.sampled_from(["op", "path", "body"]), st.text(max_size=20) | st.none()),
    min_size=1,
    max_size=4,
)


@given(NOISE, ITEMS, NOISE)
def test_an_answer_is_read_whatever_stands_around_it(
    before: str, items: object, after: str
) -> None:
    """Prose, fences and drafts before the list do not matter; half of a list is none."""
    text = json.dumps(items)
    assert operations.read(f"{before}[]{before}```{text}```{after}") == items
    assert operations.read(f'{before}{{"operations": {text}}}') == items
    assert operations.read(f"{before}{text[:-1]}") is None


@given(st.text(max_size=200))
def test_no_answer_breaks_the_reader(text: str) -> None:
    """Any text is operations or none."""
    read = operations.read(text)
    assert read is None or all(isinstance(item, dict) for item in read)
    assert operations.read("[" * 100_000) is None
