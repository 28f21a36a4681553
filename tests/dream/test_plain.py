"""Facts of any shape, made harmless."""

from typing import Any

import pytest

from memd.dream.plain import ROWS, few, identity, number, rows, span, texts


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a.md", "`a.md`"),
        (" two\n lines\u2028 here ", "`two lines here`"),
        ("a `tick`", "`a 'tick'`"),
        ("\x1b[31mred\u202e\u200b", "`[31mred`"),
        ("half \ud800", "`half`"),
        ("", ""),
        ("\u200b", ""),
        (None, ""),
        (7, ""),
        (["x"], ""),
    ],
)
def test_a_text_stands_on_one_line_in_a_span(value: Any, shown: str) -> None:
    """Ticks, controls and invisible characters are gone; what is no text is nothing."""
    assert span(value) == shown


def test_a_text_is_cut() -> None:
    """A long text ends with an ellipsis."""
    assert span("word " * 9000, 10) == "`word word…`"


@pytest.mark.parametrize(
    ("value", "found"),
    [("c12", "c12"), ("j5\n", ""), ("c12; x", ""), ("", ""), (None, ""), ("C1", "")],
)
def test_an_id_is_one_or_nothing(value: Any, found: str) -> None:
    """Only what memd itself gives out is taken for an id."""
    assert identity(value) == found


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (5, 5),
        (0.5, 0.5),
        (-1, 0),
        (True, 0),
        ("5", 0),
        (float("nan"), 0),
        (float("inf"), 0),
        (10**400, 0),
        (None, 0),
    ],
)
def test_a_number_is_finite_and_not_negative(value: Any, found: float) -> None:
    """Anything else counts as nothing."""
    assert number(value) == found


def test_lists_hold_what_was_asked_for() -> None:
    """Items of another type, and what is no list, are as if they were not there."""
    assert texts(["a", 5, None, "b"]) == ["a", "b"]
    assert texts("ab") == []
    assert rows([{"a": 1}, [], "x"]) == [{"a": 1}]
    assert rows({"a": 1}) == []


def test_a_list_has_an_end() -> None:
    """Beyond the bound the rest is counted."""
    assert list(few(["x"])) == ["- x"]
    assert list(few(["x"] * (ROWS + 2)))[-2:] == ["- x", "- and 2 more"]
