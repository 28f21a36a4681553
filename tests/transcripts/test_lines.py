"""From JSON to messages."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.core.values import Message
from memd.text.tags import CLOSE, OPEN
from memd.transcripts.lines import PieceReader
from memd.transcripts.reading import Assembly, from_messages


def lines(*given: dict[str, Any]) -> tuple[Message, ...]:
    """Assemble some transcript lines."""
    reader, assembly = PieceReader(), Assembly()
    for line in given:
        assembly.add(reader.pieces(line))
    return assembly.messages()


def user(content: Any, **more: Any) -> dict[str, Any]:
    """Return a user line."""
    return {"type": "user", "uuid": "u1", "message": {"role": "user", "content": content}, **more}


def assistant(*blocks: Any, **more: Any) -> dict[str, Any]:
    """Return an assistant line of message m1."""
    message = {"id": "m1", "role": "assistant", "content": list(blocks)}
    return {"type": "assistant", "uuid": "a1", "cwd": "/p", "message": message, **more}


def call(name: str, number: str = "t1", **given: Any) -> dict[str, Any]:
    """Return a tool-use block."""
    return {"type": "tool_use", "id": number, "name": name, "input": given}


def test_tool_results_are_the_tools_words() -> None:
    """A tool result never counts as the user's, whatever stands beside it."""
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "remember me"}
    listed = {"type": "tool_result", "content": [{"type": "text", "text": "listed"}, "junk"]}
    results = lines(user([result, listed, {"type": "text", "text": "mine"}, {"type": "image"}]))
    assert [(m.origin, m.text) for m in results] == [
        ("tool", "remember me"),
        ("tool", "listed"),
        ("user", "mine"),
    ]


@pytest.mark.parametrize(
    ("block", "path"),
    [
        (call("Write", file_path="/m/a.md"), "/m/a.md"),
        (call("Edit", file_path="sub/../a.md"), "/p/a.md"),
        (call("MultiEdit", file_path="/m/a.md"), "/m/a.md"),
        (call("NotebookEdit", notebook_path="/m/a.ipynb"), "/m/a.ipynb"),
        (call("memory", command="create", path="/memories/a.md"), "/memories/a.md"),
        (call("memory", command="rename", new_path="/memories/b.md"), "/memories/b.md"),
        (call("mcp__memd__save", path="a.md"), "/memories/a.md"),
        (call("mcp__plugin_memd_memd__forget", path="a.md"), "/memories/a.md"),
        (call("mcp__memd__suggestions", action="accept"), "/memories/"),
    ],
)
def test_what_the_assistant_wrote_is_noted(block: dict[str, Any], path: str) -> None:
    """A writing tool call names its path, absolute."""
    (message,) = lines(assistant(block))
    assert message.writes == (path,)


_KEYS = st.sampled_from(["type", "role", "content", "text", "message", "input", "name", "id", "x"])
_JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=6),
    max_leaves=12,
)


@given(st.lists(_JSON, max_size=4))
def test_no_shape_crashes(values: list[Any]) -> None:
    """Any JSON value is either read or passed over."""
    from_messages([{"role": "user", "content": value} for value in values])
    from_messages([{"role": "assistant", "content": value} for value in values])
    lines(*values, *(user(value) for value in values), *(assistant(value) for value in values))


@pytest.mark.parametrize(
    ("name", "origin"),
    [
        ("WebFetch", "web"),
        ("WebSearch", "web"),
        ("mcp__github__issue", "mcp"),
        ("mcp__memdx__save", "mcp"),
        ("Bash", "tool"),
    ],
)
def test_words_from_outside_are_marked(name: str, origin: str) -> None:
    """The output of web tools and of servers' tools tells where it comes from, empty or not."""
    for text in ("remember", ""):
        result = {"type": "tool_result", "tool_use_id": "t1", "content": text}
        results = lines(assistant(call(name)), user([result]))[1:]
        wanted = [] if origin == "tool" and not text else [(origin, name, text)]
        assert [(m.origin, m.tool, m.text) for m in results] == wanted


def test_memds_words_are_cut_out_everywhere() -> None:
    """What memd injected is cut out of outputs and of the assistant's words too."""
    mine = f"{OPEN}injected{CLOSE}"
    result = {"type": "tool_result", "tool_use_id": "t1", "content": f"out{mine}"}
    listed = {"type": "tool_result", "content": [{"type": "text", "text": mine}]}
    results = lines(assistant({"type": "text", "text": f"said{mine}"}), user([result, listed]))
    assert [message.text for message in results] == ["said", "out"]
    kept = "<system-reminder>code</system-reminder>"
    assert lines(assistant({"type": "text", "text": kept}))[0].text == kept
