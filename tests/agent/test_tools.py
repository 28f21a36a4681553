"""The tools as data."""

import json
from typing import Any

import pytest

from memd.agent import tools
from memd.agent.refusals import EditFailedError, InputError
from memd.core import limits


def test_definitions_have_the_shape_of_the_api() -> None:
    """Each tool has a name, a description and a schema, the same bytes each time."""
    results = tools.definitions()
    assert json.dumps(results) == json.dumps(tools.definitions())
    assert {tool["name"] for tool in results} == tools.NAMES
    for tool in results:
        schema = tool["input_schema"]
        assert tool["description"]
        assert set(schema["required"]) <= set(schema["properties"])
        assert tool["name"] in tools.NAMES


def test_inputs_are_typed() -> None:
    """Names with dashes, numbers sent as text and members of clients' own tools are understood."""
    results = tools.parse("Grep", {"pattern": "x", "-i": True, "-A": "3", "output_mode": "count"})
    assert isinstance(results, tools.Grep)
    assert (results.ignore_case, results.after, results.output_mode) == (True, 3, "count")
    bash = tools.parse("Bash", {"command": "ls", "timeout": 5, "description": "d"})
    assert isinstance(bash, tools.Bash)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("Read", {}),
        ("Read", {"file_path": 5}),
        ("Read", {"file_path": "a", "limit": -1}),
        ("Write", {"file_path": "a", "content": "x", "mode": "0777"}),
        ("Grep", {"pattern": "x", "output_mode": "all"}),
        ("Grep", {"pattern": "x", "multiline": True}),
        ("Bash", {"command": "ls", "run_in_background": True}),
        ("Glob", []),
        ("Read", {"file_path": "a", "half \ud800": 1}),
    ],
)
def test_inputs_without_sense_are_refused(name: str, given: Any) -> None:
    """What does not fit the schema, or asks for what is not there, is refused in words."""
    with pytest.raises(InputError, match=f"The input of {name} does not fit"):
        tools.parse(name, given)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("", "x", "is empty"),
        ("a", "a", "the same"),
        ("z", "x", "does not stand"),
        ("b", "x", "2 times"),
        ("a", "x" * limits.READ_BYTES, "far too large"),
    ],
)
def test_an_edit_says_one_place(old: str, new: str, why: str) -> None:
    """An edit that is empty, idle, absent, ambiguous or enormous fails in words."""
    with pytest.raises(EditFailedError, match=why):
        tools.Edit("a.md", old, new).applied("abcb")
