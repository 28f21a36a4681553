"""Codex's rollout files."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.base.values import Message
from memd.text.tags import CLOSE, OPEN
from memd.transcripts.lines import PieceReader
from memd.transcripts.reading import Assembly

META = {"id": "s", "cwd": "/p", "cli_version": "0.169.0", "source": "cli"}


def line(kind: str, /, **payload: Any) -> dict[str, Any]:
    """Return a line of a rollout file."""
    return {"timestamp": "1970-01-01T00:01:00Z", "type": kind, "payload": payload}


def item(kind: str, /, **more: Any) -> dict[str, Any]:
    """Return a line of the model's side."""
    return line("response_item", type=kind, **more)


def event(kind: str, /, **more: Any) -> dict[str, Any]:
    """Return an event."""
    return line("event_msg", type=kind, **more)


def done(kind: str, /, **more: Any) -> dict[str, Any]:
    """Return the event of a completed item."""
    return event("item_completed", item={"type": kind, "id": "i1", **more})


def message(role: str, text: str) -> dict[str, Any]:
    """Return a message of the model's side."""
    kind = "output_text" if role == "assistant" else "input_text"
    return item("message", role=role, content=[{"type": kind, "text": text}])


def read(*lines: dict[str, Any], meta: dict[str, Any] = META) -> tuple[Message, ...]:
    """Assemble a rollout file."""
    reader, assembly = PieceReader(), Assembly()
    for value in (line("session_meta", **meta), *lines):
        assembly.add(reader.pieces(json.loads(json.dumps(value))))
    return assembly.messages()


@pytest.mark.parametrize(
    "said",
    [
        event("user_message", message="fix it", images=[]),
        event("user_message", message="fix it", kind="plain"),
        done("UserMessage", content=[{"type": "text", "text": "fix it"}, {"type": "image"}]),
        event("user_message", message="# Context\nx\n## My request for Codex:\nfix it\n"),
        event("user_message", message=f"{OPEN}remember{CLOSE}fix it"),
    ],
)
def test_the_users_words_are_the_events(said: dict[str, Any]) -> None:
    """Both forms of the event are the user's words; the model's input and repeats are not."""
    results = read(
        message("developer", "hook context"),
        message("user", "<environment_context>x</environment_context>"),
        message("user", "fix it"),
        said,
        event("agent_message", message="done"),
        done("AgentMessage", content=[{"type": "Text", "text": "done"}]),
        message("assistant", "done"),
        event("token_count", info={}),
        line("compacted", message="", replacement_history=[message("user", "old")]),
    )
    assert [(m.role, m.origin, m.text, m.at) for m in results] == [
        ("user", "user", "fix it", 60.0),
        ("assistant", "assistant", "done", 60.0),
    ]


def test_calls_and_their_outputs() -> None:
    """A call is told in short, its output is the tool's, and each has its id."""
    arguments = json.dumps({"cmd": "ls", "workdir": "/w"})
    listed = [{"type": "input_text", "text": "c"}]
    results = read(
        item("function_call", name="exec_command", arguments=arguments, call_id="c1"),
        item("function_call_output", call_id="c1", output="Wall time: 1\nOutput:\na"),
        item("local_shell_call", call_id="c2", action={"command": ["ls"]}),
        item("function_call_output", call_id="c2", output=json.dumps({"output": "b"})),
        item("custom_tool_call", name="exec", input="text", call_id="c3"),
        item("custom_tool_call_output", call_id="c3", output=listed),
    )
    assert [message.calls for message in results[::2]] == [
        ("exec_command ls",),
        ('shell ["ls"]',),
        ("exec",),
    ]
    assert [(m.origin, m.tool, m.text.splitlines()[-1]) for m in results[1::2]] == [
        ("tool", "exec_command", "a"),
        ("tool", "shell", "b"),
        ("tool", "exec", "c"),
    ]


@pytest.mark.parametrize(
    ("output", "failed"),
    [
        ("unsupported call: shell", "c1"),
        ("failed to parse function arguments: missing field `cmd`", "c1"),
        ("aborted by user after 2.1s", "c1"),
        ("Plan updated", ""),
        ("Process exited with code 0\nOutput:\nunsupported call: shell", ""),
    ],
)
def test_a_call_that_was_never_run_failed(output: str, failed: str) -> None:
    """Codex's own refusal in the place of an output is a failure; what a command prints is none."""
    reader = PieceReader()
    shown = item("function_call_output", call_id="c1", output=output)
    pieces = [
        piece for value in (line("session_meta", **META), shown) for piece in reader.pieces(value)
    ]
    assert [piece.failed for piece in pieces] == [failed]


def test_words_from_outside_are_marked() -> None:
    """A web search and a server's answer are told, memd's own tools as what they write."""
    write = {"tool": "save", "arguments": {"path": "a.md"}, "server": "memd"}
    results = read(
        item("web_search_call", status="completed", action={"type": "search", "query": "q"}),
        done("McpToolCall", server="hub", tool="get", status="completed"),
        event("mcp_tool_call_end", invocation={"server": "hub", "tool": "put"}),
        done("McpToolCall", status="completed", **write),
        done("McpToolCall", status="failed", **write),
        item("function_call", name="get", namespace="mcp__hub__", call_id="c", arguments="{}"),
        item("function_call_output", call_id="c", output="words"),
    )
    assert [(m.origin, m.tool, m.calls, m.writes) for m in results] == [
        ("assistant", "", ("web_search q",), ()),
        ("web", "web_search", (), ()),
        ("mcp", "mcp__hub__get", (), ()),
        ("mcp", "mcp__hub__put", (), ()),
        ("assistant", "", (), ("/memories/a.md",)),
        ("assistant", "", ("mcp__hub__get",), ()),
        ("mcp", "mcp__hub__get", (), ()),
    ]


_JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
_KINDS = st.sampled_from(
    [
        "message",
        "function_call",
        "function_call_output",
        "custom_tool_call",
        "web_search_call",
        "user_message",
        "patch_apply_end",
        "mcp_tool_call_end",
        "item_completed",
        "UserMessage",
        "FileChange",
        "McpToolCall",
    ]
)
_MEMBERS = st.sampled_from(
    ["content", "role", "arguments", "input", "output", "item", "changes", "invocation", "success"]
)
_PAYLOADS = st.dictionaries(_MEMBERS, _JSON | st.just("assistant") | st.just(True), max_size=4)  # noqa: FBT003 - JSON


@given(
    st.sampled_from(["response_item", "event_msg", "session_meta"]), _KINDS, _PAYLOADS, _PAYLOADS
)
def test_no_shape_crashes(kind: str, inner: str, payload: Any, nested: Any) -> None:
    """Any payload is read or passed over."""
    read(line(kind, **{**payload, "type": inner}))
    read(line("event_msg", type="item_completed", item={**nested, "type": inner}))
