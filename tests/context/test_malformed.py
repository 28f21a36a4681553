"""Histories that the Messages API would refuse: an error names place and rule, nothing is noted."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memd.context.errors import MessagesRefusedError
from memd.context.requests import ContextRequest
from memd.core.settings import Settings
from memd.core.values import Project
from tests.context.planners import StoredPlanner

CALL = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "done"}
TALK = ({"role": "user", "content": "Run it."}, {"role": "assistant", "content": [CALL]})
ANSWER = {"role": "user", "content": [RESULT]}


def user(*blocks: Any) -> dict[str, Any]:
    """Return a message of the user that answers the open call and has more blocks."""
    return {"role": "user", "content": [RESULT, *blocks]}


def reply(*blocks: Any) -> tuple[dict[str, Any], ...]:
    """Return the answer to the open call and a reply with blocks."""
    return (ANSWER, {"role": "assistant", "content": list(blocks)})


def nested(depth: int) -> Any:
    """Return lists in lists."""
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


TEXT = {"type": "text", "text": "ok"}
CASES: dict[str, tuple[tuple[Any, ...], str]] = {
    "no object": ((5,), "messages.2"),
    "no role": (({"content": "hi"},), "messages.2"),
    "an unknown role": (({"role": "tool", "content": "hi"},), "messages.2"),
    "a role that is a list": (({"role": ["user"], "content": "hi"},), "messages.2"),
    "no content": (({"role": "user"},), "messages.2"),
    "content of null": (({"role": "user", "content": None},), "messages.2"),
    "content that is a number": (({"role": "user", "content": 7},), "messages.2"),
    "content that is an object": (({"role": "user", "content": {"type": "text"}},), "messages.2"),
    "an empty text": ((ANSWER, {"role": "user", "content": ""}), "messages.3"),
    "no blocks": ((ANSWER, {"role": "user", "content": []}), "messages.3"),
    "a block that is a text": ((user("hi"),), "messages.2.content.1"),
    "a block without a type": ((user({"text": "hi"}),), "messages.2.content.1"),
    "a type that is a number": ((user({"type": 5}),), "messages.2.content.1"),
    "a text without text": ((user({"type": "text"}),), "messages.2.content.1"),
    "an empty text block": ((user({"type": "text", "text": ""}),), "messages.2.content.1"),
    "a text that is a list": ((user({"type": "text", "text": []}),), "messages.2.content.1"),
    "a result of no call": ((user({**RESULT, "tool_use_id": "t9"}),), "messages.2.content.1"),
    "two results of one call": ((user(RESULT),), "messages.2.content.1"),
    "a result without an id": ((user({"type": "tool_result"}),), "messages.2.content.1"),
    "a result whose id is a number": (
        (user({**RESULT, "tool_use_id": 5}),),
        "messages.2.content.1",
    ),
    "a result that holds a number": (
        ({"role": "user", "content": [{**RESULT, "content": 5}]},),
        "messages.2.content.0",
    ),
    "a call without its result": (
        ({"role": "user", "content": "Stop."}, {"role": "assistant", "content": "Yes."}),
        "messages.1",
    ),
    "a result too late": ((*reply(TEXT), ANSWER), "messages.4.content.0"),
    "a result of the assistant's": (reply(TEXT, RESULT), "messages.3.content.1"),
    "a call of the user's": ((user({**CALL, "id": "t2"}),), "messages.2.content.1"),
    "an id used again": (reply(CALL), "messages.3"),
    "one id twice in a reply": (
        reply({**CALL, "id": "t2"}, {**CALL, "id": "t2"}),
        "messages.3",
    ),
    "a call without an id": (reply({"type": "tool_use", "name": "Bash"}), "messages.3.content.0"),
    "a call without a name": (reply({"type": "tool_use", "id": "t2"}), "messages.3.content.0"),
    "one of two calls without its result": (
        (
            *reply({**CALL, "id": "t2"}, {**CALL, "id": "t3"}),
            {"role": "user", "content": [{**RESULT, "tool_use_id": "t3"}]},
            {"role": "assistant", "content": "On it."},
        ),
        "messages.3",
    ),
    "thinking of the user's": (
        (user({"type": "thinking", "thinking": "hm", "signature": "s"}),),
        "messages.2.content.1",
    ),
    "thinking that nobody signed": (
        reply({"type": "thinking", "thinking": "hm"}, TEXT),
        "messages.3.content.0",
    ),
    "half a surrogate pair": ((user({"type": "text", "text": "\ud800"}),), "messages.2"),
    "half a pair in an id": (reply({**CALL, "id": "t\udfff"}), "messages.3"),
    "a number that is none": (
        reply({**CALL, "id": "t2", "input": {"a": float("nan")}}),
        "messages.3",
    ),
    "an endless number": (reply({**CALL, "id": "t2", "input": {"a": float("inf")}}), "messages.3"),
    "what is no JSON": (reply({**CALL, "id": "t2", "input": {"a": {1, 2}}}), "messages.3"),
    "nesting without end": (reply({**CALL, "id": "t2", "input": nested(9_000)}), "messages.3"),
    "too many messages": (
        (ANSWER, *({"role": "user", "content": "hi"} for _ in range(99_998))),
        "messages",
    ),
}


@pytest.fixture
def planner(tmp_path: Path) -> Iterator[StoredPlanner]:
    """Open the room over a state file."""
    with StoredPlanner(tmp_path) as opened:
        yield opened


def asked(
    folder: Path, messages: tuple[Any, ...], place: int = 0, after: str = ""
) -> ContextRequest:
    """Return a request that sends messages behind a place."""
    project = Project(str(folder), str(folder), "", "default", str(folder), enabled=True)
    return ContextRequest(
        project, Settings(), "s", place=place, hash=after, messages=messages, reader="read"
    )


@pytest.mark.parametrize("case", CASES)
def test_a_malformed_history_is_refused(planner: StoredPlanner, tmp_path: Path, case: str) -> None:
    """The error says where and why; the conversation goes on from where it was."""
    first = planner.plan(asked(tmp_path, TALK))
    before = planner.rows()
    messages, place = CASES[case]
    with pytest.raises(MessagesRefusedError) as refused:
        planner.plan(asked(tmp_path, messages, first.have, first.hash))
    assert str(refused.value.facts["place"]).startswith(place)
    assert len(str(refused.value.facts["rule"])) > 10
    assert planner.rows() == before
    after = planner.plan(asked(tmp_path, (ANSWER,), first.have, first.hash))
    assert (after.status, after.have) == ("ok", 3)


@pytest.mark.parametrize("case", CASES)
def test_the_same_as_a_whole(planner: StoredPlanner, tmp_path: Path, case: str) -> None:
    """Nothing is noted of a conversation that is malformed from its first call on."""
    messages, place = CASES[case]
    with pytest.raises(MessagesRefusedError) as refused:
        planner.plan(asked(tmp_path, (*TALK, *messages)))
    assert str(refused.value.facts["place"]).startswith(place)
    assert not any(planner.rows())


def test_the_first_message_is_the_user_s(planner: StoredPlanner, tmp_path: Path) -> None:
    """A conversation that begins with a reply is refused there."""
    reply = {"role": "assistant", "content": "Hello."}
    with pytest.raises(MessagesRefusedError) as refused:
        planner.plan(asked(tmp_path, (reply,)))
    assert refused.value.facts["place"] == "messages.0.role"


@pytest.mark.parametrize(("place", "after"), [(2, "00" * 32), (3, ""), (2, "no hash"), (10**9, "")])
def test_another_hash_or_place_changes_nothing(
    planner: StoredPlanner, tmp_path: Path, place: int, after: str
) -> None:
    """The client is told to send again, and what memd knows stands."""
    first = planner.plan(asked(tmp_path, TALK))
    before = planner.rows()
    answer = planner.plan(asked(tmp_path, (ANSWER,), place, after))
    assert (answer.status, answer.edits, planner.rows()) == ("resync", (), before)
    assert planner.plan(asked(tmp_path, (ANSWER,), first.have, first.hash)).status == "ok"


@pytest.mark.parametrize("name", ["../../t", "a/b", "", "." * 300, "%2e%2e", "\x00"])
def test_no_id_leaves_the_folder(planner: StoredPlanner, tmp_path: Path, name: str) -> None:
    """Whatever a call is named, its result is stored beside its session, or stays."""
    call = {**CALL, "id": name}
    result = {**RESULT, "tool_use_id": name, "content": "line\n" * 20_000}
    talk = (
        TALK[0],
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    )
    refusals = []
    try:
        decisions = planner.plan(asked(tmp_path, talk)).decisions
    except MessagesRefusedError as error:
        refusals, decisions = [error.facts["place"]], ()
    assert refusals in ([], ["messages.1.content.0.id"])
    for decision in decisions:
        assert Path(decision.path).resolve().is_relative_to(tmp_path)
        assert Path(decision.path).parent.name == "tool-results"
