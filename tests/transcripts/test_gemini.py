"""Gemini CLI's chat records."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.base.values import Message
from memd.transcripts import reading
from memd.transcripts.lines import PieceReader
from memd.transcripts.reading import Assembly

FIRST = {"sessionId": "s", "projectHash": "h", "startTime": "1970-01-01T00:01:00Z", "kind": "main"}


def line(kind: str, content: Any, number: int = 1, **more: Any) -> dict[str, Any]:
    """Return the line of a message."""
    at = {"timestamp": "1970-01-01T00:01:00.000Z"}
    return {"id": f"m{number}", **at, "type": kind, "content": content, **more}


def call(name: str, *, status: str = "success", written: str = "", **given: Any) -> dict[str, Any]:
    """Return a tool call as a message has it once the tool has ended."""
    shown = {"filePath": written, "fileName": "x"} if written else "shown"
    facts = {"id": f"c-{name}", "name": name, "args": given, "status": status}
    return {**facts, "resultDisplay": shown, "result": []}


def result(name: str, **response: Any) -> list[dict[str, Any]]:
    """Return the content of a message that brings a tool's output to the model."""
    return [{"functionResponse": {"id": f"c-{name}", "name": name, "response": response}}]


def read(*lines: Any, first: dict[str, Any] = FIRST) -> tuple[Message, ...]:
    """Assemble a chat record."""
    reader, assembly = PieceReader(), Assembly()
    for value in (first, *lines):
        assembly.add(reader.pieces(json.loads(json.dumps(value))))
    return assembly.messages()


@pytest.mark.parametrize(
    "said",
    [
        line("user", "fix it"),
        line("user", [{"text": "fix it"}]),
        line(
            "user",
            [{"text": "fix it"}, {"text": "<hook_context>&lt;memd-context&gt;x</hook_context>"}],
        ),
        line("user", [{"text": "fix it a file's text"}], displayContent=[{"text": "fix it"}]),
        line("user", "fix it<memd-context>remember</memd-context>"),
    ],
)
def test_the_users_words_are_what_they_typed(said: dict[str, Any]) -> None:
    """What hooks, files and the client itself add is nobody's; the model's answer counts once."""
    setting = {"$set": {"messages": [line("user", "<session_context>x</session_context>", 9)]}}
    answer = line("gemini", "done", 2, thoughts=[{"subject": "x"}], tokens={"input": 1})
    results = read(
        setting,
        said,
        {"$set": {"lastUpdated": "1970"}},
        answer,
        {**answer, "tokens": {"input": 2}},
        line("info", "rate limit", 3),
        {"$rewindTo": "m1"},
    )
    assert [(m.role, m.origin, m.text, m.at) for m in results] == [
        ("user", "user", "fix it", 60.0),
        ("assistant", "assistant", "done", 60.0),
    ]


def test_calls_and_their_outputs() -> None:
    """A call is told once, with the path that it wrote; outputs are the tool's words."""
    answer = line("gemini", "writing", 2)
    write = call("write_file", file_path="a.md", content="x", written="/p/a.md")
    results = read(
        line("user", "write it"),
        answer,
        {**answer, "toolCalls": [write]},
        {**answer, "toolCalls": [write, call("replace", status="error", file_path="/p/b.md")]},
        line("user", result("write_file", output="written"), 3),
        line("user", result("replace", error="no match"), 4),
        line("user", result("google_web_search", output="the web says"), 5),
        line("user", result("mcp_other_ask", output="a server says"), 6),
        line("user", result("mcp_memd_memory_search", output="memd says"), 7),
    )
    said = [(m.origin, m.text) for m in results]
    assert said == [
        ("user", "write it"),
        ("assistant", "writing"),
        ("tool", "written"),
        ("tool", "no match"),
        ("web", "the web says"),
        ("mcp", "a server says"),
    ]
    assert results[1].calls == ("write_file a.md", "replace /p/b.md")
    assert results[1].writes == ("/p/a.md",)


def test_a_sub_agents_file_says_nothing(tmp_path: Path) -> None:
    """Its first line tells, also to a reading that begins behind it."""
    path = tmp_path / "s.jsonl"
    lines = [{**FIRST, "kind": "subagent"}, line("user", "look for it")]
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))
    part = reading.read(str(path))
    assert (part.messages, part.problem) == ((), "")
    with path.open("a") as file:
        file.write(json.dumps(line("user", "and on", 2)) + "\n")
    assert reading.read(str(path), part.offset, part.marker).messages == ()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=8,
)
MEMBERS = ("id", "type", "timestamp", "displayContent", "toolCalls", "projectHash", "kind")
CALLS = st.fixed_dictionaries(
    {"name": JSON | st.just("write_file"), "args": JSON, "resultDisplay": JSON, "status": JSON}
)
PARTS = st.fixed_dictionaries({}, optional={"text": JSON, "functionResponse": CALLS})


@given(
    st.sampled_from(["user", "gemini"]),
    JSON | st.lists(PARTS, max_size=3),
    st.dictionaries(st.sampled_from(MEMBERS), JSON | st.lists(CALLS | JSON, max_size=3)),
)
def test_no_shape_crashes(kind: str, content: Any, others: dict[str, Any]) -> None:
    """Whatever stands in a record, it is read or passed over."""
    read({**line(kind, content), **others}, line("user", "after", 5))
