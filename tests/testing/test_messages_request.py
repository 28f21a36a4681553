"""A request as it was received."""

import json
from collections.abc import Mapping

from memd.testing.messages_request import Request


def request(body: bytes = b"{}", headers: Mapping[str, str] | None = None) -> Request:
    """Return a request with a body."""
    return Request(1, "POST", "/v1/messages?beta=true", headers or {}, body)


def test_bodies_are_parsed_where_they_can_be() -> None:
    """JSON is parsed once, anything else is nothing, and the bytes stay."""
    assert request(b'{"a": 1}').members == {"a": 1}
    assert [request(b).json for b in (b"{", b"\xff", b"[" * 100_000)] == [None, None, None]
    assert request(b"[]").members == {}
    assert request().route == "/v1/messages"


def test_the_key_is_found_in_either_header() -> None:
    """A bearer token and a key header are the same credential."""
    assert request(headers={"authorization": "Bearer k"}).key == "k"
    assert request(headers={"x-api-key": "k"}).key == "k"
    assert request().key == ""


def test_the_last_text_is_all_text_of_the_last_message() -> None:
    """Blocks and tool results within them are joined."""
    result = {"type": "tool_result", "content": [{"type": "text", "text": "two"}, 7]}
    content = [{"type": "text", "text": "one"}, result, "x"]
    body = {"messages": [{"role": "user", "content": "no"}, {"role": "user", "content": content}]}
    assert request(json.dumps(body).encode()).last_text == "one\ntwo"
    assert request(b'{"messages": [{"content": "s"}]}').last_text == "s"
    assert request().last_text == ""


def test_the_first_ending_stands() -> None:
    """How a request ended is told once, and waiting for it ends then."""
    asked = request()
    assert asked.wait(0) == ""
    asked.end("cut")
    asked.end("answered")
    assert asked.wait() == "cut"
