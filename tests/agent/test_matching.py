"""Searching text line by line."""

import re

from hypothesis import given
from hypothesis import strategies as st

from memd.agent import matching
from memd.agent.matching import Line
from memd.agent.view import Piece


def found(pattern: str, *texts: str, **options: int | bool) -> list[tuple[int, str, bool]]:
    """Search pieces of text."""
    search = matching.search(pattern, **options)  # type: ignore[arg-type]  # numbers and switches
    pieces = [Piece(text, foreign=False) for text in texts]
    lines: list[Line] = list(matching.lines(search, pieces, lambda: None))
    return [(line.number, line.text, line.hit) for line in lines]


def test_hits_are_numbered_across_pieces() -> None:
    """Line numbers go on from piece to piece, also over pieces that hold nothing."""
    assert found("b", "a\nb\n", "c\nd\n", "e\nb") == [(2, "b", True), (6, "b", True)]


def test_lines_around_a_hit_are_shown_once() -> None:
    """Context reaches over pieces, and no line comes twice."""
    shown = found("x", "1\n2\n", "3\n", "x\nx\n4\n5\n", before=2, after=1)
    assert [text for _, text, _ in shown] == ["2", "3", "x", "x", "4"]
    assert [number for number, _, _ in shown] == [2, 3, 4, 5, 6]


def test_a_search_can_be_inverted_bounded_and_blind_to_case() -> None:
    """Options mean what they mean in grep."""
    assert found("a", "a\nb\n", invert=True) == [(2, "b", True)]
    assert found("A", "a\n", ignore_case=True) == [(1, "a", True)]
    assert found("a", "a\na\na\n", most=1, after=1) == [(1, "a", True), (2, "a", False)]
    assert found(r"\Aa\z", "b\na\n") == [(2, "a", True)]
    assert found("a", "") == []


def test_time_is_looked_at() -> None:
    """A long text gives its caller the chance to stop."""
    ticks: list[int] = []
    pieces = [Piece("a\n" * 9000, foreign=False)]
    list(matching.lines(matching.search("a"), pieces, lambda: ticks.append(1)))
    assert len(ticks) == 2


def test_basic_expressions_are_translated() -> None:
    """In grep's basic expressions braces, brackets and signs mean themselves unless escaped."""
    assert matching.basic(r"a\|b(c)\{2\}[(+]x\+y+\.") == r"a|b\(c\){2}[(+]x+y\+\."


@given(st.lists(st.text("ab", max_size=3), max_size=12), st.integers(0, 3), st.integers(1, 4))
def test_hits_are_those_of_a_plain_search(lines: list[str], around: int, size: int) -> None:
    """However text is cut into pieces, the lines shown are those within reach of a hit."""
    texts = ["".join(f"{t}\n" for t in lines[n : n + size]) for n in range(0, len(lines), size)]
    hits = {n for n, text in enumerate(lines, 1) if re.search("ab", text)}
    near = {n for n in range(1, len(lines) + 1) if any(abs(n - hit) <= around for hit in hits)}
    shown = found("ab", *texts, before=around, after=around)
    assert {number for number, _, _ in shown} == near
    assert [number for number, _, _ in shown] == sorted(near)
    assert {number for number, _, hit in shown if hit} == hits
