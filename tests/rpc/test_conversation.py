"""JSON-RPC 2.0 as values."""

import json
from typing import Any

import pytest

from memd.rpc.conversation import Conversation, Event, RefusedRequest, RpcRequest, Token, Work

CALL = {"jsonrpc": "2.0", "id": 1, "method": "m"}


def received(*messages: Any) -> list[Event]:
    """Return what a fresh conversation makes of these messages, bytes as they are."""
    conversation = Conversation()
    return [event for message in messages for event in conversation.receive(as_bytes(message))]


def as_bytes(message: Any) -> bytes:
    """Return a frame with this message."""
    return message if isinstance(message, bytes) else json.dumps(message).encode()


def refused(*messages: Any) -> list[tuple[Any, int]]:
    """Return the ids and codes of the refusals that these messages earn."""
    return [
        (item.id, item.error.code)
        for event in received(*messages)
        if isinstance(event, Work)
        for item in event.items
        if isinstance(item, RefusedRequest)
    ]


@pytest.mark.parametrize("request_id", [True, False, [], {}, [1]])
def test_other_ids_are_refused_without_one(request_id: Any) -> None:
    """An id that is none of these is answered under null."""
    assert refused({**CALL, "id": request_id}) == [(None, -32600)]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"jsonrpc": "1.0"}, -32600),
        ({"jsonrpc": 2.0}, -32600),
        ({"jsonrpc": None}, -32600),
        ({"method": 1}, -32600),
        ({"method": None}, -32600),
        ({"params": "x"}, -32600),
        ({"params": 0}, -32600),
        ({"params": True}, -32600),
        ({"params": [1]}, -32602),
        ({"params": {"workDoneToken": 1.5}}, -32602),
        ({"params": {"_meta": {"progressToken": True}}}, -32602),
    ],
)
def test_a_bad_envelope_is_refused_under_its_id(change: dict[str, Any], code: int) -> None:
    """Where the id was understood the answer carries it."""
    assert refused({**CALL, **change}) == [(1, code)]


@pytest.mark.parametrize("message", [b"{", b"\xff", 1, "x", None, {}, {"jsonrpc": "2.0", "id": 1}])
def test_what_is_no_request_is_answered(message: Any) -> None:
    """Each gets one error and the conversation goes on."""
    assert len(refused(message)) == 1
    assert len(received(message, CALL)) == 2


def test_a_refusal_does_not_hold_the_frame() -> None:
    """Through a traceback the frame would stay until the collector finds the cycle."""
    (work,) = received(b'{"a":' + b"x" * 100)
    assert isinstance(work, Work)
    (item,) = work.items
    assert isinstance(item, RefusedRequest)
    error = item.error
    assert (error.__traceback__, error.__cause__, error.__context__) == (None, None, None)


def test_answers_of_a_client_are_dropped() -> None:
    """The daemon asks nothing, so answers mean nothing."""
    assert received({"jsonrpc": "2.0", "id": 1, "result": 1}) == []
    assert received([{"jsonrpc": "2.0", "id": 1, "error": {}}]) == []


def test_batches_have_a_size() -> None:
    """An empty batch and one of more than a hundred get a single error, no array."""
    (empty,) = received([])
    assert isinstance(empty, Work)
    assert not empty.batch
    assert refused([]) == [(None, -32600)]
    assert refused([CALL] * 101) == [(None, 1007)]
    assert refused([1] * 20_000) == [(None, 1007)]
    assert refused(b" \r\n[" + b"{}," * 200 + b"{}]", b"[" + b"{}," * 200) == [
        (None, 1007),
        (None, -32700),
    ]
    assert refused([[CALL] * 101]) == [(None, -32600)]
    assert refused([{**CALL, "id": number} for number in range(100)]) == []


def test_progress_is_told_in_the_dialect_of_its_token() -> None:
    """LSP gets $/progress with a value, MCP its own notification."""
    assert Token("t", mcp=False).notification({"done": 1}) == (
        "$/progress",
        {"token": "t", "value": {"done": 1}},
    )
    assert Token(5, mcp=True).notification({"progress": 1}) == (
        "notifications/progress",
        {"progressToken": 5, "progress": 1},
    )


def test_an_id_is_taken_until_its_request_is_finished() -> None:
    """The same id twice in flight is an error, afterwards it is free; null may repeat."""
    conversation = Conversation()
    (first,) = conversation.receive(as_bytes(CALL))
    assert isinstance(first, Work)
    (second,) = conversation.receive(as_bytes({**CALL, "id": 1.0}))
    assert isinstance(second, Work)
    assert isinstance(second.items[0], RefusedRequest)
    conversation.finish(second)
    conversation.finish(first)
    assert conversation.in_flight == 0
    assert isinstance(received(CALL)[0].items[0], RpcRequest)  # type: ignore[union-attr]
    null = {**CALL, "id": None}
    assert refused(null, null) == []


def test_thirty_two_run_at_once() -> None:
    """The 33rd is told that the limit is 32, its id is free again; a late notification is lost."""
    conversation = Conversation()
    works = [conversation.receive(as_bytes({**CALL, "id": number}))[0] for number in range(32)]
    overdue = [CALL | {"id": "late"}, {"jsonrpc": "2.0", "method": "m"}, 7]
    (refusal,) = conversation.receive(as_bytes(overdue))
    assert isinstance(refusal, Work)
    errors = [item.error for item in refusal.items if isinstance(item, RefusedRequest)]
    assert [(error.code, error.facts.get("limit")) for error in errors] == [
        (1004, 32),
        (-32600, None),
    ]
    assert conversation.receive(as_bytes({"jsonrpc": "2.0", "method": "m"})) == []
    assert isinstance(works[0], Work)
    conversation.finish(works[0])
    (again,) = conversation.receive(as_bytes(overdue[0]))
    assert isinstance(again, Work)
    assert isinstance(again.items[0], RpcRequest)
