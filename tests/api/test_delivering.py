"""Messages that a client's hooks bring: once each, to whom they are for, read by what follows."""

from typing import Any

import pytest

from memd.core import limits
from memd.text.quoting import units
from tests.api.caller import Caller
from tests.api.test_spending import configure

pytestmark = pytest.mark.anyio
SHORT = "the build is green"


async def hook(caller: Caller, event: str, session: str = "b", **members: Any) -> str:
    """Send an event as a hook with messages does; return what the model gets, and print it."""
    payload = {"session_id": session, "cwd": caller.cwd, "hook_event_name": event, **members}
    wanted = {"client": "claude-code", "event": event, "payload": payload, "messages": True}
    answer = await caller.plain("hook", **wanted, deadline_ms=20_000)
    return str(((answer or {}).get("hookSpecificOutput") or {}).get("additionalContext", ""))


async def printed(caller: Caller) -> bool:
    """Tell that the last answer was printed; return whether messages were in it."""
    return bool((await caller.plain("hook.printed"))["messages"])


async def begin(caller: Caller, session: str = "b", title: str = "builder") -> None:
    """Let a session begin."""
    await hook(caller, "SessionStart", session, source="startup", session_title=title)


async def send(caller: Caller, to: str, body: str = SHORT) -> str:
    """Send a message as another registered agent; return its id."""
    made = await caller.plain("agent.register", cwd=caller.cwd, name="sender", session_id="sends")
    sent = await caller.plain("message.send", key=made["key"], to=to, body=body)
    return str(sent["id"])


async def state(caller: Caller, message: str) -> str:
    """Return what became of a message."""
    return str((await caller.plain("message.status", id=message))["state"])


async def test_a_tool_brings_a_message_and_the_end_of_the_turn_reads_it(caller: Caller) -> None:
    """What is sent in mid-turn comes with the next tool, once, and nothing comes at the end."""
    await begin(caller)
    message = await send(caller, "builder")
    assert SHORT in await hook(caller, "PostToolUse", tool_name="Bash", prompt_id="p")
    assert await state(caller, message) == "leased"
    assert await printed(caller)
    assert await hook(caller, "Stop") == ""
    assert await state(caller, message) == "read"
    assert SHORT not in await hook(caller, "UserPromptSubmit", prompt="go on", prompt_id="q")


async def test_an_idle_session_has_it_at_its_next_prompt(caller: Caller) -> None:
    """Nothing comes with the end of a turn; the prompt after it brings the message."""
    await begin(caller)
    assert await hook(caller, "Stop") == ""
    message = await send(caller, "builder")
    assert SHORT in await hook(caller, "UserPromptSubmit", prompt="and now?", prompt_id="p")
    assert await state(caller, message) == "leased"


async def test_what_was_not_printed_comes_again(caller: Caller) -> None:
    """A session that begins anew has what its last event was given, printed or not."""
    await begin(caller)
    message = await send(caller, "builder")
    assert SHORT in await hook(caller, "PostToolUse", tool_name="Bash")
    assert await printed(caller)
    await hook(caller, "SessionStart", source="resume")
    assert await state(caller, message) == "queued"
    assert SHORT in await hook(caller, "UserPromptSubmit", prompt="go on", prompt_id="p")


async def test_hooks_that_run_at_the_same_time_bring_it_once(caller: Caller) -> None:
    """While a hook may still print what it was given, no other one of the agent is given it."""
    await begin(caller)
    await send(caller, "builder")
    assert SHORT in await hook(caller, "PostToolUse", tool_name="Read")
    assert SHORT not in await hook(caller, "PostToolUse", tool_name="Bash")


async def test_a_hook_that_hangs_keeps_no_message_for_good(caller: Caller) -> None:
    """Who neither prints nor ends holds up the messages of its session for some seconds alone."""
    await begin(caller)
    await send(caller, "builder")
    assert SHORT in await hook(caller, "PostToolUse", tool_name="Read")
    caller.clock.advance(11)
    assert SHORT in await hook(caller, "PostToolUse", tool_name="Bash")
    assert await printed(caller)
    assert await hook(caller, "Stop") == ""
    assert SHORT not in await hook(caller, "UserPromptSubmit", prompt="go on", prompt_id="q")


async def test_a_sub_agent_gets_its_own(caller: Caller) -> None:
    """A message to a child comes with the child's tools alone, and its end reads it."""
    await begin(caller)
    await hook(caller, "SubagentStart", agent_id="a1", agent_type="explorer")
    message = await send(caller, "builder/explorer")
    other = await send(caller, "builder", "for the parent")
    assert SHORT not in await hook(caller, "PostToolUse", tool_name="Bash")
    assert await printed(caller)
    text = await hook(caller, "PostToolUse", tool_name="Bash", agent_id="a1")
    assert SHORT in text
    assert "for the parent" not in text
    assert await printed(caller)
    assert await hook(caller, "SubagentStop", agent_id="a1", agent_type="explorer") == ""
    assert await hook(caller, "Stop") == ""
    assert [await state(caller, each) for each in (message, other)] == ["read", "read"]


async def test_a_hook_without_messages_registers_nobody(caller: Caller) -> None:
    """Where the set-up was not run with --messages, no agent is listed and nothing arrives."""
    payload = {"session_id": "b", "cwd": caller.cwd, "source": "startup"}
    await caller.plain("hook", client="claude-code", event="SessionStart", payload=payload)
    assert (await caller.plain("agent.list", cwd=caller.cwd))["agents"] == []


async def test_an_event_of_no_session_registers_nobody(caller: Caller) -> None:
    """A session without a name is no agent."""
    for _ in range(2):
        await hook(caller, "SessionStart", "", source="startup")
    assert (await caller.call("agent.list"))["agents"] == []


async def test_memories_and_messages_share_one_budget(caller: Caller) -> None:
    """A prompt's messages and memories together stay below the bound of one event."""
    await begin(caller)
    for number in range(5):
        body = f"Never mock the database in integration test {number}. " + "x " * 1500
        await caller.write(f"m{number}.md", name=f"mock-{number}", body=body)
        await send(caller, "builder", f"{number} " + "y" * 500)
    text = await hook(caller, "UserPromptSubmit", prompt="may I mock the database?", prompt_id="p")
    assert text.count("Message from ") == 4
    assert units(text) <= limits.HOOK_CHARACTERS


async def test_messages_that_are_switched_off_reach_nobody(caller: Caller) -> None:
    """With messages.enabled = false a hook registers nobody and does the rest of its work."""
    configure(caller, "[messages]\nenabled = false\n")
    await begin(caller)
    assert (await caller.plain("agent.list", cwd=caller.cwd))["agents"] == []


async def test_a_name_that_is_taken_gets_a_number(caller: Caller) -> None:
    """Two sessions of one title are two agents, and a title that is no name is replaced."""
    await begin(caller, "b1", "Fix the  Build!")
    await begin(caller, "b2", "Fix the  Build!")
    await begin(caller, "c3abc", "user")
    agents = (await caller.plain("agent.list", cwd=caller.cwd))["agents"]
    names = [agent["agent"] for agent in agents]
    assert names[0] == "fix-the-build"
    assert len({*names}) == 3
    assert "user" not in names
