"""Members of JSON with comments, in and out by their place."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.cli.setup import jsonc

MEMBER = ("servers", "memd")
ITEM = ("hooks", "Stop", "")
VALUE = {"command": "/a/memctl", "args": ["mcp", "é"]}

_plain = st.text("ab {}[],:/*\u00e9", max_size=4)
_keys = _plain | st.sampled_from(["servers", "hooks", "Stop", "http://x"])
_gaps = st.text(" \t", max_size=2) | st.sampled_from(
    ["\n", "\n  ", "\n\t", "\r\n    ", " // said, {\n", "/* { */", " /* a\n b */ "]
)


@st.composite
def _written(draw: st.DrawFn, value: Any, *, comma: bool = True) -> str:
    """Write a value as JSON with gaps, comments and trailing commas."""
    if not isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=draw(st.booleans()))
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    parts = []
    for entry in value.items() if isinstance(value, dict) else value:
        key, inner = entry if isinstance(value, dict) else ("", entry)
        name = f"{json.dumps(key)}{draw(_gaps)}:{draw(_gaps)}" if isinstance(value, dict) else ""
        parts.append(f"{draw(_gaps)}{name}{draw(_written(inner))}{draw(_gaps)}")
    trailing = "," if parts and comma and draw(st.booleans()) else ""
    return f"{opening}{','.join(parts)}{trailing}{draw(_gaps)}{closing}"


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Write an object whose members may be the ones that memd goes into."""
    leaf = (
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | _plain
    )
    inner = st.recursive(
        leaf,
        lambda children: (
            st.lists(children, max_size=3) | st.dictionaries(_keys, children, max_size=3)
        ),
        max_leaves=6,
    )
    value = draw(st.dictionaries(_plain, inner, max_size=3))
    value |= draw(
        st.fixed_dictionaries(
            {},
            optional={
                "servers": st.dictionaries(_plain, inner, max_size=2),
                "hooks": st.dictionaries(
                    st.sampled_from(["Stop", "Start"]), st.lists(inner, max_size=2), max_size=2
                ),
            },
        )
    )
    return f"{draw(_gaps)}{draw(_written(value))}{draw(_gaps)}"


def _in_and_out(text: str, path: jsonc.Path) -> tuple[str, str]:
    into = jsonc.insert(text, path, VALUE)
    place = tuple(0 if step == "" else step for step in path)
    assert (node := jsonc.find(jsonc.parse(into), place))
    assert node.value == VALUE
    stays = [*jsonc.empty_containers(jsonc.parse(text))]
    return into, jsonc.remove(into, place, stays)


@given(documents(), st.sampled_from([MEMBER, ITEM]))
def test_in_and_out_gives_the_same_bytes(text: str, path: jsonc.Path) -> None:
    """What goes in changes nothing else, and taken out again leaves the same text."""
    into, out = _in_and_out(text, path)
    assert out == text
    same = next((at for at in range(len(text)) if text[at] != into[at]), len(text))
    assert into.endswith(text[same:])


@given(documents(), documents())
def test_what_others_write_afterwards_stays(text: str, other: str) -> None:
    """Whatever stands around it by then, only what memd put in is taken out, and it is JSON."""
    into = jsonc.insert(text, MEMBER, VALUE)
    later = jsonc.insert(into, ("servers", "later"), {"of": "others"})
    later = jsonc.insert(later, ("zzz",), json.loads(json.dumps(other)))
    left = jsonc.parse(jsonc.remove(later, MEMBER, ()))
    assert left is not None
    expected = dict(jsonc.parse(later).value)  # type: ignore[union-attr]
    expected["servers"] = {k: v for k, v in expected["servers"].items() if k != "memd"}
    assert left.value == expected


@pytest.mark.parametrize(
    ("text", "into"),
    [
        ("", '{\n  "servers": {\n    "memd": 1\n  }\n}\n'),
        ("{}", '{\n  "servers": {\n    "memd": 1\n  }\n}'),
        ("// mine\n", '// mine\n{\n  "servers": {\n    "memd": 1\n  }\n}\n'),
        ('{"a":1}', '{"servers":{"memd":1},"a":1}'),
        ('{ "a": 1 }', '{ "servers": {"memd": 1}, "a": 1 }'),
        ('{\n\t"a": 1, // one\n}', '{\n\t"servers": {\n\t\t"memd": 1\n\t},\n\t"a": 1, // one\n}'),
        ('{\r\n "servers": {}\r\n}', '{\r\n "servers": {\r\n  "memd": 1\r\n }\r\n}'),
        (
            '{\n  "servers": {\n    "x": {}\n  }\n}',
            '{\n  "servers": {\n    "memd": 1,\n    "x": {}\n  }\n}',
        ),
    ],
)
def test_it_goes_in_as_the_file_is_written(text: str, into: str) -> None:
    """The layout is the file's own, and what is new comes first, so no other line changes."""
    assert jsonc.insert(text, MEMBER, 1) == into


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('{"a": 1, "servers": {"memd": 1}}', '{"a": 1}'),
        ('{"a": 1, "servers": {"memd": 1},}', '{"a": 1,}'),
        ('{"servers": {"x": 1, "memd": 1}}', '{"servers": {"x": 1}}'),
        ('{"servers": {"x": 1 // x\n, "memd": 1}}', '{"servers": {"x": 1 // x\n}}'),
        ('{"servers": {// x\n "memd": 1, "y": 2}}', '{"servers": {// x\n "y": 2}}'),
        ('{"servers": {"memd": 1 /* why */, "y": 2}}', '{"servers": {/* why */ "y": 2}}'),
        ('{\n  "a": 1,/* b */"servers": {"memd": 1}}', '{\n  "a": 1/* b */}'),
        ('{"servers": {"x": 1}}', '{"servers": {"x": 1}}'),
    ],
)
def test_it_is_taken_out_wherever_it_stands(text: str, left: str) -> None:
    """First, last or alone, with comments around it: what is left is JSON, comments too."""
    assert jsonc.remove(text, MEMBER, ()) == left


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '{"a":}',
        '{"a" 1}',
        '{"a":1 "b":2}',
        "{a: 1}",
        '{"a": 01}',
        '{"a": "\n"}',
        "{\"a\": 'x'}",
        "{} {}",
        "{/* }",
        '{"a": NaN}',
        '{"servers": 1}',
        '{"servers": {"memd": 2}}',
        '{"servers": {}, "servers": {}}',
        "[]",
        "[" * 100_000,
    ],
)
def test_what_has_no_place_is_refused(text: str) -> None:
    """Broken JSON, a key twice on the way and another shape are errors that name the place."""
    with pytest.raises(jsonc.JsonShapeError, match="at character"):
        jsonc.insert(text, MEMBER, 1)
