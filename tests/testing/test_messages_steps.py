"""The values of a script."""

import json

from memd.testing.messages_steps import error_with_200, html, refusal, structured, text, tools


def test_replies_stop_for_their_reason() -> None:
    """Each kind of reply carries the stop reason of the API."""
    replies = (text("a"), text("a", stop="max_tokens"), tools(("Read", {})), refusal())
    assert [reply.stop for reply in replies] == ["end_turn", "max_tokens", "tool_use", "refusal"]
    assert refusal(said="half").content == ({"type": "text", "text": "half"},)


def test_a_structured_reply_is_json() -> None:
    """The text of a structured reply is the value."""
    (block,) = structured({"a": ["字"]}).content
    assert json.loads(block["text"]) == {"a": ["字"]}


def test_lies_have_their_type() -> None:
    """A page is HTML; an error under 200 is JSON."""
    assert (html().status, html().content_type) == (502, "text/html")
    assert (error_with_200().status, json.loads(error_with_200().body)["type"]) == (200, "error")
