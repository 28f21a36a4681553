"""Memories that an assistant writes with its own tools, told by its hook."""

from pathlib import Path
from typing import Any

import pytest

from tests.api.caller import Caller

pytestmark = pytest.mark.anyio
MEMORY = """---
name: uses-pnpm
description: pnpm and never npm in this monorepo
metadata:
  node_type: memory
  type: feedback
  originSessionId: s
---

Use pnpm for every package.
"""


async def wrote(caller: Caller, path: Path, content: str = MEMORY, **members: Any) -> Any:
    """Write a file as the assistant does and send what its hook sends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    payload = {"session_id": "s", "cwd": caller.cwd, "tool_name": "Write", **members}
    payload["tool_input"] = {"file_path": str(path), "content": content}
    asked = {"client": "claude-code", "event": "PostToolUse", "payload": payload}
    return await caller.plain("hook", **asked)


async def changes(caller: Caller) -> list[tuple[str, str, str, list[str]]]:
    """Return who changed what, the newest first."""
    listed = (await caller.call("memory.history"))["changes"]
    return [
        (c["actor"], c["client"], c["session"], sorted(f["path"] for f in c["files"]))
        for c in listed
    ]


async def test_it_has_its_index_line_at_once(caller: Caller) -> None:
    """The line is there when the hook answers, which says so; the writer and session are known."""
    await caller.write()
    folder = await caller.folder()
    answer = await wrote(caller, folder / "uses-pnpm.md")
    assert "added the line" in answer["hookSpecificOutput"]["additionalContext"]
    assert "(uses-pnpm.md)" in (folder / "MEMORY.md").read_text()
    assert (folder / "uses-pnpm.md").read_text() == MEMORY
    line, file, _ = await changes(caller)
    assert line == ("assistant", "claude-code", "s", ["MEMORY.md"])
    assert file == ("assistant", "claude-code", "s", ["uses-pnpm.md"])


async def test_a_line_of_the_assistants_own_is_the_only_one(caller: Caller) -> None:
    """Where the assistant writes a line too, memd's goes, and nothing is said of it."""
    await caller.write()
    folder = await caller.folder()
    await wrote(caller, folder / "uses-pnpm.md")
    index = (folder / "MEMORY.md").read_text()
    mine = "- [pnpm](uses-pnpm.md) - mine\n"
    assert await wrote(caller, folder / "MEMORY.md", mine + index) is None
    lines = (folder / "MEMORY.md").read_text().splitlines(keepends=True)
    assert [line for line in lines if "uses-pnpm.md" in line] == [mine]
    assert {each[0] for each in await changes(caller)} == {"client", "assistant"}


async def test_a_shared_memory_is_in_the_team_s_index_at_once(caller: Caller) -> None:
    """A memory below ``team/`` is listed there alone; a line that the assistant adds is memd's."""
    await caller.write()
    folder = await caller.folder()
    before = (folder / "MEMORY.md").read_text()
    answer = await wrote(caller, folder / "team/uses-pnpm.md")
    assert "added the line" in answer["hookSpecificOutput"]["additionalContext"]
    line = "- [uses-pnpm](uses-pnpm.md) \u2014 pnpm and never npm in this monorepo\n"
    assert (folder / "team/MEMORY.md").read_text() == line
    assert await wrote(caller, folder / "team/MEMORY.md", "- [Mine](uses-pnpm.md)\n") is None
    assert (folder / "team/MEMORY.md").read_text() == line
    assert (folder / "MEMORY.md").read_text() == before
    assert {each[0] for each in await changes(caller)} == {"client", "assistant"}


async def test_a_look_that_came_first_changes_nothing(caller: Caller) -> None:
    """What memd had noticed already is the client's as well once the hook tells."""
    await caller.write()
    folder = await caller.folder()
    (folder / "uses-pnpm.md").write_text(MEMORY)
    assert (await changes(caller))[0][0] == "external"
    await wrote(caller, folder / "uses-pnpm.md")
    assert {each[0] for each in await changes(caller)} == {"client", "assistant"}


async def test_others_work_stays_theirs(caller: Caller) -> None:
    """A change that holds another file too, or is older, is not the assistant's."""
    await caller.write()
    folder = await caller.folder()
    (folder / "mine.md").write_text(MEMORY.replace("uses-pnpm", "mine"))
    await changes(caller)
    caller.clock.advance(60)
    (folder / "note.md").write_text(MEMORY.replace("uses-pnpm", "note"))
    await wrote(caller, folder / "uses-pnpm.md")
    by_actor: dict[str, set[str]] = {}
    for actor, _, _, paths in await changes(caller):
        by_actor.setdefault(actor, set()).update(paths)
    assert {"mine.md", "note.md"} <= by_actor["external"]


async def test_it_is_not_brought_back_to_its_writer(caller: Caller) -> None:
    """The session that wrote it has it in its context; another one gets it."""
    folder = await caller.folder()
    await wrote(caller, folder / "uses-pnpm.md")
    asked = {"query": "pnpm or npm in this monorepo?", "deadline_ms": 20_000}
    for session, comes in (("s", False), ("other", True)):
        found = await caller.call("prefetch", session_id=session, **asked)
        assert bool(found["memories"]) is comes


async def test_it_is_no_standing_instruction(caller: Caller) -> None:
    """A text that calls itself the person's words is believed only where memd wrote it."""
    await caller.write()
    folder = await caller.folder()
    claim = MEMORY.replace("  originSessionId: s\n", "  originSessionId: s\n  origin: user\n")
    await wrote(caller, folder / "uses-pnpm.md", claim)
    found = await caller.call(
        "prefetch", session_id="o", query="pnpm or npm in this monorepo?", deadline_ms=20_000
    )
    assert found["memories"][0]["origin"] != "user"


async def test_a_sub_agents_write_counts_too(caller: Caller) -> None:
    """Whoever of the client wrote it: the line is there."""
    folder = await caller.folder()
    assert await wrote(caller, folder / "uses-pnpm.md", agent_id="a1", prompt_id="p")
    assert await wrote(caller, folder / "n.md", MEMORY.replace("uses-pnpm", "n"), prompt_id="p")


@pytest.mark.parametrize("name", ["../outside.md", "notes.txt", "/etc/hostname.md"])
async def test_other_files_are_nobodys_business(caller: Caller, name: str) -> None:
    """A file elsewhere, or one that is no memory, is answered with nothing."""
    folder = await caller.folder()
    payload = {
        "session_id": "s",
        "cwd": caller.cwd,
        "tool_input": {"file_path": f"{folder}/{name}"},
    }
    asked = {"client": "claude-code", "event": "PostToolUse", "payload": payload}
    assert await caller.plain("hook", **asked) is None


async def test_a_secret_in_a_description_gets_no_line(caller: Caller) -> None:
    """The hook answers nothing and nothing of it is copied."""
    folder = await caller.folder()
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    assert await wrote(caller, folder / "t.md", MEMORY.replace("pnpm and", secret)) is None
    assert secret not in "".join(p.read_text() for p in folder.glob("MEMORY.md"))
