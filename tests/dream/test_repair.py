"""Frontmatter that only memd reads."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.documents import document
from memd.dream.repair import mended, trouble


def _file(*lines: str, body: str = "Body: *stays*.\n") -> bytes:
    return "\n".join(["---", *lines, "---", "", body]).encode()


@pytest.mark.parametrize(
    ("broken", "whole"),
    [
        ("description: note: this", 'description: "note: this"'),
        ("description: @ana knows", 'description: "@ana knows"'),
        ("description: *this* matters", 'description: "*this* matters"'),
        ("description: 'half of it", 'description: "\'half of it"'),
        ('description: "one" and "two" more', 'description: \'"one" and "two" more\''),
        ("description: [WIP] it", 'description: "[WIP] it"'),
        ("description: `make test` runs all", 'description: "`make test` runs all"'),
        ("description: !important", 'description: "!important"'),
    ],
)
def test_a_line_that_yaml_refuses_is_quoted(broken: str, whole: str) -> None:
    """The one line that a strict reader refuses is written anew, and nothing else changes."""
    rest = ("# a note", "name: odd   # kept?", "odd:   1", "metadata:", "  type: project")
    before = _file("name: x", broken, *rest[2:])
    after = mended(before)
    assert after == before.replace(broken.encode(), whole.encode())
    assert trouble(before)
    assert trouble(after) == ""
    assert document.parse(after, "") == document.parse(before, "")


def test_tabs_become_spaces() -> None:
    """A tab before a nested key is what YAML forbids; line ends and the order stay."""
    before = b"---\r\nname: x\r\nmetadata:\r\n\ttype: user\r\n\tnote:\r\n---\r\n\r\n\tBody\r\n"
    assert mended(before) == before.replace(b"\ttype", b"  type").replace(b"\tnote", b"  note")


@pytest.mark.parametrize(
    "content",
    [
        b"no frontmatter",
        b"---\nname: x\nnever closed\n",
        _file("name: x", "description: fine", "type: user"),
        _file("name: x", "a line that is none", "description: a: b"),
        # A strict reader takes the comment away, and so would read another type than memd does.
        _file("name: x", "description: a: b", "type: user # really"),
        _file("name: x", "description: |", "  a: b: c"),
        _file("name: x", "description: a: b").replace(b"a: b", b"a\xff: b: c"),
    ],
)
def test_what_cannot_be_mended_stays(content: bytes) -> None:
    """What is whole, what does not parse at all and what would be read differently stays."""
    assert mended(content) == content


_VALUES = st.text("ab:# '\"[]{}*&!@`-\t%|>,", max_size=8)
_KEYS = st.sampled_from(["name", "description", "  type", "\tnote", "metadata", "# c", "odd"])
_HEADS = st.lists(st.tuples(_KEYS, _VALUES).map(": ".join), max_size=5)


@settings(max_examples=150, deadline=None)
@given(_HEADS)
def test_mending_never_changes_what_is_read(lines: list[str]) -> None:
    """Whatever the head, memd reads the same afterwards, the body stays and once is enough."""
    before = _file(*lines)
    after = mended(before)
    assert document.parse(after, "") == document.parse(before, "")
    assert after.endswith(b"\n---\n\nBody: *stays*.\n")
    assert mended(after) == after
