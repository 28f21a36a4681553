"""memory.history, diff and undo over the socket."""

import pytest

from tests.api.caller import Caller

pytestmark = pytest.mark.anyio


async def test_history_tells_who_changed_what(caller: Caller) -> None:
    """Changes come newest first with actor, client, reason and files."""
    await caller.write()
    await caller.write(body="newer")
    changes = (await caller.call("memory.history"))["changes"]
    assert [change["files"][0]["action"] for change in changes] == ["updated", "created"]
    assert {(change["actor"], change["client"]) for change in changes} == {("client", "test")}
    older = await caller.call("memory.history", before=changes[0]["id"], limit=5)
    assert [change["id"] for change in older["changes"]] == [changes[1]["id"]]
    assert (await caller.call("memory.history", path="other.md"))["changes"] == []


async def test_a_diff_shows_the_lines(caller: Caller) -> None:
    """A change's diff has the old and the new line of each file."""
    await caller.write()
    written = await caller.write(body="newer")
    diff = await caller.call("memory.diff", change=written["change"])
    text = "\n".join(part["diff"] for part in diff["files"])
    assert "-Never mock the database in integration tests." in text
    assert "+newer" in text


async def test_undo_restores_bytes_and_times(caller: Caller) -> None:
    """An undone change leaves file, mtime and index as they were."""
    first = await caller.write()
    before = await caller.call("memory.read", path="feedback_tests.md")
    caller.clock.advance(3 * 86400)
    second = await caller.write(body="newer")
    undone = await caller.call("memory.undo", change=second["change"])
    assert (undone["conflicts"], undone["files"][0]["action"]) == ([], "updated")
    after = await caller.call("memory.read", path="feedback_tests.md")
    assert (after["hash"], after["mtime"]) == (first["hash"], before["mtime"])


async def test_undo_never_goes_over_newer_work(caller: Caller) -> None:
    """A file that changed since is named as a conflict and stays."""
    first = await caller.write()
    await caller.write(body="newer")
    undone = await caller.call("memory.undo", change=first["change"])
    assert undone["conflicts"] == ["feedback_tests.md"]
    assert "newer" in (await caller.call("memory.read", path="feedback_tests.md"))["content"]


async def test_an_unknown_change_is_not_found(caller: Caller) -> None:
    """A change id that never was, or of another project, has an error of its own."""
    await caller.write()
    assert (await caller.refused("memory.undo", change="c999")).code == 1001
    assert (await caller.refused("memory.diff", change="nonsense")).code == 1001
    other = caller.home.project("other")
    assert (await caller.refused("memory.undo", cwd=other, change="c1")).code == 1001
