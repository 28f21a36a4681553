"""memory.purge, from the socket to the bytes on the disk."""

import os
from functools import partial
from pathlib import Path

import anyio
import pytest

from tests.api.caller import Caller
from tests.traces import traces

pytestmark = pytest.mark.anyio

SECRET = "quokka-marzipan-umbrella"  # noqa: S105 - nothing that the scanner could know
HEAD = "---\nname: plan\ndescription: a plan\nmetadata:\n  type: project\n---\n\n"


async def test_a_secret_that_an_editor_saved_and_removed_is_gone(caller: Caller) -> None:
    """No byte of it is left below the state directory; the history lists the change as purged."""
    await caller.write()  # of a directory that was never seen, nothing is a change
    folder = await caller.folder()
    (folder / "plan.md").write_text(f"{HEAD}The word is {SECRET}.\n")
    saved = (await caller.call("memory.history"))["changes"][0]["id"]
    (folder / "plan.md").write_text(f"{HEAD}Nothing here.\n")
    await caller.call("memory.search", query="plan")
    await caller.call("prefetch", session_id=f"s {SECRET}", query="what is the plan about?")
    state = caller.home.places.state_dir
    await caller.call("memory.history")
    assert traces(state, SECRET) != []
    would = await caller.call("memory.purge", pattern=SECRET.upper(), dry_run=True)
    assert traces(state, SECRET) != []
    done = await caller.call("memory.purge", pattern=SECRET.upper())
    assert (would["bodies"], would["dry_run"], done["dry_run"]) == (done["bodies"], True, False)
    assert ["plan.md"] in [body["paths"] for body in done["bodies"]]
    assert (done["live"], traces(state, SECRET)) == ([], [])
    listed = await caller.call("memory.history")
    purged = [any(file["purged"] for file in each["files"]) for each in listed["changes"]]
    assert purged == [True, True, False]
    error = await caller.refused("memory.undo", change=listed["changes"][0]["id"])
    assert (error.kind, "purged" in str(error), "plan.md" in str(error)) == ("purged", True, True)
    error = await caller.refused("memory.restore", path="plan.md", change=saved)
    assert error.kind == "purged"
    assert (folder / "plan.md").read_text() == f"{HEAD}Nothing here.\n"
    assert (await caller.call("memory.search", query="plan"))["hits"] != []


@pytest.mark.parametrize("by", ["change", "path", "pattern"])
async def test_what_was_written_and_named_is_gone(caller: Caller, by: str) -> None:
    """A change, a path and a pattern each take the texts with them, and a live file is told."""
    name = f"{SECRET}.md" if by == "pattern" else "plan.md"
    changes = {"body": f"The word is {SECRET}.", "description": f"about {SECRET}"}
    session = {"session_id": SECRET, "request_id": SECRET} if by == "pattern" else {}
    written = await caller.write(name, **changes, **session)
    state = caller.home.places.state_dir
    folder = await caller.folder()
    wanted = {"change": written["change"], "path": name, "pattern": SECRET}
    done = await caller.call("memory.purge", **{by: wanted[by]})
    assert f"{folder}/{name}" in done["live"]
    deleted = await caller.call("memory.delete", path=name)
    wanted["change"] = deleted["change"]
    caller.clock.advance(1.0)  # until then somebody may still have opened the old file
    done = await caller.call("memory.purge", **{by: wanted[by]})
    assert [path for path in done["live"] if not path.endswith("/MEMORY.md")] == []
    if by == "path":
        await caller.call("memory.purge", path="MEMORY.md")  # its line had the description
    assert traces(state, SECRET) == []
    assert traces(folder, SECRET) == []


async def test_a_file_that_is_still_open_is_told(caller: Caller) -> None:
    """A replaced file that a program has open is not removed under its hands, but named."""
    await caller.write(body=SECRET)
    with open(await caller.folder() / "feedback_tests.md", "r+b"):
        async with anyio.create_task_group() as group:
            group.start_soon(partial(caller.write, body="nothing"))
            while len((await caller.call("memory.history"))["changes"]) == 1:
                caller.clock.advance(1.0)  # a write waits for the program, and not for ever
        done = await caller.call("memory.purge", pattern=SECRET)
        assert [Path(path).suffix for path in done["live"]] == [".tmp"]
    caller.clock.advance(1.0)  # a program may open what it has just found under its old name
    assert (await caller.call("memory.purge", pattern=SECRET))["live"] == []
    assert traces(await caller.folder(), SECRET) == []


async def test_the_log_and_damaged_files_are_seen_to(caller: Caller) -> None:
    """What nobody can look into is removed, and the log is blanked without moving a byte."""
    state = Path(caller.home.places.state_dir)
    aside = {"state.db.damaged-1", "state.db.format-2"}
    for name in aside:
        (state / name).write_bytes(b"torn")
    (state / "memd.log").write_text(f'{{"path": "{SECRET}"}}\nnext\n')
    size = (state / "memd.log").stat().st_size
    done = await caller.call("memory.purge", pattern=SECRET)
    assert {Path(file["path"]).name for file in done["files"]} == {"memd.log", *aside}
    assert not aside & set(os.listdir(state))
    assert (state / "memd.log").read_bytes().endswith(b"next\n")
    assert ((state / "memd.log").stat().st_size, traces(state, SECRET)) == (size, [])


@pytest.mark.parametrize(
    ("params", "kind"),
    [
        ({}, "invalid_params"),
        ({"pattern": "ab"}, "invalid_params"),
        ({"change": "c1", "path": "a.md"}, "invalid_params"),
        ({"change": "c99"}, "change_not_found"),
        ({"pattern": "a(?=b)cd", "regex": True}, "pattern_refused"),
    ],
)
async def test_a_purge_of_nothing_known_is_refused(
    caller: Caller, params: dict[str, object], kind: str
) -> None:
    """What is not said exactly, and a change that is none, purges nothing."""
    assert (await caller.refused("memory.purge", **params)).kind == kind


async def test_a_path_that_never_was_a_memory_is_refused(caller: Caller) -> None:
    """A misspelt path is no success of which nothing is kept."""
    await caller.write("plan.md")
    error = await caller.refused("memory.purge", path="plam.md")
    assert (error.kind, str(error)) == ("not_found", "there is no memory plam.md")
