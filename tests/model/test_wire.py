"""Requests and replies as bytes and values."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.model import errors, wire
from memd.model.wire import HttpAnswer

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


def test_a_servers_words_are_tamed() -> None:
    """No credential, no control character and no long text of a server reaches a sentence."""
    said = wire.tame(f"bad key sk-secret\x1b[31m\n{'x' * 999}", ("sk-secret", ""))
    assert "sk-secret" not in said
    assert said.isprintable()
    assert len(said) <= 300


@given(st.integers(100, 599), JSON)
def test_any_answer_is_a_reply_or_a_failure(status: int, payload: Any) -> None:
    """Whatever a server says, nothing but the declared failures comes out."""
    if wire.failure(HttpAnswer(status, payload)) is None:
        try:
            wire.reply(payload)
        except errors.ModelReplyError:
            return


@pytest.mark.parametrize("content", [r'{"a": ["x \ud83d"]}', r'{"a": ["x \udE00"]}'])
def test_half_a_surrogate_pair_becomes_a_question_mark(content: str) -> None:
    """What a model says can be encoded, wherever it is in the reply."""
    assert wire.decode(content) == wire.decode(content.encode()) == {"a": ["x ?"]}
    assert wire.decode(r'["\ud83d\ude00"]') == ["\U0001f600"]
