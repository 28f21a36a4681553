"""Requests and replies as bytes and values."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.model import errors, wire
from memd.model.port import Ask
from memd.model.wire import HttpAnswer
from tests.model.asks import ask

SCHEMA = {"type": "object", "properties": {"names": {"type": "array"}}}
USER = {"role": "user", "content": "hello"}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


def body(request: Ask, *dropped: str) -> Any:
    """Return a request's body as a server reads it."""
    return json.loads(wire.encode(request, frozenset(dropped)))


def test_the_words_keep_the_blocks_before_them() -> None:
    """Blocks of the last message stay first; after an assistant's message a user's follows."""
    blocks = {"role": "user", "content": [{"type": "text", "text": "a"}]}
    said = body(ask(schema=SCHEMA, messages=(USER, blocks)), "format")["messages"]
    assert (said[0], said[1]["content"][0]) == (USER, blocks["content"][0])
    assistant = {"role": "assistant", "content": "x"}
    said = body(ask(schema=SCHEMA, messages=(assistant,)), "format")["messages"]
    assert (said[0], said[1]["role"]) == (assistant, "user")


def test_half_a_character_is_still_valid_json() -> None:
    """A lone surrogate of a cut transcript goes out escaped."""
    request = ask(messages=({"role": "user", "content": "cut \ud83d"},))
    assert body(request)["messages"][0]["content"] == "cut \ud83d"


@pytest.mark.parametrize(
    "payload",
    [
        None,
        [],
        {},
        {"content": "x", "stop_reason": "end_turn"},
        {"content": [{"type": "text"}], "stop_reason": "end_turn"},
        {"content": [{"type": "tool_use", "id": 1, "name": "x"}], "stop_reason": "end_turn"},
        {"content": ["x"], "stop_reason": "end_turn"},
        {"content": []},
    ],
)
def test_what_is_no_reply_is_refused(payload: Any) -> None:
    """A body without blocks or without a stop reason is no reply."""
    with pytest.raises(errors.ModelReplyError):
        wire.reply(payload)


def test_a_servers_words_are_tamed() -> None:
    """No credential, no control character and no long text of a server reaches a sentence."""
    said = wire.tame(f"bad key sk-secret\x1b[31m\n{'x' * 999}", ("sk-secret", ""))
    assert "sk-secret" not in said
    assert said.isprintable()
    assert len(said) <= 300


def test_a_server_may_ask_for_patience() -> None:
    """Seconds and milliseconds count; a date, nonsense and a time without end do not."""
    assert wire.retry_after({"retry-after": "2"}) == 2.0
    assert wire.retry_after({"retry-after-ms": "1500", "retry-after": "9"}) == 1.5
    for value in ("Wed, 21 Oct 2026 07:28:00 GMT", "-1", "inf", "nan", ""):
        assert wire.retry_after({"retry-after": value}) is None


@given(st.integers(100, 599), JSON)
def test_any_answer_is_a_reply_or_a_failure(status: int, payload: Any) -> None:
    """Whatever a server says, nothing but the declared failures comes out."""
    if wire.failure(HttpAnswer(status, payload)) is None:
        try:
            wire.reply(payload)
        except errors.ModelReplyError:
            return


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (
            HttpAnswer(401, {"error": {"type": "authentication_error", "message": "no"}}),
            "unauthorised",
        ),
        (HttpAnswer(403, {"error": "forbidden"}), "unauthorised"),
        (HttpAnswer(200, {"type": "error", "error": {"type": "permission_error"}}), "unauthorised"),
        (HttpAnswer(429, {"error": {"type": "rate_limit_error"}}), "busy"),
        (HttpAnswer(200, {"error": {"type": "rate_limit_error", "message": "later"}}), "busy"),
        (HttpAnswer(500, "boom"), "unavailable"),
        (HttpAnswer(503, ""), "unavailable"),
        (HttpAnswer(529, {"error": {"type": "overloaded_error"}}), "unavailable"),
        (HttpAnswer(200, {"error": {"type": "overloaded_error"}}), "unavailable"),
        (HttpAnswer(408, {}), "unavailable"),
        (HttpAnswer(400, {"error": {"message": "credit balance is too low"}}), "refused"),
        (HttpAnswer(404, {"detail": [{"loc": ["body"]}]}), "refused"),
        (HttpAnswer(307, ""), "refused"),
        (HttpAnswer(200, {"error": {"code": "bad", "message": "unknown endpoint"}}), "refused"),
        (HttpAnswer(200, "<html>"), "reply_unusable"),
        (HttpAnswer(413, ""), "too_long"),
        (
            HttpAnswer(400, {"error": {"message": "prompt is too long: 9 tokens > 8 maximum"}}),
            "too_long",
        ),
        (
            HttpAnswer(
                400, {"error": {"message": "input length and `max_tokens` exceed context limit"}}
            ),
            "too_long",
        ),
        (
            HttpAnswer(400, {"error": {"type": "exceed_context_size_error", "message": "no"}}),
            "too_long",
        ),
        (
            HttpAnswer(400, {"message": "This model's maximum context length is 4096 tokens."}),
            "too_long",
        ),
        (
            HttpAnswer(400, {"error": "The input (9 tokens) is longer than the model's context"}),
            "too_long",
        ),
        (HttpAnswer(500, {"error": "the request exceeds the available context size"}), "too_long"),
    ],
)
def test_a_failure_is_told_by_status_type_and_words(answer: HttpAnswer, kind: str) -> None:
    """Each way in which servers say no leads to the failure that says what a caller can do."""
    failure = wire.failure(answer)
    assert failure is not None
    assert failure.kind.endswith(kind)


@pytest.mark.parametrize("content", [r'{"a": ["x \ud83d"]}', r'{"a": ["x \udE00"]}'])
def test_half_a_surrogate_pair_becomes_a_question_mark(content: str) -> None:
    """What a model says can be encoded, wherever it is in the reply."""
    assert wire.decode(content) == wire.decode(content.encode()) == {"a": ["x ?"]}
    assert wire.decode(r'["\ud83d\ude00"]') == ["\U0001f600"]
