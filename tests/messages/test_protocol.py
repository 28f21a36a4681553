"""What docs/protocol.md says of agents and messages is what the socket does."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memd.client.errors import RemoteError
from tests.messages.office import Office, office

_TEXT = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text(encoding="utf-8")
_MEMBER = re.compile(r"^- `(\w+)`:", re.MULTILINE)
_ERROR = re.compile(r"`(\w+)` \((\d+)\)")
WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("agent.register", {"cwd": "PROJECT", "name": "All"}, "name_refused"),
    ("agent.register", {"cwd": "PROJECT", "name": "anna"}, "name_taken"),
    ("agent.register", {"cwd": "PROJECT", "name": "k", "parent": "anna"}, "key_refused"),
    ("agent.end", {"key": "guessed"}, "key_refused"),
    ("message.send", {"key": "ANNA", "to": "nobody", "body": "b"}, "not_found"),
    ("message.send", {"key": "ANNA", "to": "bridge:1", "body": "b"}, "no_bridge"),
    ("message.send", {"key": "guessed", "to": "bert", "body": "b"}, "key_refused"),
    ("message.send", {"key": "ANNA", "to": "bert", "body": "b" * 32_769}, "too_large"),
    ("message.send", {"key": "ANNA", "to": "bert", "summary": "s" * 121}, "too_large"),
    ("message.receive", {"key": "guessed"}, "key_refused"),
    ("message.ack", {"key": "guessed", "ids": ["m1"]}, "key_refused"),
    ("message.status", {"id": "m999999"}, "message_not_found"),
    ("message.status", {"id": "x'; --"}, "message_not_found"),
    ("message.decide", {"id": "m999999", "accept": True}, "message_not_found"),
    ("message.log", {"cwd": "PROJECT", "agent": "nobody"}, "not_found"),
]


def section(method: str) -> tuple[set[str], dict[str, int]]:
    """Return a method's members of the result, and its errors with their codes."""
    text = _TEXT.split(f"### `{method}`\n")[1].split("\n### ")[0].split("\n## ")[0]
    result = text.split("Result:")[1].split("Errors:")[0]
    errors = text.split("Errors:")[1] if "Errors:" in text else ""
    codes = {kind: int(code) for kind, code in _ERROR.findall(errors)}
    return set(_MEMBER.findall(result)), codes


@pytest.fixture
def agents() -> Iterator[Office]:
    """Register two agents; a held message is the first."""
    with office() as made:
        for name in ("anna", "bert"):
            made.register(name)
        made.send("shell", "bert", "held")
        yield made


def test_results_have_the_members_that_are_documented(agents: Office) -> None:
    """Each method answers with exactly the members of its section."""
    key = agents.keys["anna"]
    answers: dict[str, dict[str, Any]] = {
        "agent.register": {"cwd": agents.project, "name": "cleo"},
        "agent.list": {"cwd": agents.project},
        "message.send": {"key": key, "to": "anna", "body": "text"},
        "message.receive": {"key": key},
        "message.ack": {"key": key, "ids": ["m2"]},
        "message.status": {"id": "m2"},
        "message.log": {"cwd": agents.project},
        "message.decide": {"id": "m1", "accept": True},
        "agent.end": {"key": key},
    }
    results = {method: set(agents.call("c", method, **p)) for method, p in answers.items()}
    assert results == {method: section(method)[0] for method in answers}


@pytest.mark.parametrize(("method", "params", "kind"), WRONG)
def test_errors_are_the_documented_ones(
    agents: Office, method: str, params: dict[str, Any], kind: str
) -> None:
    """Each bad call has the error of its section, with its code."""
    real = {"PROJECT": agents.project, "ANNA": agents.keys["anna"]}
    given = {n: real.get(v, v) if isinstance(v, str) else v for n, v in params.items()}
    with pytest.raises(RemoteError) as caught:
        agents.call("wrong", method, **given)
    assert (caught.value.kind, caught.value.code) == (kind, section(method)[1][kind])
