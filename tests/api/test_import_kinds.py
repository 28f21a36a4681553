"""import through the socket: a sample of each tool, as ``docs/migration.md`` says."""

from pathlib import Path

import pytest

from tests.api.caller import Caller
from tests.portable.sources import SAMPLES

pytestmark = pytest.mark.anyio
# What goes to the project of the test, and which project of the source that is.
BROUGHT = {
    "claude-code": ("-home-ada-loom", 4),
    "codex": ("", 7),
    "codex-earlier": ("", 2),
    "basic-memory": ("", 4),
    "claude-mem": ("loom", 1),
    "mem0": ("", 3),
    "claude-ai": ("", 3),
    "text": ("", 8),
}


@pytest.mark.parametrize("sample", BROUGHT)
async def test_a_sample_is_brought_once(caller: Caller, sample: str) -> None:
    """A sample's memories come with the mark of an import, once, and go with one undo."""
    key, count = BROUGHT[sample]
    place = caller.home.project()
    wanted = [f"{key}={place}"] if key else []
    source = str(SAMPLES / sample)
    answer = await caller.call("import", source=source, accept=True, project=wanted)
    (folder,) = [each for each in answer["projects"] if each["files"]]
    listed = (await caller.call("memory.list"))["memories"]
    assert len(listed) == count
    assert {each["origin"] for each in listed} == {"import"}
    again = await caller.call("import", source=source, accept=True, project=wanted)
    assert [each["files"] for each in again["projects"]] == [[]]
    await caller.call("memory.undo", change=folder["change"])
    assert (await caller.call("memory.list"))["memories"] == []


async def test_rules_of_cursor_are_only_shown(caller: Caller) -> None:
    """Rules of Cursor come back as a diff, and nothing is written anywhere."""
    answer = await caller.call("import", source=str(SAMPLES / "cursor"), accept=True)
    assert "+++ b/.claude/rules/web/tables.md" in answer["diff"]
    assert answer["projects"] == []
    assert not Path(caller.home.project(), ".claude").exists()
