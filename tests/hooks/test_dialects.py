"""Codex CLI and Gemini CLI: the same conversation in their events and members."""

from typing import Any

import pytest

from memd.hooks.dialects import DIALECTS, answer, named_memories, read
from memd.text import tags
from tests.support.caller import Caller

pytestmark = pytest.mark.anyio
WORDS = "may I mock the database in this integration test?"


async def send(caller: Caller, client: str, event: str, **members: Any) -> Any:
    """Send one event of a session as a client does."""
    payload = {"session_id": "s", "cwd": caller.cwd, "hook_event_name": event, **members}
    asked = {"client": client, "event": event, "payload": payload}
    return await caller.plain("hook", **asked, deadline_ms=20_000)


@pytest.mark.parametrize(
    ("client", "announced", "done", "prompt"),
    [
        ("codex", ("PreCompact", "auto"), ("PostCompact", "auto"), "UserPromptSubmit"),
        ("gemini", ("PreCompress", "auto"), ("PreCompress", "manual"), "BeforeAgent"),
    ],
)
async def test_a_compaction_resets_the_ledger(
    caller: Caller, client: str, announced: tuple[str, str], done: tuple[str, str], prompt: str
) -> None:
    """A memory comes again after it, not after one that may come to nothing."""
    await caller.write()
    assert await send(caller, client, prompt, prompt=WORDS, turn_id="1")
    await send(caller, client, announced[0], trigger=announced[1], turn_id="2")
    assert await send(caller, client, prompt, prompt=WORDS, turn_id="3") is None
    assert await send(caller, client, done[0], trigger=done[1], turn_id="4") is None
    assert await send(caller, client, prompt, prompt=WORDS, turn_id="5")


async def test_what_a_compaction_took_from_the_index_is_said_again(caller: Caller) -> None:
    """Where the index that the session had is gone, a memory that says no more than it comes."""
    rule = "Never mock the database in integration tests."
    await caller.write(description=rule, body=rule, type="project")
    await send(caller, "gemini", "SessionStart", source="startup")
    assert await send(caller, "gemini", "BeforeAgent", prompt=WORDS) is None
    await send(caller, "gemini", "PreCompress", trigger="manual")
    assert rule in str(await send(caller, "gemini", "BeforeAgent", prompt=WORDS))


@pytest.mark.parametrize("client", DIALECTS)
@pytest.mark.parametrize("event", ["SubagentStart", "SubagentStop", "Notification", "", "\0"])
async def test_what_is_in_no_table_does_nothing(caller: Caller, client: str, event: str) -> None:
    """A sub-agent's start and stop, the summariser's too, bring nothing and start no job."""
    members = {"agent_id": "", "agent_type": "", "transcript_path": "/t.jsonl"}
    assert await send(caller, client, event, **members) is None
    assert (await caller.call("job.list"))["jobs"] == []


@pytest.mark.parametrize(
    "payload",
    [
        None,
        "text",
        [],
        {},
        {"session_id": "s"},
        {"session_id": "s", "cwd": ["/"]},
        {"session_id": "s", "cwd": "/", "tool_input": "rm"},
        {"session_id": "s", "cwd": "/", "prompt": {"text": "x"}},
    ],
)
@pytest.mark.parametrize("client", DIALECTS)
def test_another_shape_is_no_event(client: str, payload: object) -> None:
    """A payload that lacks a session or has a member of another type is passed over."""
    assert read(DIALECTS[client], "SessionStart", payload) is None


def test_a_prompt_is_the_persons_words_alone() -> None:
    """What the client or memd put around them is no part of the question."""
    prompt = f"<hook_context>{tags.OPEN}\nx\n</hook_context>\n\nmay I?\n{tags.OPEN}\nnever\n"
    payload = {"session_id": "s", "cwd": "/", "prompt": prompt}
    _, facts = read(DIALECTS["gemini"], "BeforeAgent", payload) or (None, None)
    assert facts is not None
    assert facts.prompt == "may I?"


@pytest.mark.parametrize(
    ("tool_input", "named"),
    [
        ({"file_path": "/m/a.md"}, {"a.md"}),
        ({"file_path": "/m/sub/b c.md", "content": "x"}, {"sub/b c.md"}),
        ({"command": "*** Add File: /m/a.md\n+x\n*** Delete File: /m/b.md\n"}, {"a.md", "b.md"}),
        ({"file_path": "/mm/a.md"}, set()),
        ({"file_path": "a.md"}, set()),
        ({"file_path": "/m/a.txt", "old": 3, "new": None}, set()),
        ({}, set()),
    ],
)
def test_the_memories_that_a_tool_names(tool_input: dict[str, object], named: set[str]) -> None:
    """They are named in full, in a member of their own or within a patch."""
    payload = {"session_id": "s", "cwd": "/", "tool_input": tool_input}
    _, facts = read(DIALECTS["codex"], "PostToolUse", payload) or (None, None)
    assert facts is not None
    assert named_memories(facts, "/m") == named


def test_texts_share_one_tag() -> None:
    """Two blocks are one, whatever a client puts around them."""
    blocks = [f"{tags.OPEN}\n{word}\n{tags.CLOSE}" for word in ("a", "b")]
    wanted = f"{tags.OPEN}\na\n\nb\n{tags.CLOSE}"
    for client in ("codex", "gemini"):
        output = (answer(DIALECTS[client], "X", *blocks) or {})["hookSpecificOutput"]
        assert output == {"hookEventName": "X", "additionalContext": wanted}
