"""hook: when notes are written and brought; whatever goes wrong, no hook is broken."""

import os
from pathlib import Path
from typing import Any

import pytest

from memd.projects.project import slug
from tests.api.caller import Caller
from tests.api.conversations import Conversation
from tests.api.test_hooks import hook
from tests.api.test_spending import configure

pytestmark = pytest.mark.anyio
WORDS = "Fix the failing test in tests/test_shelf.py, please."


@pytest.fixture
def talk(caller: Caller) -> Conversation:
    """Begin a conversation where Claude Code records it."""
    projects = Path(caller.home.path) / ".claude" / "projects"
    talk = Conversation(projects / slug(caller.cwd) / "s.jsonl")
    talk.person(WORDS)
    return talk


def file(talk: Conversation) -> Path:
    """Return where the notes lie."""
    return talk.path.with_suffix("") / "session-memory" / "summary.md"


async def event(caller: Caller, talk: Conversation, name: str, **members: Any) -> Any:
    """Send an event of the conversation."""
    return await hook(caller, name, transcript_path=str(talk.path), **members)


async def updates(caller: Caller) -> list[Any]:
    """Return the updates that found their gates open, the newest first, once they have ended."""
    jobs = (await caller.plain("job.list"))["jobs"]
    names = [job["job"] for job in jobs if job["kind"] == "notes"]
    ended = [await caller.plain("job.wait", job=name) for name in names]
    # A turn's end waits 20 ms for the gates; on a busy machine it is the job that finds one closed.
    return [job for job in ended if (job["result"] or {}).get("status") != "skipped"]


async def test_the_end_of_a_turn_is_a_break(caller: Caller, talk: Conversation) -> None:
    """Stop starts an update once there is enough, without three calls, and prints nothing."""
    talk.reply(grown=9_000)
    assert await event(caller, talk, "Stop") is None
    assert await updates(caller) == []
    talk.call(1_000)
    assert await event(caller, talk, "Stop", agent_id="a1") is None
    assert await updates(caller) == []
    assert await event(caller, talk, "Stop") is None
    (job,) = await updates(caller)
    assert job["result"]["engine"] == "local"
    assert WORDS in file(talk).read_text()
    assert await event(caller, talk, "Stop") is None
    assert len(await updates(caller)) == 1


@pytest.mark.parametrize(("option", "printed"), [("false", False), ("true", True)])
async def test_a_compaction_is_written_down_before(
    caller: Caller, talk: Conversation, option: str, *, printed: bool
) -> None:
    """PreCompact writes however young the conversation is; one sentence only for who wants it."""
    configure(caller, f"[notes]\nprecompact = {option}\n")
    talk.reply()
    sentence = await event(caller, talk, "PreCompact", trigger="manual")
    assert WORDS in file(talk).read_text()
    assert await updates(caller) == []
    if printed:
        assert str(file(talk)) in sentence
        assert len(sentence) <= 300
    else:
        assert sentence is None


async def test_notes_come_back_where_the_context_is_new(caller: Caller, talk: Conversation) -> None:
    """With the compaction, or when it is resumed right behind one; never otherwise."""
    talk.reply("I looked at the shelf.", grown=10_000)
    await event(caller, talk, "PreCompact", trigger="auto")
    for source in ("startup", "resume", "clear"):
        assert await event(caller, talk, "SessionStart", source=source) is None
    answer = await event(caller, talk, "SessionStart", source="compact")
    context = answer["hookSpecificOutput"]["additionalContext"]
    assert context.startswith("<memd-context>\n")
    assert context.endswith("\n</memd-context>")
    assert "assistant's words: `I looked at the shelf.`" in context
    assert str(file(talk)) in context
    talk.boundary()
    resumed = await event(caller, talk, "SessionStart", source="resume")
    assert "I looked at the shelf." in resumed["hookSpecificOutput"]["additionalContext"]
    payload = {"session_id": "s", "cwd": caller.cwd, "transcript_path": str(talk.path)}
    codex = {"client": "codex", "event": "SessionStart", "payload": {**payload, "source": "resume"}}
    assert "shelf" not in str(await caller.plain("hook", **codex))
    talk.person("Go on.")
    assert await event(caller, talk, "SessionStart", source="resume") is None


async def test_what_is_off_brings_and_writes_nothing(caller: Caller, talk: Conversation) -> None:
    """The switch counts for each event, and an empty file is no notes."""
    talk.reply(grown=10_000)
    await event(caller, talk, "PreCompact")
    configure(caller, "[notes]\nenabled = false\n")
    before = file(talk).read_text()
    talk.person("Something else.")
    talk.reply(grown=9_000)
    for name in ("Stop", "PreCompact"):
        assert await event(caller, talk, name) is None
    assert await event(caller, talk, "SessionStart", source="compact") is None
    assert file(talk).read_text() == before
    assert await updates(caller) == []


async def test_a_client_that_never_compacts_needs_none(caller: Caller, talk: Conversation) -> None:
    """Its turns are not noted; a compaction that a person asks for is."""
    settings = Path(caller.home.path) / ".claude" / "settings.json"
    settings.write_text('{"autoCompactEnabled": false}')
    talk.reply(grown=10_000)
    await event(caller, talk, "Stop")
    assert await updates(caller) == []
    assert not file(talk).exists()
    await event(caller, talk, "PreCompact", trigger="manual")
    assert WORDS in file(talk).read_text()


@pytest.mark.parametrize("session", ["../../x", "a/b", "x" * 300, "", "."])
async def test_a_strange_session_breaks_no_hook(
    caller: Caller, talk: Conversation, session: str
) -> None:
    """It gets no notes, and nothing is written outside of the sessions' folders."""
    talk.reply(grown=10_000)
    before = sorted(Path(caller.home.path, ".claude").rglob("*.md"))
    for name in ("Stop", "PreCompact"):
        assert await event(caller, talk, name, session_id=session) is None
    assert await event(caller, talk, "SessionStart", session_id=session, source="compact") is None
    assert sorted(Path(caller.home.path, ".claude").rglob("*.md")) == before


def linked(path: Path) -> None:
    """Put a link in the place of the notes."""
    os.symlink("/etc/passwd", path)


def several_names(path: Path) -> None:
    """Put a file with two names in the place of the notes."""
    other = path.parents[2] / "other"
    other.write_text("other")
    os.link(other, path)


def fifo(path: Path) -> None:
    """Put a FIFO in the place of the notes."""
    os.mkfifo(path)


@pytest.mark.parametrize("put", [linked, several_names, fifo])
async def test_a_refused_file_breaks_no_hook(caller: Caller, talk: Conversation, put: Any) -> None:
    """The hook answers as ever, the file stays as it is, and a job's row says why."""
    talk.reply(grown=10_000)
    file(talk).parent.mkdir(parents=True)
    put(file(talk))
    before = os.lstat(file(talk))
    assert await event(caller, talk, "PreCompact") is None
    assert await event(caller, talk, "Stop") is None
    assert await event(caller, talk, "SessionStart", source="compact") is None
    assert os.lstat(file(talk)) == before
    refused = await caller.refused("notes.read", session_id="s")
    assert refused.kind in ("path_refused", "file_unreadable")


async def test_an_unwritable_place_breaks_no_hook(caller: Caller, talk: Conversation) -> None:
    """Where no folder can be made the transcript stays readable, and a job says what is wrong."""
    talk.reply(grown=10_000)
    talk.path.with_suffix("").write_text("a file where the session's folder would be")
    assert await event(caller, talk, "PreCompact") is None
    forced = {"session_id": "s", "transcript_path": str(talk.path), "force": True}
    failed = await caller.call("notes.update", **forced, wait=True)
    assert failed["status"] == "failed"
    assert "is no folder" in failed["reason"]


@pytest.mark.parametrize("through", ["session.end", "SessionEnd"])
async def test_notes_for_no_day_go_with_the_session(
    caller: Caller, talk: Conversation, through: str
) -> None:
    """At its end they are removed with their folders; by default they stay."""
    talk.reply(grown=10_000)
    for days in (30, 0):
        configure(caller, f"[notes]\ndays = {days}\n")
        await event(caller, talk, "PreCompact")
        if through == "SessionEnd":
            await event(caller, talk, through, reason="other")
        else:
            await caller.call(through, session_id="s")
        assert file(talk).exists() == bool(days)
    assert not talk.path.with_suffix("").exists()
    assert talk.path.exists()
