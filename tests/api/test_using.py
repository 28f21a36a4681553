"""project.list, usage.list and usage.recent, and what counts as a use."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from memd.client.aio import AsyncClient
from memd.projects.project import slug
from memd.state.database import open_database
from memd.state.tables import SCHEMAS, UsageTable
from tests.api.caller import Caller

pytestmark = pytest.mark.anyio
QUERY = "may I mock the database in the integration tests?"
COUNTS = ("surfaced", "sessions", "read", "acted")


async def counts(caller: Caller, path: str = "feedback_tests.md") -> tuple[int, ...]:
    """Return how often a memory was surfaced, to how many sessions, read and acted on."""
    listed = await caller.call("usage.list", paths=[path])
    return tuple(listed["memories"][0][name] for name in COUNTS)


async def hook(caller: Caller, event: str, **payload: Any) -> Any:
    """Send an event of Claude Code."""
    known = {"session_id": "s", "cwd": caller.cwd, **payload}
    return await caller.plain("hook", client="claude-code", event=event, payload=known)


async def surface(caller: Caller, session: str = "s") -> None:
    """Let the memory go out with a prompt."""
    answer = await caller.call("prefetch", session_id=session, query=QUERY)
    assert answer["memories"]


async def test_a_prompt_surfaces(caller: Caller) -> None:
    """What goes out with a prompt counts, for each session once however often it goes out."""
    await caller.write()
    assert await counts(caller) == (0, 0, 0, 0)
    await surface(caller)
    await surface(caller, "t")
    await caller.call("session.compacted", session_id="s")
    await hook(caller, "UserPromptSubmit", prompt=QUERY, prompt_id="p")
    assert await counts(caller) == (3, 2, 0, 0)
    recent = (await caller.call("usage.recent"))["surfacings"]
    assert [row["session_id"] for row in recent] == ["s", "t", "s"]
    row = recent[0]
    assert row["path"] == "feedback_tests.md"
    assert row["directory"] == os.path.realpath(await caller.folder())
    assert row["at"] == "2026-03-03T12:00:00.000Z"


async def test_surfacings_come_by_session_memory_and_page(caller: Caller) -> None:
    """``before`` continues a list; another project has none."""
    await caller.write()
    for session in "abc":
        await surface(caller, session)
    first = (await caller.plain("usage.recent", limit=2))["surfacings"]
    rest = (await caller.plain("usage.recent", before=first[-1]["id"]))["surfacings"]
    assert [row["session_id"] for row in (*first, *rest)] == ["c", "b", "a"]
    only = await caller.call("usage.recent", session_id="b", path="feedback_tests.md")
    assert [row["session_id"] for row in only["surfacings"]] == ["b"]
    other = await caller.plain("usage.recent", cwd=caller.home.project("other"))
    assert other["surfacings"] == []
    assert (await caller.plain("usage.recent", before=2**63 - 1))["surfacings"][:2] == first
    error = await caller.refused("usage.recent", before=2**63)
    assert (error.code, "before: expected int <= 9223372036854775807" in str(error)) == (
        -32602,
        True,
    )


async def test_an_assistant_reads(caller: Caller) -> None:
    """By the methods, by the memory tool, and by its own tool where its hook tells of that."""
    await caller.write()
    await caller.call("memory.read", path="feedback_tests.md")
    view = {"command": "view", "path": "/memories/feedback_tests.md"}
    await caller.call("memory.tool", command=view, session_id="s")
    await caller.call("memory.tool", command={"command": "view", "path": "/memories"})
    path = f"{await caller.folder()}/feedback_tests.md"
    await hook(caller, "PostToolUse", tool_name="Read", tool_input={"file_path": path})
    for other in (f"{caller.cwd}/README.md", f"{await caller.folder()}/gone.md"):
        await hook(caller, "PostToolUse", tool_name="Read", tool_input={"file_path": other})
    assert await counts(caller) == (0, 0, 3, 0)
    assert (await caller.call("report"))["read"] == 3


async def test_a_session_acts(caller: Caller) -> None:
    """It changes what it was given or has read; what it does not know, or another, is no act."""
    await caller.write()
    await caller.write("other.md", name="other", session_id="s")
    await caller.write(body="Never mock it.", session_id="s")
    assert (await counts(caller))[3] == (await counts(caller, "other.md"))[3] == 0
    await surface(caller)
    await caller.write(body="Never, ever mock it.", session_id="t")
    await caller.write(body="Never, never mock it.")
    assert (await counts(caller))[3] == 0
    await caller.write(body="Do not mock it.", session_id="s")
    edit = {"command": "str_replace", "path": "/memories/feedback_tests.md"}
    edit |= {"old_str": "Do not", "new_str": "Never"}
    await caller.call("memory.tool", command=edit, session_id="s")
    assert (await counts(caller))[3] == 2
    path = await caller.folder() / "feedback_tests.md"
    path.write_text(path.read_text() + "\nAnd in no other test.\n")
    await hook(caller, "PostToolUse", tool_name="Edit", tool_input={"file_path": str(path)})
    assert (await counts(caller))[3] == 3


async def test_looking_changes_nothing(caller: Caller) -> None:
    """Explanations, searches, lists, doctor, history, and what memctl or the page reads."""
    await caller.write()
    listed = await caller.call("usage.list")
    path = "feedback_tests.md"
    for name in ("memctl", "ui"):
        async with AsyncClient(caller.home.places.socket, name=name) as client:
            looker = Caller(client, caller.home, caller.clock, caller.cwd)
            await looker.call("memory.read", path=path)
            view = {"command": "view", "path": f"/memories/{path}"}
            await looker.call("memory.tool", command=view)
    made_up = await caller.call("prefetch", session_id="memctl-0a1b", query=QUERY)
    assert made_up["memories"]  # as memctl prefetch asks where it is given no session
    async with AsyncClient(caller.home.places.socket, name="") as client:  # a shell with nc
        await client.call("memory.read", {"cwd": caller.cwd, "path": path})
    await caller.call("prefetch", session_id="s", query=QUERY, explain=True)
    await caller.call("memory.search", query=QUERY)
    await caller.call("memory.list")
    await caller.call("memory.history", path=path)
    await caller.call("memory.why", path=path)
    await caller.call("load_prompt")
    await caller.call("doctor")
    await caller.call("usage.recent")
    await caller.plain("status")
    await caller.plain("project.list")
    change = (await caller.call("memory.history"))["changes"][0]["id"]
    await caller.call("memory.read", path=path, at=change)
    assert await caller.call("usage.list") == listed
    assert (await caller.plain("usage.recent"))["surfacings"] == []


async def test_a_row_follows_the_memory(caller: Caller) -> None:
    """A rename by the tool and one by the person keep the counts, a deletion's undo too."""
    await caller.write()
    await surface(caller)
    move = {"command": "rename", "old_path": "/memories/feedback_tests.md"}
    await caller.call("memory.tool", command=move | {"new_path": "/memories/policy.md"})
    assert await counts(caller, "policy.md") == (1, 1, 0, 0)
    folder = await caller.folder()
    os.rename(folder / "policy.md", folder / "rules.md")
    await caller.call("memory.history")  # which looks at what others did: half of it at first
    await caller.write("other.md", name="other")  # and at the other half before it writes
    assert await counts(caller, "rules.md") == (1, 1, 0, 0)
    deleted = await caller.call("memory.delete", path="rules.md")
    listed = (await caller.call("usage.list"))["memories"]
    assert [row["path"] for row in listed] == ["other.md"]
    await caller.call("memory.undo", change=deleted["change"])
    assert await counts(caller, "rules.md") == (1, 1, 0, 0)
    assert (await caller.call("usage.recent"))["surfacings"][0]["path"] == "rules.md"


async def test_counts_outlive_the_daemon(caller: Caller) -> None:
    """They are in the state file when the answer is there."""
    await caller.write()
    await surface(caller)
    await caller.call("memory.read", path="feedback_tests.md")
    other = open_database(caller.home.places.database, SCHEMAS)
    (use,) = UsageTable(other).of(os.path.realpath(await caller.folder())).memories.values()
    assert (use.surfaced, use.read) == (1, 1)
    other.close()


async def test_orders_and_pages(caller: Caller) -> None:
    """Least, most and last used first, in pages of any length; a wrong cursor is refused."""
    for number in range(5):
        await caller.write(f"m{number}.md", name=f"m{number}", description=f"about {number}")
    for number, times in ((3, 3), (1, 1), (0, 2)):
        for _ in range(times):
            caller.clock.advance(60)
            await caller.call("memory.read", path=f"m{number}.md")
    orders = {"least": "24103", "most": "30124", "recent": "01324"}
    for order, wanted in orders.items():
        for limit in (1, 2, 5, None):
            asked: dict[str, Any] = {"order": order, "limit": limit}
            page = await caller.call("usage.list", **asked)
            rows = page["memories"]
            while page["next"]:
                page = await caller.call("usage.list", **asked, after=page["next"])
                rows += page["memories"]
            assert "".join(row["name"][1] for row in rows) == wanted, (order, limit)
    row = (await caller.call("usage.list", order="recent"))["memories"][0]
    assert row["last_read"] == "2026-03-03T12:06:00.000Z"
    assert row["description"] == "about 0"
    assert (row["unused"], row["last_acted"], row["size"] > 0) == (False, None, True)
    assert (await caller.call("usage.list", unused=True))["memories"] == []
    for cursor in ("x", "1 2", "a b c"):
        assert (await caller.refused("usage.list", after=cursor)).kind == "invalid_params"


async def test_projects_are_those_that_can_be_found(caller: Caller) -> None:
    """Where somebody worked last comes first, with counts; what is gone is left out."""
    await caller.write()
    await caller.call("session.end", session_id="s")
    caller.clock.advance(60)
    other = caller.home.project("other")
    parts = {"name": "b", "description": "about b", "type": "user", "body": "text"}
    await caller.plain("memory.write", cwd=other, path="b.md", **parts)
    await caller.plain("session.end", cwd=other, session_id="s")
    listed = (await caller.plain("project.list"))["projects"]
    assert [row["cwd"] for row in listed] == [other, caller.cwd]
    assert listed[0]["name"] == "other"
    assert listed[0]["last_at"] == "2026-03-03T12:01:00.000Z"
    folder = await caller.folder()
    assert listed[1]["directory"] == os.path.realpath(folder)
    assert listed[1]["memories"] == 1
    assert listed[1]["bytes"] == (folder / "feedback_tests.md").stat().st_size
    assert [listed[1][name] for name in ("team", "proposals", "suggestions")] == [False, 0, 0]
    page = await caller.plain("project.list", limit=1)
    rest = await caller.plain("project.list", after=page["next"])
    assert [page["projects"], rest["projects"]] == [listed[:1], listed[1:]]
    assert rest["next"] is None
    os.rename(other, f"{other}-moved")
    assert [row["cwd"] for row in (await caller.plain("project.list"))["projects"]] == [caller.cwd]


async def test_a_project_that_memd_never_saw_is_found_by_its_transcripts(caller: Caller) -> None:
    """The working directory is one that is there and that gives the folder its name."""
    await caller.write()
    base = Path(await caller.folder()).parents[1]
    known, wrong = caller.home.project('kn"ow\\n'), caller.home.project("wrong")
    for cwd, named in ((known, known), (wrong, known), ("/gone/away", "/gone/away")):
        folder = base / slug(cwd)
        (folder / "memory").mkdir(parents=True)
        (folder / "memory" / "a.md").write_text("text")
        (folder / "1.jsonl").write_text('{"type":"summary"}\n' + json.dumps({"cwd": named}))
    rows = (await caller.plain("project.list"))["projects"]
    assert {row["cwd"] for row in rows} == {caller.cwd, known}
    row = next(row for row in rows if row["cwd"] == known)
    assert (row["name"], row["last_at"], row["memories"]) == ('kn"ow\\n', None, 1)


async def test_days_make_a_memory_unused(caller: Caller) -> None:
    """A memory that nobody used for 90 days on which memd ran is unused until somebody does."""
    await caller.write()
    assert (await caller.call("usage.list"))["since"] == "2026-03-03T12:00:00.000Z"
    folder = await caller.folder()
    os.utime(folder / "feedback_tests.md", (1_772_539_200, 1_772_539_200))
    for _ in range(94):
        await caller.day()
    listed = await caller.call("usage.list", unused=True)
    assert [row["path"] for row in listed["memories"]] == ["feedback_tests.md"]
    await surface(caller)
    assert (await caller.call("usage.list", unused=True))["memories"] == []
