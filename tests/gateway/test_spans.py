"""The body of a request and the places of the results in it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.gateway.spans import Place, RequestBody, read

TEXT = st.text(alphabet=st.characters(codec="utf-8"), max_size=20)
VALUE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
NAME = st.sampled_from(["type", "text", "tool_use_id", "ü", ""])
BLOCK = st.dictionaries(NAME | st.just("content"), VALUE, max_size=4)
MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant"])},
    optional={"content": TEXT | st.lists(BLOCK | VALUE, max_size=4)},
)
BODY = st.dictionaries(NAME | st.just("tools"), VALUE, max_size=3).flatmap(
    lambda members: st.lists(MESSAGE | VALUE, max_size=4).map(
        lambda messages: {**members, "messages": messages}
    )
)
MARK = "what is sent instead"
SPACE = st.sampled_from(["", " ", "\n", "\t\r\n "])


@st.composite
def written(draw: st.DrawFn, value: Any) -> str:
    """Return JSON with any white space and any escapes."""

    def pad() -> str:
        return draw(SPACE)

    if isinstance(value, dict):
        members = [
            f"{pad()}{draw(written(name))}{pad()}:{pad()}{draw(written(item))}{pad()}"
            for name, item in value.items()
        ]
        return "{" + (",".join(members) or pad()) + "}"
    if isinstance(value, list):
        return "[" + (",".join(f"{pad()}{draw(written(i))}{pad()}" for i in value) or pad()) + "]"
    return json.dumps(value, ensure_ascii=draw(st.booleans()))


def _sure(data: str | bytes) -> RequestBody:
    body = read(data.encode() if isinstance(data, str) else data)
    assert body is not None
    return body


@given(st.data(), BODY)
def test_what_is_not_exchanged_stays(data: st.DataObject, value: dict[str, Any]) -> None:
    """Only the contents that are exchanged differ, each from its first byte to its last."""
    text = data.draw(SPACE) + data.draw(written(value)) + data.draw(SPACE)
    body = _sure(text)
    assert body.members == json.loads(text)
    assert body.with_changes({}, {}) == text.encode()
    places = _chosen(data, value)
    result = body.with_changes({place: {"content": MARK} for place in places}, {}).decode()
    first, *pieces = result.split(json.dumps(MARK))
    at = len(first)
    assert text[:at] == first
    for (message, block), piece in zip(places, pieces, strict=True):
        old, end = json.JSONDecoder().raw_decode(text, at)
        assert old == value["messages"][message]["content"][block]["content"]
        at = end + len(piece)
        assert text[end:at] == piece
    assert at == len(text)


@given(st.data(), BODY, st.dictionaries(st.just("added"), VALUE))
def test_what_is_exchanged_is_said(
    data: st.DataObject, value: dict[str, Any], added: dict[str, Any]
) -> None:
    """The new body says what the old one said, with the new members."""
    changes: dict[Place, dict[str, Any]] = {
        place: {"content": data.draw(TEXT), "cache_control": {"a": 1}}
        for place in _chosen(data, value)
    }
    result = _sure(data.draw(written(value))).with_changes(changes, added)
    for (message, block), members in changes.items():
        value["messages"][message]["content"][block] |= members
    assert json.loads(result) == {**value, **added}


def _chosen(data: st.DataObject, value: dict[str, Any]) -> list[Place]:
    """Return some of the places that hold a content, in their order."""
    rows = [m.get("content") if isinstance(m, dict) else None for m in value["messages"]]
    places = [
        (n, m)
        for n, row in enumerate(rows)
        for m, block in enumerate(row if isinstance(row, list) else [])
        if isinstance(block, dict) and "content" in block
    ]
    return [place for place in places if data.draw(st.booleans())]


@given(st.data(), BODY)
def test_half_a_body_is_none(data: st.DataObject, value: dict[str, Any]) -> None:
    """A body that ends early, or goes on behind its end, is not read."""
    text = data.draw(written(value))
    assert read(text[: data.draw(st.integers(0, len(text) - 1))].encode()) is None
    assert read(f"{text}{data.draw(st.sampled_from(['x', '{}', ',', chr(0)]))}".encode()) is None


UNSURE = {
    "no JSON": b"hello",
    "nothing": b"",
    "a list": b'[{"messages":[]}]',
    "a byte order mark": b'\xef\xbb\xbf{"messages":[]}',
    "no UTF-8": b'{"model":"\xff","messages":[]}',
    "half a pair in UTF-8": b'{"model":"\xed\xa0\x80"}',
    "overlong UTF-8": b'{"model":"\xc0\xae"}',
    "a name twice": b'{"messages":[],"messages":[]}',
    "a name twice, escaped": b'{"messages":[],"mess\\u0061ges":[]}',
    "a name twice in a message": b'{"messages":[{"role":"user","role":"user"}]}',
    "a name twice in a block": b'{"messages":[{"content":[{"content":"a","content":"b"}]}]}',
    "a name twice further inside": b'{"tools":[{"a":{"b":1,"b":2}}]}',
    "NaN": b'{"a":NaN}',
    "infinity": b'{"a":-Infinity}',
    "a number without an end": b'{"a":1e999}',
    "too many digits": b'{"a":' + b"9" * 5000 + b"}",
    "a control character": b'{"a":"\n"}',
    "a comma too many": b'{"messages":[{"content":[1,]}]}',
    "a comma at the begin": b'{"messages":[,{}]}',
    "no comma": b'{"messages":[{} {}]}',
    "no colon": b'{"messages" []}',
    "a name that is none": b"{1:2}",
    "a value that ends like a name": b'{["a"]:1}',
    "another space": '{"messages":\u00a0[]}'.encode(),
    "single quotes": b"{'messages':[]}",
    "a comment": b'{"messages":[]/**/}',
    "deep": b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "deep in messages": b'{"messages":' + b"[" * 100_000,
    "two bodies": b'{"messages":[]}{"messages":[]}',
}


@pytest.mark.parametrize("name", UNSURE)
def test_in_doubt_nothing_is_read(name: str) -> None:
    """What two parsers could read differently is nothing to the gateway."""
    assert read(UNSURE[name]) is None
