"""Script files."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.messages_request import ReceivedMessage
from tests.support.messages_script import InvalidScriptError, echo, parse, read
from tests.support.messages_steps import (
    Cut,
    Drip,
    Failure,
    Hang,
    Interrupt,
    Raw,
    ScriptedReply,
    Step,
    text,
)

REQUEST = ReceivedMessage(1, "POST", "/v1/messages", {}, b'{"messages":[{"content":"hi"}]}')


@pytest.mark.parametrize(
    ("said", "step"),
    [
        ({"text": "a", "stop": "max_tokens"}, text("a", stop="max_tokens")),
        ({"structured": [1]}, text("[1]")),
        ({"content": [{"type": "x"}]}, ScriptedReply(({"type": "x"},))),
        ({"error": 429, "retry_after": 2}, Failure(429, retry_after=2)),
        ({"raw": "<", "content_type": "text/html"}, Raw(b"<", 200, "text/html")),
        ({"text": "a", "cut": 7}, Cut(text("a"), 7)),
        ({"text": "a", "cut": "at once"}, Cut(text("a"), None)),
        ({"text": "a", "drip": 1}, Drip(text("a"), seconds=1)),
        ({"text": "a", "hang": "for ever"}, Hang(text("a"))),
        ({"text": "a", "hang": 2, "cut": 3}, Hang(Cut(text("a"), 3), seconds=2)),
        ({"text": "a", "interrupt": 2}, Interrupt(text("a"), events=2)),
        ("echo", echo),
    ],
)
def test_each_form_of_a_step_is_known(said: Any, step: Step) -> None:
    """What a file says is the value that a test would write."""
    assert parse({"steps": [said]}).script == [step]


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ([], "the top"),
        ({"step": []}, "the top"),
        ({"steps": {}}, "steps"),
        ({"steps": [7]}, "step 1"),
        ({"steps": ["echo", {}]}, "step 2"),
        ({"steps": [{"text": "a", "error": 500}]}, "step 1"),
        ({"steps": [{"text": "a", "cutt": 1}]}, "cutt is not known"),
        ({"steps": [{"tools": [{}]}]}, "step 1"),
        ({"steps": [{"error": "x"}]}, "step 1"),
        ({"steps": [{"refusal": {"x": 1}}]}, "step 1"),
        ({"otherwise": {}}, "otherwise"),
    ],
)
def test_an_unclear_script_says_where(value: Any, where: str) -> None:
    """Each mistake is refused with its place."""
    with pytest.raises(InvalidScriptError, match=where):
        parse(json.loads(json.dumps(value)))


def test_a_broken_file_is_an_unclear_script(tmp_path: Path) -> None:
    """A file that is no JSON or no TOML is refused, a missing one is the system's error."""
    for name in ("s.toml", "s.json"):
        (tmp_path / name).write_text("{[")
        with pytest.raises(InvalidScriptError, match="not clear"):
            read(str(tmp_path / name))
    with pytest.raises(FileNotFoundError):
        read(str(tmp_path / "missing"))


def test_otherwise_is_for_ever() -> None:
    """After the list comes the other step, as often as it is asked for."""
    script = parse({"steps": [{"text": "a"}], "otherwise": "echo"}).script
    assert callable(script)
    assert [script(REQUEST) for _ in range(3)] == [text("a"), text("hi"), text("hi")]
    assert parse({}).script is echo
