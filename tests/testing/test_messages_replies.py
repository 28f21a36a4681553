"""From steps to bytes."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.testing.messages_replies import (
    events,
    failure_body,
    finished,
    message,
    output_tokens,
)
from memd.testing.messages_steps import Failure, Reply, refusal, text, tools


def parsed(reply: Reply) -> list[dict[str, Any]]:
    """Return the events of a reply."""
    found = b"".join(events(message(reply, 1, "m", {"input_tokens": 3}))).decode()
    pairs = [part.split("\ndata: ") for part in found.split("\n\n") if part]
    values: list[dict[str, Any]] = [json.loads(data) for _, data in pairs]
    assert [name.removeprefix("event: ") for name, _ in pairs] == [v["type"] for v in values]
    return values


def test_events_come_in_the_order_of_the_api() -> None:
    """Start, ping, each block with its deltas, the stop reason, the end."""
    found = parsed(Reply(({"type": "text", "text": "hi"},)))
    assert [event["type"] for event in found] == [
        "message_start",
        "ping",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert found[0]["message"]["content"] == []
    assert found[0]["message"]["stop_reason"] is None
    assert found[-2]["delta"]["stop_reason"] == "end_turn"
    assert found[-2]["usage"] == {"input_tokens": 3, "output_tokens": 7}


@given(st.text(), st.dictionaries(st.text(), st.text()))
def test_deltas_put_together_are_the_block(words: str, given_: dict[str, str]) -> None:
    """Whatever the text and the input are, the pieces make them again."""
    found = parsed(Reply(({"type": "text", "text": words}, *tools(("T", given_)).content)))
    deltas = [event["delta"] for event in found if event["type"] == "content_block_delta"]
    assert "".join(d.get("text", "") for d in deltas) == words
    assert json.loads("".join(d.get("partial_json", "") for d in deltas) or "{}") == given_


def test_a_reply_ends_where_max_tokens_end() -> None:
    """Text is cut and later blocks are left out; a call is whole or not there."""
    cut = finished(Reply(({"type": "text", "text": "é" * 400}, *tools(("T", {})).content)), 1, 50)
    assert (cut.stop, cut.content[0]["text"]) == ("max_tokens", "é" * 100)
    assert len(cut.content) == 1
    assert finished(tools(("T", {"long": "x" * 900})), 1, 50).content == ()
    assert finished(refusal("bio"), 1, 50).details == refusal("bio").details


def test_calls_get_names_of_their_own() -> None:
    """An id that is given stays; others are new for each request."""
    own = {"type": "tool_use", "id": "mine", "name": "T", "input": {}}
    reply = Reply((own, *tools(("T", {})).content), "tool_use")
    names = [block["id"] for n in (1, 2) for block in finished(reply, n, 500).content]
    assert (names[0], names[2], len(set(names))) == ("mine", "mine", 3)


def test_usage_may_be_said() -> None:
    """A script may replace what is counted, and no reply counts as nothing."""
    reply = Reply((), usage={"output_tokens": 9})
    assert message(reply, 1, "m", {})["usage"] == {"output_tokens": 9}
    assert output_tokens(Reply(())) == 1
    assert output_tokens(text("four bytes")) > 1


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (Failure(429), "rate_limit_error"),
        (Failure(599), "api_error"),
        (Failure(400, kind="own"), "own"),
    ],
)
def test_errors_have_the_apis_shape(failure: Failure, kind: str) -> None:
    """The kind follows from the status unless it is said."""
    body = json.loads(failure_body(failure, "req_1"))
    assert (body["type"], body["error"]["type"], body["request_id"]) == ("error", kind, "req_1")
