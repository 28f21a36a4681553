"""hook: a client's events, answered as that client prints them."""

from pathlib import Path
from typing import Any

import pytest

from memd.client.errors import RemoteError
from memd.core import limits
from tests.api import transcripts
from tests.api.caller import Caller
from tests.api.test_spending import configure

pytestmark = pytest.mark.anyio
WORDS = "may I mock the database in this integration test?"


async def extractions(caller: Caller) -> list[dict[str, Any]]:
    """Return the jobs that learn; on a busy machine an update of notes may be beside them."""
    jobs = (await caller.plain("job.list"))["jobs"]
    return [job for job in jobs if job["kind"] == "extract"]


async def hook(caller: Caller, event: str, **members: Any) -> Any:
    """Send one event of a session as Claude Code does."""
    payload = {"session_id": "s", "cwd": caller.cwd, "hook_event_name": event, **members}
    requested = {"client": "claude-code", "event": event, "payload": payload}
    return await caller.plain("hook", **requested, deadline_ms=20_000)


async def test_a_prompt_gets_the_memories_that_matter(caller: Caller) -> None:
    """UserPromptSubmit answers with additional context, once per prompt id."""
    await caller.write()
    answer = await hook(caller, "UserPromptSubmit", prompt=WORDS, prompt_id="p1")
    output = answer["hookSpecificOutput"]
    assert output["hookEventName"] == "UserPromptSubmit"
    assert "Never mock" in output["additionalContext"]
    assert output["additionalContext"].startswith("<memd-context")
    await caller.call("session.compacted", session_id="s")
    assert await hook(caller, "UserPromptSubmit", prompt=WORDS, prompt_id="p1") is None
    assert await hook(caller, "UserPromptSubmit", prompt="thanks, good", prompt_id="p2") is None


async def test_a_sub_agents_events_are_passed_over(caller: Caller) -> None:
    """An event from inside a sub-agent brings and reads nothing."""
    await caller.write()
    assert await hook(caller, "UserPromptSubmit", prompt=WORDS, agent_id="a1") is None


async def test_a_long_section_is_cut_at_a_line(caller: Caller) -> None:
    """What a session start brings stays under the client's bound and says where the rest is."""
    for number in range(40):
        await caller.write(f"m{number}.md", name=f"memory-{number}", description="界" * 100)
    settings = Path(caller.home.path) / ".claude" / "settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text('{"autoMemoryEnabled": false}')
    config = Path(caller.home.places.config)
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("[claude_code]\nbring_memory = true\n")
    answer = await hook(caller, "SessionStart", source="startup")
    context = answer["hookSpecificOutput"]["additionalContext"]
    assert len(context.encode("utf-16-le")) // 2 <= limits.HOOK_CHARACTERS
    assert "for the whole index" in context


@pytest.mark.parametrize("event", ["Stop", "PreCompact", "SessionEnd"])
async def test_the_end_of_a_turn_is_read_and_prints_nothing(caller: Caller, event: str) -> None:
    """Stop, PreCompact and SessionEnd queue an extraction and answer null."""
    path = transcripts.write(
        Path(caller.home.path) / ".claude" / "projects" / "x" / "s.jsonl",
        transcripts.user("From now on, always use tabs in Makefiles."),
    )
    assert await hook(caller, event, transcript_path=path) is None
    (job,) = await extractions(caller)
    done = await caller.plain("job.wait", job=job["job"])
    assert (done["kind"], done["state"]) == ("extract", "completed")
    assert await hook(caller, event) is None


async def test_an_end_that_failed_may_come_again(caller: Caller) -> None:
    """A hook that got no answer leaves the event for later: it counts once it is done."""
    line = transcripts.user("From now on, always use tabs in Makefiles.")
    path = transcripts.write(Path(caller.home.path) / "s.jsonl", line)
    later = f"{caller.home.path}/later"
    event: dict[str, Any] = {"transcript_path": path, "cwd": later, "prompt_id": "p"}
    with pytest.raises(RemoteError, match="is no project"):
        await hook(caller, "Stop", **event)
    Path(later).mkdir()
    for _ in range(2):
        assert await hook(caller, "Stop", **event) is None
    assert len(await extractions(caller)) == 1


async def test_strange_payloads_are_answered_with_nothing(caller: Caller) -> None:
    """What is no event of ours brings null; an unknown client is an error."""
    strange: list[Any] = [None, [], {"session_id": 3}, {"cwd": caller.cwd}]
    for payload in strange:
        answer = await caller.plain("hook", client="claude-code", event="Stop", payload=payload)
        assert answer is None
    assert await hook(caller, "SomethingNew") is None
    with pytest.raises(RemoteError, match="memd knows no client x") as caught:
        await caller.plain("hook", client="x", event="Stop")
    assert caught.value.code == -32602


async def test_only_the_last_events_are_remembered(caller: Caller) -> None:
    """A thousand prompts later an old prompt id is new again."""
    await caller.write()
    assert await hook(caller, "UserPromptSubmit", prompt=WORDS, prompt_id="first")
    for number in range(1024):
        await hook(caller, "Stop", prompt_id=f"p{number}")
    await caller.call("session.compacted", session_id="s")
    assert await hook(caller, "UserPromptSubmit", prompt=WORDS, prompt_id="first")


async def prompted(caller: Caller, session: str, number: str, **members: Any) -> bool:
    """Send a prompt that the memory fits and say whether the memory came with it."""
    sent = members | {"session_id": session, "prompt": WORDS, "prompt_id": f"{session} {number}"}
    return await hook(caller, "UserPromptSubmit", **sent) is not None


@pytest.mark.parametrize("reason", ["other", "clear", "resume", "prompt_input_exit"])
async def test_a_resumed_session_gets_nothing_twice(caller: Caller, reason: str) -> None:
    """What a session was given is in its transcript, however it ended."""
    await caller.write()
    assert await prompted(caller, "s", "1")
    await hook(caller, "SessionEnd", reason=reason)
    await hook(caller, "SessionStart", source="resume", seconds_since_last_response=3)
    assert not await prompted(caller, "s", "2")


async def test_a_context_that_was_emptied_may_get_it_again(caller: Caller) -> None:
    """A memory comes again after a compaction or a clear, not after one that was only announced."""
    await caller.write()
    assert await prompted(caller, "s", "1")
    await hook(caller, "PreCompact", trigger="manual")
    assert not await prompted(caller, "s", "2")
    await hook(caller, "SessionStart", source="compact", prompt_id="s /compact")
    assert await prompted(caller, "s", "3")
    await hook(caller, "SessionStart", source="clear")
    assert await prompted(caller, "s", "4")


async def test_what_came_with_a_prompt_outlives_its_own_compaction(caller: Caller) -> None:
    """A prompt that does not fit is compacted before it is sent: its memories stay with it."""
    await caller.write()
    assert await prompted(caller, "s", "1")
    await hook(caller, "PreCompact", trigger="auto", prompt_id="s 1")
    await hook(caller, "SessionStart", source="compact", prompt_id="s 1")
    assert not await prompted(caller, "s", "2")


async def test_a_fork_gets_nothing_that_its_parent_got(caller: Caller) -> None:
    """Neither with its first prompt, when it has no transcript, nor after that."""
    folder = Path(caller.home.path) / ".claude" / "projects" / "x"
    now = "2026-03-03T12:00:00.000Z"
    transcripts.write(folder / "parent.jsonl", transcripts.answer("parent", now))
    transcripts.write(folder / "other.jsonl", transcripts.answer("other", "2026-03-03T11:00:00Z"))
    await caller.write()
    assert await prompted(caller, "parent", "1")
    caller.clock.advance(60)
    for session, seconds, comes in (("fork", 60, False), ("another", 3660, True)):
        path = str(folder / f"{session}.jsonl")
        started = {"source": "fork", "session_id": session, "transcript_path": path}
        await hook(caller, "SessionStart", **started, seconds_since_last_response=seconds)
        assert await prompted(caller, session, "1", transcript_path=path) == comes
        assert not await prompted(caller, session, "2", transcript_path=path)


async def test_a_fork_whose_start_was_missed_is_known_by_its_transcript(caller: Caller) -> None:
    """Its lines name the session that it was made from."""
    await caller.write()
    assert await prompted(caller, "parent", "1")
    line = transcripts.answer("fork") | {"requestSessionId": "parent"}
    path = transcripts.write(Path(caller.home.path) / "fork.jsonl", line)
    assert not await prompted(caller, "fork", "1", transcript_path=path)
    assert await prompted(caller, "new", "1")


@pytest.mark.parametrize(
    ("attended", "allowed", "jobs"), [("0", "false", 0), ("0", "true", 1), ("1", "false", 1)]
)
async def test_a_script_is_learnt_from_only_where_the_settings_say_so(
    caller: Caller, attended: str, allowed: str, jobs: int
) -> None:
    """``claude -p`` tells its hooks that nobody sits in front of it."""
    configure(caller, f"[extract]\nallow_remote = {allowed}\n")
    line = transcripts.user("From now on, always use tabs in Makefiles.")
    path = transcripts.write(Path(caller.home.path) / "s.jsonl", line)
    payload = {"session_id": "s", "cwd": caller.cwd, "transcript_path": path}
    environment = {"CLAUDE_CODE_SESSION_ATTENDED": attended}
    sent = {"client": "claude-code", "event": "Stop", "payload": payload}
    assert await caller.plain("hook", **sent, environment=environment) is None
    assert len(await extractions(caller)) == jobs
