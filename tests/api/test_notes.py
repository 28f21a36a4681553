"""notes.*: updating, reading, writing, listing and deleting over the socket."""

import os
from pathlib import Path
from typing import Any

import pytest

from memd.projects.project import slug
from tests.api.caller import Caller
from tests.api.conversations import Conversation
from tests.api.test_spending import configure

pytestmark = pytest.mark.anyio


@pytest.fixture
def talk(caller: Caller) -> Conversation:
    """Begin a conversation where Claude Code records it."""
    projects = Path(caller.home.path) / ".claude" / "projects"
    talk = Conversation(projects / slug(caller.cwd) / "s.jsonl")
    talk.person("Fix the failing test in tests/test_shelf.py, please.")
    return talk


async def update(caller: Caller, talk: Conversation, **params: Any) -> Any:
    """Ask for an update and wait for its end."""
    path = {} if "messages" in params else {"transcript_path": str(talk.path)}
    return await caller.call("notes.update", session_id="s", wait=True, **path, **params)


async def read(caller: Caller, **params: Any) -> Any:
    """Read the session's notes."""
    return await caller.call("notes.read", session_id="s", **params)


async def test_notes_come_when_it_is_time(caller: Caller, talk: Conversation) -> None:
    """Young at first, then written, then only after growth with calls or a break."""
    talk.reply(grown=9_999, calls=3)
    assert (await update(caller, talk))["gate"] == "young"
    talk.reply(grown=1)
    first = await update(caller, talk)
    assert (first["status"], first["engine"], first["tokens"]) == ("completed", "local", 10_000)
    assert "Current State" in first["sections"]
    assert (await update(caller, talk))["gate"] == "growth"
    talk.person("Go on.")
    talk.reply(grown=4_999)
    assert (await update(caller, talk))["gate"] == "growth"
    talk.call(1)
    assert (await update(caller, talk))["gate"] == "mid_turn"
    assert (await update(caller, talk, force=True))["status"] == "completed"
    view = await read(caller)
    assert view["covers"] == f"m{talk.lines}"
    assert "`Go on.`" in view["content"]
    assert (view["engine"], view["stale"], view["empty"]) == ("local", False, False)


async def test_a_projects_jobs_have_those_of_its_notes(caller: Caller, talk: Conversation) -> None:
    """An update is among the jobs of the project where it was asked for, and of no other."""
    talk.reply(grown=10_000)
    job = (await update(caller, talk))["job"]
    other = f"{caller.cwd}-other"
    os.mkdir(other)
    for cwd, jobs in ((caller.cwd, [job]), (other, [])):
        listed = await caller.call("job.list", cwd=cwd)
        assert [each["job"] for each in listed["jobs"]] == jobs


async def test_a_wrong_request_is_refused_by_name(caller: Caller, talk: Conversation) -> None:
    """Each error of the methods has its kind, and nothing is written."""
    for session in ("../x", "a/b", "", "x" * 300, "a b", "ü"):
        error = await caller.refused("notes.read", session_id=session)
        assert error.kind == "invalid_params"
        both = {"session_id": session, "transcript_path": str(talk.path)}
        assert (await caller.refused("notes.update", **both)).kind == "invalid_params"
    assert (await caller.refused("notes.read", session_id="s")).kind == "not_found"
    assert (await caller.refused("notes.update", session_id="s")).kind == "invalid_params"
    os.mkfifo(f"{caller.home.path}/fifo.jsonl")
    os.symlink(talk.path, f"{caller.home.path}/link.jsonl")
    for path in ("/none.jsonl", "s.jsonl", "/etc/passwd", f"{caller.home.path}/fifo.jsonl"):
        params = {"session_id": "s", "transcript_path": path}
        assert (await caller.refused("notes.update", **params)).kind == "transcript_refused"
    section = {"session_id": "s", "content": "x", "base_hash": ""}
    unknown = await caller.refused("notes.write", section="Nothing", **section)
    assert unknown.kind == "section_unknown"
    large = section | {"content": "word " * 9_000}
    assert (await caller.refused("notes.write", section="Learnings", **large)).kind == "too_large"
    assert (await caller.plain("notes.list"))["notes"] == []


async def test_a_client_writes_sections_of_its_own(caller: Caller, talk: Conversation) -> None:
    """By the hash that it read; local lines stay below all else, and credentials do not get in."""
    talk.reply(grown=10_000)
    await update(caller, talk)
    before = await read(caller)
    token = "ghp_" + "0aZ9Kq3LmN8pQr5StUv2WxYz7AbCdEf1GhIj"
    words = f"The parser is in parse.py.\n# no heading\nkey {token}"
    words += "\n- (from the transcript)\n- last request: `an old one`\nIt ends at noon."
    written = {"session_id": "s", "section": "Current State", "content": words}
    done = await caller.call("notes.write", **written, base_hash=before["hash"])
    after = await read(caller)
    assert done["hash"] == after["hash"] != before["hash"]
    assert "The parser is in parse.py.\n## no heading\n[removed: " in after["content"]
    assert "\nIt ends at noon.\n- (from the transcript)\n" in after["content"]
    assert token not in after["content"]
    assert "an old one" not in after["content"]
    assert [s["title"] for s in after["sections"]] == [s["title"] for s in before["sections"]]
    assert "last request: `Fix the failing test" in after["content"]
    assert after["covers"] == before["covers"]
    conflict = await caller.refused("notes.write", **written, base_hash=before["hash"])
    assert conflict.kind == "conflict"
    talk.person("Next.")
    talk.reply(grown=6_000)
    assert (await update(caller, talk))["status"] == "completed"
    assert "The parser is in parse.py." in (await read(caller))["content"]


async def test_a_client_that_sends_messages_gets_notes(caller: Caller) -> None:
    """A list of messages stands for a transcript, and may be sent again, longer."""
    usage = {"input_tokens": 12_000, "output_tokens": 10}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Write the changelog."},
        {"role": "assistant", "id": "r1", "content": "Written.", "usage": usage},
    ]
    params = {"session_id": "rpc-1", "messages": messages, "wait": True}
    assert (await caller.call("notes.update", **params))["status"] == "completed"
    messages.append({"role": "user", "content": "And the readme."})
    more = await caller.call("notes.update", **params)
    assert (more["status"], more["gate"]) == ("skipped", "growth")
    assert (await caller.call("notes.update", **params, force=True))["sections"]
    content = (await caller.call("notes.read", session_id="rpc-1"))["content"]
    assert "last request: `And the readme.`" in content
    params |= {"messages": [{"role": "elephant", "content": 3}], "session_id": "rpc-2"}
    assert (await caller.call("notes.update", **params, force=True))["gate"] == "young"


async def test_a_reader_gets_what_is_new(caller: Caller, talk: Conversation) -> None:
    """Behind 5,000 tokens the local writer runs first; a bound cuts sections and says so."""
    talk.reply(grown=10_000)
    await update(caller, talk)
    talk.person("Now the documentation.")
    talk.reply(grown=5_000)
    assert "documentation" not in (await read(caller))["content"]
    talk.reply(grown=1)
    view = await read(caller)
    assert "last request: `Now the documentation.`" in view["content"]
    assert not view["stale"]
    short = await read(caller, max_chars=500)
    assert len(short["content"]) <= 500
    assert any(section["cut"] for section in short["sections"])
    assert short["path"] in short["content"]


async def test_notes_are_listed_and_deleted(caller: Caller, talk: Conversation) -> None:
    """The newest first, of a project or of all; what was deleted is gone with its folders."""
    talk.reply(grown=10_000)
    await update(caller, talk)
    (listed,) = (await caller.call("notes.list"))["notes"]
    assert (await caller.plain("notes.list"))["notes"] == [listed]
    assert listed["session"] == "s"
    assert listed["title"].startswith("Fix the failing test")
    other = caller.home.project("other")
    assert (await caller.plain("notes.list", cwd=other))["notes"] == []
    assert (await caller.call("notes.delete", session_id="s"))["deleted"]
    assert not (await caller.call("notes.delete", session_id="s"))["deleted"]
    assert not Path(listed["path"]).parents[1].exists()
    assert talk.path.exists()


async def test_notes_of_another_project_are_not_read(caller: Caller, talk: Conversation) -> None:
    """A session's notes need its project."""
    talk.reply(grown=10_000)
    await update(caller, talk)
    elsewhere = {"cwd": caller.home.project("other"), "session_id": "s"}
    assert (await caller.refused("notes.read", **elsewhere)).kind == "not_found"


@pytest.mark.parametrize("switch", ["[notes]\nenabled = false\n", "enabled = false\n"])
async def test_the_switch_is_read_at_each_use(
    caller: Caller, talk: Conversation, switch: str
) -> None:
    """What is switched off writes nothing; what was written can be read and deleted."""
    talk.reply(grown=10_000)
    await update(caller, talk)
    configure(caller, switch)
    talk.person("More.")
    talk.reply(grown=9_000)
    assert (await update(caller, talk, force=True))["gate"] == "off"
    before = await read(caller)
    assert "More." not in before["content"]
    written = {"session_id": "s", "section": "Learnings", "content": "x"}
    off = await caller.refused("notes.write", **written, base_hash=before["hash"])
    assert off.kind == "memory_off"
    configure(caller, "")
    assert (await update(caller, talk))["status"] == "completed"
    configure(caller, switch)
    assert (await caller.call("notes.delete", session_id="s"))["deleted"]


async def test_a_pause_is_named(caller: Caller, talk: Conversation) -> None:
    """While background work rests no update is accepted, and the reason is a gate."""
    talk.reply(grown=10_000)
    await caller.plain("pause")
    assert (await update(caller, talk))["gate"] == "paused"
    await caller.plain("resume")
    assert (await update(caller, talk))["status"] == "completed"


async def test_the_client_s_own_notes_are_never_written(caller: Caller, talk: Conversation) -> None:
    """A file without memd's last line is read and used; to write it is refused."""
    talk.reply(grown=10_000)
    folder = talk.path.parent / ".claude" / "session-memory"
    folder.mkdir(parents=True)
    (folder / "s.md").write_text("# Session Title\n_x_\n\nTheir own words\n")
    assert (await update(caller, talk, force=True))["gate"] == "foreign"
    view = await read(caller)
    assert "Their own words" in view["content"]
    assert (view["engine"], view["covers"]) == ("", "")
    written = {"session_id": "s", "section": "Session Title", "content": "x"}
    refused = await caller.refused("notes.write", **written, base_hash=view["hash"])
    assert refused.kind == "foreign_notes"
    assert (await caller.refused("notes.delete", session_id="s")).kind == "foreign_notes"
    assert (folder / "s.md").read_text() == "# Session Title\n_x_\n\nTheir own words\n"
