"""What tests of context services share: a conversation, its plans, and what a client then sends."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import pytest

from tests.net.kit import Home, Project
from tests.net.wire import RpcError

Json = Any  # a decoded JSON value


def user(content: Json, **more: Json) -> dict[str, Json]:
    """Return a message of the user's."""
    return {"role": "user", "content": content, **more}


def reply(*blocks: Json, **more: Json) -> dict[str, Json]:
    """Return a reply of texts and blocks."""
    listed = [{"type": "text", "text": b} if isinstance(b, str) else b for b in blocks]
    return {"role": "assistant", "content": listed, **more}


def call(identity: str, name: str = "Grep", **given: Json) -> dict[str, Json]:
    """Return a call of a tool."""
    return {"type": "tool_use", "id": identity, "name": name, "input": given or {"pattern": "x"}}


def result(identity: str, content: Json, **more: Json) -> dict[str, Json]:
    """Return the result of a call."""
    return {"type": "tool_result", "tool_use_id": identity, "content": content, **more}


def ran(identity: str, name: str, content: Json, **more: Json) -> list[dict[str, Json]]:
    """Return a call and its result, as two messages."""
    return [reply(call(identity, name)), user([result(identity, content, **more)])]


def lines(count: int) -> str:
    """Return so many lines of 20 characters."""
    return "".join(f"line {number:>8} of it\n" for number in range(count))


class Talk:
    """A conversation of a program that plans each request; ``more`` goes with each plan."""

    def __init__(self, project: Project, session: str = "s1", **more: Json) -> None:
        self.project = project
        self.session = session
        self.more = {"reader": "Read", **more}
        self.messages: list[dict[str, Json]] = []
        self.decisions: list[dict[str, Json]] = []
        self.answer: dict[str, Any] = {}  # to the newest plan

    def add(self, *messages: dict[str, Json]) -> "Talk":
        self.messages += messages
        return self

    def plan(self, **more: Json) -> dict[str, Any]:
        """Plan the whole conversation; the decisions that come back are kept."""
        given = {"session_id": self.session, "messages": self.messages, **self.more}
        given |= {"decisions": self.decisions, **more}
        self.answer = self.project.call("context.plan", **given)
        fresh = {_key(decision) for decision in self.answer["decisions"]}
        kept = [decision for decision in self.decisions if _key(decision) not in fresh]
        self.decisions = kept + self.answer["decisions"]
        return self.answer

    def sent(self, **more: Json) -> list[dict[str, Json]]:
        """Plan, and return the messages that go out."""
        return applied(self.messages, self.plan(**more)["edits"])

    def edited(self, **more: Json) -> dict[str, str | None]:
        """Plan, and return what is sent for each result that is not sent whole."""
        return {edit["tool_use_id"]: edit["content"] for edit in self.plan(**more)["edits"]}

    def stored(self, identity: str = "t1") -> str:
        """Return the bytes of a stored result, as text."""
        (path,) = (self.project.folder / self.session / "tool-results").glob(f"{identity}.*")
        return path.read_bytes().decode()


def _key(decision: dict[str, Json]) -> tuple[str, str]:
    return decision["tool_use_id"], decision["content_hash"]


def applied(
    messages: Sequence[dict[str, Json]], edits: Sequence[dict[str, Json]]
) -> list[dict[str, Json]]:
    """Return messages with edits put in; a block that is edited to nothing goes."""
    new: list[dict[str, Json]] = json.loads(json.dumps(messages))
    for edit in edits:
        block = new[edit["message"]]["content"][edit["block"]]
        if edit["content"] is None:
            block["gone"] = True
        else:
            block["content"] = edit["content"]
    for message in new:
        if isinstance(message["content"], list):
            message["content"] = [b for b in message["content"] if "gone" not in b]
    return new


def compacted(messages: Sequence[dict[str, Json]], answer: dict[str, Any]) -> list[dict[str, Json]]:
    """Return the conversation after an answer of context.compact."""
    new = applied(messages, [{**edit, "content": None} for edit in answer["edits"]])
    rest = [message for message in new[answer["keep_from"] :] if message["content"]]
    return [*messages[: answer["keep_to"]], *answer["messages"], *rest]


def check(messages: Sequence[dict[str, Json]]) -> None:
    """Fail if the Messages API would refuse these messages."""
    assert messages[0]["role"] == "user"
    open_calls: set[str] = set()
    for place, message in enumerate(messages):
        assert message["content"], f"message {place} is empty"
        blocks = message["content"] if isinstance(message["content"], list) else []
        results = {b["tool_use_id"] for b in blocks if b["type"] == "tool_result"}
        if message["role"] == "user":
            assert results == open_calls, f"message {place}: calls and results differ"
        open_calls = {b["id"] for b in blocks if b["type"] == "tool_use"}


def text_of(messages: Sequence[dict[str, Json]]) -> str:
    """Return messages as one text of JSON."""
    return json.dumps(messages, ensure_ascii=False)


def hashed(content: str) -> str:
    """Return the hash of a result as a decision has it."""
    return hashlib.sha256(content.encode()).hexdigest()


def refusal(home: Home, method: str, **params: Json) -> RpcError:
    """Return the error that a call ends with."""
    with pytest.raises(RpcError) as caught:
        home.call(method, **params)
    return caught.value
