"""From steps to bytes."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support.messages_replies import (
    events,
    message,
)
from tests.support.messages_steps import ScriptedReply, tools


def parsed(reply: ScriptedReply) -> list[dict[str, Any]]:
    """Return the events of a reply."""
    results = b"".join(events(message(reply, 1, "m", {"input_tokens": 3}))).decode()
    pairs = [part.split("\ndata: ") for part in results.split("\n\n") if part]
    values: list[dict[str, Any]] = [json.loads(data) for _, data in pairs]
    assert [name.removeprefix("event: ") for name, _ in pairs] == [v["type"] for v in values]
    return values


@given(st.text(), st.dictionaries(st.text(), st.text()))
def test_deltas_put_together_are_the_block(words: str, given_: dict[str, str]) -> None:
    """Whatever the text and the input are, the pieces make them again."""
    results = parsed(
        ScriptedReply(({"type": "text", "text": words}, *tools(("T", given_)).content))
    )
    deltas = [event["delta"] for event in results if event["type"] == "content_block_delta"]
    assert "".join(d.get("text", "") for d in deltas) == words
    assert json.loads("".join(d.get("partial_json", "") for d in deltas) or "{}") == given_
