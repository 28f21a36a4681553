"""hook: a client's events, answered as that client prints them."""

from pathlib import Path
from typing import Any

import pytest

from memd.client.errors import RemoteError
from memd.core import limits
from tests.api import transcripts
from tests.api.caller import Caller

pytestmark = pytest.mark.anyio


async def hook(caller: Caller, event: str, **members: Any) -> Any:
    """Send one event of a session as Claude Code does."""
    payload = {"session_id": "s", "cwd": caller.cwd, "hook_event_name": event, **members}
    return await caller.plain("hook", client="claude-code", event=event, payload=payload)


async def test_a_prompt_gets_the_memories_that_matter(caller: Caller) -> None:
    """UserPromptSubmit answers with additional context, once per prompt id."""
    await caller.write()
    words = "may I mock the database in this integration test?"
    answer = await hook(caller, "UserPromptSubmit", prompt=words, prompt_id="p1")
    output = answer["hookSpecificOutput"]
    assert output["hookEventName"] == "UserPromptSubmit"
    assert "Never mock" in output["additionalContext"]
    assert output["additionalContext"].startswith("<memd-context")
    await caller.call("session.compacted", session_id="s")
    assert await hook(caller, "UserPromptSubmit", prompt=words, prompt_id="p1") is None
    assert await hook(caller, "UserPromptSubmit", prompt="thanks, good", prompt_id="p2") is None


async def test_a_sub_agents_events_are_passed_over(caller: Caller) -> None:
    """An event from inside a sub-agent brings and reads nothing."""
    await caller.write()
    words = "may I mock the database in this integration test?"
    assert await hook(caller, "UserPromptSubmit", prompt=words, agent_id="a1") is None


async def test_a_session_start_adds_nothing_where_the_client_loads_memory(caller: Caller) -> None:
    """Only where Claude Code's own memory is off does the section come from memd."""
    assert await hook(caller, "SessionStart", source="startup") is None
    settings = Path(caller.home.path) / ".claude" / "settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text('{"autoMemoryEnabled": false}')
    answer = await hook(caller, "SessionStart", source="startup")
    context = answer["hookSpecificOutput"]["additionalContext"]
    assert str(await caller.folder()) in context


async def test_a_long_section_is_cut_at_a_line(caller: Caller) -> None:
    """What a session start brings stays under the client's bound and says where the rest is."""
    for number in range(40):
        await caller.write(f"m{number}.md", name=f"memory-{number}", description="界" * 100)
    settings = Path(caller.home.path) / ".claude" / "settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text('{"autoMemoryEnabled": false}')
    answer = await hook(caller, "SessionStart", source="startup")
    context = answer["hookSpecificOutput"]["additionalContext"]
    assert len(context.encode("utf-16-le")) // 2 <= limits.HOOK_CHARACTERS
    assert "for the whole index" in context


async def test_a_session_start_is_silent_while_memory_is_off(caller: Caller) -> None:
    """A switch that is off means no section."""
    payload = {"session_id": "s", "cwd": caller.cwd}
    answer = await caller.plain(
        "hook",
        client="claude-code",
        event="SessionStart",
        payload=payload,
        environment={"MEMD_DISABLE": "1", "MEMD_MEMORY_PATH": f"{caller.home.path}/own/m"},
    )
    assert answer is None


@pytest.mark.parametrize("event", ["Stop", "PreCompact", "SessionEnd"])
async def test_the_end_of_a_turn_is_read_and_prints_nothing(caller: Caller, event: str) -> None:
    """Stop, PreCompact and SessionEnd queue an extraction and answer null."""
    path = transcripts.write(
        Path(caller.home.path) / ".claude" / "projects" / "x" / "s.jsonl",
        transcripts.user("From now on, always use tabs in Makefiles."),
    )
    assert await hook(caller, event, transcript_path=path) is None
    (job,) = (await caller.call("job.list"))["jobs"]
    done = await caller.plain("job.wait", job=job["job"])
    assert (done["kind"], done["state"]) == ("extract", "completed")
    assert await hook(caller, event) is None


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
    words = "may I mock the database in this integration test?"
    assert await hook(caller, "UserPromptSubmit", prompt=words, prompt_id="first")
    for number in range(1024):
        await hook(caller, "Other", prompt_id=f"p{number}")
    await caller.call("session.compacted", session_id="s")
    assert await hook(caller, "UserPromptSubmit", prompt=words, prompt_id="first")
