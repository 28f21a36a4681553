"""What the API refuses."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.messages_checks import BETAS, refused
from tests.support.messages_edits import BINDING_BETA

MARK = {"cache_control": {"type": "ephemeral"}}
CALL = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"cache_control": "a file's"}}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "another's"}
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
    (ask(user(text()), assistant(CALL), user(RESULT), assistant(CALL), user(RESULT)), "unique"),
    (ask(user(text()), assistant(CALL), user(RESULT, RESULT)), "single tool_result"),
    (ask(user(text()), assistant(CALL), user(text(), RESULT)), "before other content"),
    (ask(assistant(text()), user(text())), "the first message"),
    (ask(assistant(RESULT)), "messages.0.content.0: a tool_result"),
    (ask(user(THOUGHT)), "messages.0.content.0: a thinking"),
    (ask(user({"type": "text", "text": " \n"})), "text content blocks"),
    (ask(*[user(text())] * 100_001), "at most 100000"),
    (ask(thinking=7), "thinking: Input"),
    (ask(thinking={"block_binding": {}}), "needs the beta"),
    (ask(user(text()), assistant(THOUGHT), user(text()), model="claude-opus-5-5"), "messages.1"),
    (ask(user({"type": "compaction", "content": "x"})), "need the beta"),
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


CLEAR = {"type": "clear_tool_uses_20250919"}
THINK = {"type": "clear_thinking_20251015"}


def managed(*edits: Any) -> dict[str, Any]:
    """Return a request with some edits of its context."""
    return ask(context_management={"edits": list(edits)})


def compacting(*messages: Any, **more: Any) -> dict[str, Any]:
    """Return a request for a compaction."""
    return ask(*messages, compaction={"type": "summarize"}, **more)


BAD_IN_BETA: list[tuple[Any, str]] = [
    (managed(7), "edits.0.type"),
    (managed(CLEAR, CLEAR), "edits.1.type"),
    (managed(CLEAR, THINK), "must be the first"),
    (managed({**CLEAR, "keep": "all"}), "edits.0.keep"),
    (managed({**CLEAR, "trigger": {"type": "input_tokens"}}), "edits.0.trigger"),
    (ask(compaction={}), "compaction.type"),
    (compacting(context_management={"edits": []}), "context_management: not permitted"),
    (compacting(stop_sequences=["x"]), "stop_sequences: not permitted"),
    (compacting(tool_choice={"type": "any"}), "tool_choice: not permitted"),
    (compacting(output_config={"format": {}}), "output_config.format: not permitted"),
    (compacting(user(text()), assistant(CALL)), "calls without results"),
    (ask(thinking={"block_binding": {"prefix_mismatch_behavior": "x"}}), "error or drop_block"),
]


@pytest.mark.parametrize(("body", "words"), BAD_IN_BETA)
def test_wrong_use_of_a_beta_is_refused(body: Any, words: str) -> None:
    """With the betas of its members a request is refused for what is wrong in them, not else."""
    failure = refused(body, betas=[*BETAS.values(), BINDING_BETA])
    assert failure is not None
    assert words in failure.message
    assert refused(managed(THINK, CLEAR), betas=BETAS.values()) is None
    assert refused(managed(THINK, CLEAR)) is not None


def test_messages_of_one_role_are_one_turn() -> None:
    """Calls and results in messages of one role in a row belong to one turn."""
    other = {**CALL, "id": "t2"}
    calls = (assistant(CALL), assistant(other))
    results = (user({**RESULT, "tool_use_id": "t2"}), user(RESULT, text()))
    assert refused(ask(user(text()), *calls, *results)) is None


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
    more = dict.fromkeys(("context_management", "thinking", "compaction"), message)
    refused(ask(**more), betas=BETAS.values())
