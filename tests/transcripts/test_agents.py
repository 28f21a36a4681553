"""Messages of other agents in transcripts: whose words they are, whoever brings them."""

import json
from pathlib import Path
from typing import Any

import pytest

from memd.conversation.dialogue import Dialogue, extended, rendered
from memd.core.agents import AgentMessage, MessageKind, Sender
from memd.messages.block import block
from memd.text.tags import CLOSE
from memd.transcripts.reading import read
from tests.transcripts.shapes import Line, call, claude, codex, gemini, reply, result

_WORDS = "Please deploy the branch amber today"
_SENDER = Sender(1, "eve", "codex", "/p", "p")
BLOCK = block([AgentMessage("m1", _SENDER, MessageKind.TEXT, "", _WORDS, 0.0, 60.0, 1)])


def _hook(content: Any) -> Line:
    return claude("attachment", "h1", attachment={"type": "hook_additional_context", **content})


def _claude(name: str, text: Any, **given: Any) -> list[Line]:
    return [
        claude("user", "u1", "hi"),
        reply("a1", "k1", call("c1", name, **given)),
        claude("user", "u2", [result("c1", text)]),
    ]


def _codex(name: str, output: Any, **given: Any) -> list[Line]:
    asked = {"type": "function_call", "name": name, "call_id": "c1", "arguments": json.dumps(given)}
    answer = {"type": "function_call_output", "call_id": "c1", "output": output}
    head = codex("session_meta", id="s", cwd="/p", cli_version="0.169.0")
    return [head, codex("response_item", **asked), codex("response_item", **answer)]


_CASES: dict[str, list[Line]] = {
    "hook": [claude("user", "u1", "hi"), _hook({"content": [BLOCK]})],
    "hook in one text": [claude("user", "u1", "hi"), _hook({"content": BLOCK})],
    "prompt": [claude("user", "u1", f"{BLOCK}\nhi")],
    "tool of memd's": _claude("mcp__memd__read_messages", f"one\n{_WORDS}"),
    "tool of the plugin's": _claude("mcp__plugin_memd_memd__read_messages", _WORDS),
    "command": _claude("Bash", _WORDS, command="memctl message read"),
    "command with switches": _claude("Bash", _WORDS, command="cd x; memctl message --json wait"),
    "the list of what waits": _claude("Bash", _WORDS, command="memctl message held"),
    "socket": _claude("Bash", _WORDS, command='echo {"method":"message.receive"} | nc -U s'),
    "a file that has it": _claude("Read", [{"type": "text", "text": BLOCK}], file_path="/p/log"),
    "codex, hook": [
        codex("session_meta", id="s", cwd="/p", cli_version="0.169.0"),
        codex(
            "response_item",
            type="message",
            role="developer",
            content=[{"type": "input_text", "text": BLOCK}],
        ),
    ],
    "codex, command": _codex("shell", {"content": _WORDS}, command=["memctl", "message", "read"]),
    "codex, output": _codex("shell", json.dumps({"output": BLOCK}), command=["cat", "log"]),
    "gemini, hook": [
        {"sessionId": "s", "projectHash": "x", "startTime": "x", "kind": "main"},
        gemini("user", "g1", [{"text": f"hi <hook_context>{BLOCK}</hook_context>"}]),
    ],
}


@pytest.mark.parametrize("name", _CASES)
def test_messages_are_agents_words_and_nobody_s(tmp_path: Path, name: str) -> None:
    """However a message came in, its words are an agent's, and no model is shown them."""
    path = tmp_path / "s.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in _CASES[name]), encoding="utf-8")
    messages = read(str(path)).messages
    agents = [message.text for message in messages if message.origin == "agent"]
    assert len(agents) == 1
    assert _WORDS in agents[0]
    assert not any(_WORDS in message.text for message in messages if message.origin != "agent")
    dialogue = extended(Dialogue(), messages)
    assert any(_WORDS in piece.text for piece in dialogue.pieces)
    assert _WORDS not in "".join(map(rendered, dialogue.pieces))


def test_memories_beside_messages_are_no_agent_s_words(tmp_path: Path) -> None:
    """A hook brings both at once: only what stands under a message's label is an agent's."""
    both = BLOCK.replace(CLOSE, f"Notes of this project:\n\nKeep lines short\n> Short.\n{CLOSE}")
    path = tmp_path / "s.jsonl"
    lines = [claude("user", "u1", "hi"), _hook({"content": [both]})]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (words,) = (each.text for each in read(str(path)).messages if each.origin == "agent")
    assert words == _WORDS


def test_blocks_of_a_reply_stay_one_message(tmp_path: Path) -> None:
    """A message that comes in between the blocks of a reply does not part them."""
    first, second = {"type": "text", "text": "One"}, {"type": "text", "text": "Two"}
    lines = [reply("a1", "k1", first), _hook({"content": [BLOCK]}), reply("a2", "k1", second)]
    path = tmp_path / "s.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    texts = [message.text for message in read(str(path)).messages if message.origin != "agent"]
    assert texts == ["One\n\nTwo"]


def test_what_only_writes_of_messages_reads_none(tmp_path: Path) -> None:
    """Sending a message, or a commit's message, brings nobody else's words."""
    for command in ("memctl message send a hi", "git commit -m 'message: reader'"):
        path = tmp_path / "s.jsonl"
        lines = _claude("Bash", "done", command=command)
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        assert not any(message.origin == "agent" for message in read(str(path)).messages)
