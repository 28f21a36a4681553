"""What the API refuses."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.testing.messages_checks import refused

MARK = {"cache_control": {"type": "ephemeral"}}
CALL = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"cache_control": "a file's"}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "x"}


def ask(*messages: Any, **more: Any) -> dict[str, Any]:
    """Return a request, with one good message unless some are given."""
    said = list(messages) or [{"role": "user", "content": "hi"}]
    return {"model": "m", "max_tokens": 10, "messages": said, **more}


def user(*blocks: Any) -> dict[str, Any]:
    """Return a user's message."""
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Any) -> dict[str, Any]:
    """Return an assistant's message."""
    return {"role": "assistant", "content": list(blocks)}


def text(**more: Any) -> dict[str, Any]:
    """Return a text block."""
    return {"type": "text", "text": "a", **more}


BAD: list[tuple[Any, str]] = [
    (None, "not a JSON object"),
    ([], "not a JSON object"),
    ({}, "model: Field required"),
    (ask(model=7), "model: Input should be"),
    (ask(max_tokens="x"), "max_tokens: Input"),
    (ask(max_tokens=-1), "greater than"),
    (ask(messages=[]), "at least one"),
    (ask(tools=7), "tools: Input"),
    (ask(system=7), "system: Input"),
    (ask(thread={}), "thread: Extra inputs"),
    (ask("x"), "messages.0.role"),
    (ask({"role": "robot", "content": "x"}), "messages.0.role"),
    (ask({"role": "user"}), "messages.0.content"),
    (ask(user()), "non-empty content"),
    (ask(user("x")), "messages.0.content.0.type"),
    (ask(user({"type": "text", "text": ""})), "text content blocks"),
    (ask(user(text()), assistant(CALL), user(text())), "without tool_result"),
    (ask(user(text()), assistant(CALL)), "without tool_result"),
    (ask(user(RESULT)), "unexpected tool_use_id"),
    (ask(user(text()), assistant(CALL, CALL), user(RESULT)), "unique"),
    (ask(user(*[text(**MARK)] * 5)), "maximum of 4"),
    (ask(user(*[text(**MARK)] * 4), **MARK), "maximum of 4"),
    (ask(user(text(cache_control={"type": "ephemeral", "ttl": "2h"}))), "ttl of"),
    (
        ask(
            user(text(cache_control={"type": "ephemeral", "ttl": "1h"})),
            tools=[{"name": "T", **MARK}],
        ),
        "must not come after",
    ),
]


@pytest.mark.parametrize(("body", "words"), BAD)
def test_wrong_requests_get_the_apis_answer(body: Any, words: str) -> None:
    """What the API refuses is refused with status 400 and says where."""
    failure = refused(body)
    assert failure is not None
    assert failure.status == 400
    assert words in failure.message


_JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "text", "role", "content"]), inner, max_size=3)
    ),
    max_leaves=8,
)


def test_a_system_message_that_sets_the_effort_has_no_content() -> None:
    """An empty system message is good where it sets the effort, as Claude Code sends it."""
    effort = {"role": "system", "content": [], "output_config": {"effort": "low"}}
    assert refused(ask(user(text()), effort, assistant(text()), user(text()))) is None
    assert refused(ask(user(text()), {"role": "system", "content": []})) is not None


@given(_JSON, _JSON)
def test_no_message_crashes_the_checks(content: Any, message: Any) -> None:
    """Any JSON in the place of a message or of its content is taken or refused."""
    refused(ask(message))
    refused(ask({"role": "user", "content": content}, tools=content, system=message))
