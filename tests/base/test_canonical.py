"""What two programs must agree on to speak of the same conversation."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.base import canonical

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=12,
)


def test_the_order_of_members_and_marks_of_the_cache_do_not_count() -> None:
    """A message is the same with its members in another order, with marks, an id and usage."""
    plain = {"role": "user", "content": [{"type": "text", "text": "é"}]}
    marked = {
        "id": "msg_1",
        "usage": {"input_tokens": 3},
        "content": [{"text": "é", "cache_control": {"type": "ephemeral"}, "type": "text"}],
        "role": "user",
    }
    assert canonical.canonical(plain) == canonical.canonical(marked)
    assert canonical.canonical(plain) == (
        '{"content":[{"text":"é","type":"text"}],"role":"user"}'.encode()
    )


def test_marks_inside_a_result_do_not_count_and_those_in_an_input_do() -> None:
    """The blocks of a result are without marks; a tool's input is the tool's own."""
    inner = {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": [inner]}
    assert b"cache_control" not in canonical.canonical({"role": "user", "content": [result]})
    call = {"type": "tool_use", "id": "t", "name": "x", "input": {"cache_control": 1}}
    assert b"cache_control" in canonical.canonical({"role": "assistant", "content": [call]})


@given(JSON)
def test_what_json_carries_keeps_its_form(value: object) -> None:
    """A message that went over a wire as JSON has the form that it had before."""
    message = {"role": "user", "content": [{"type": "tool_use", "input": value}]}
    again = json.loads(json.dumps(message))
    assert canonical.canonical(again) == canonical.canonical(message)


@pytest.mark.parametrize("value", [float("nan"), "\ud800", {"a": "\udfff"}])
def test_what_is_no_text_is_refused(value: object) -> None:
    """NaN and half a surrogate pair have no form, and no hash."""
    with pytest.raises(ValueError, match=r"."):
        canonical.canonical({"role": "user", "content": value})
