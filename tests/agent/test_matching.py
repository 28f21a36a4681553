"""Searching text line by line."""

import re

from hypothesis import given
from hypothesis import strategies as st

from memd.agent import matching
from memd.agent.matching import MatchedLine
from memd.agent.view import TextPiece


def results(pattern: str, *texts: str, **options: int | bool) -> list[tuple[int, str, bool]]:
    """Search pieces of text."""
    search = matching.search(pattern, **options)  # type: ignore[arg-type]  # numbers and switches
    pieces = [TextPiece(text, foreign=False) for text in texts]
    lines: list[MatchedLine] = list(matching.lines(search, pieces, lambda: None))
    return [(line.number, line.text, line.hit) for line in lines]


@given(st.lists(st.text("ab", max_size=3), max_size=12), st.integers(0, 3), st.integers(1, 4))
def test_hits_are_those_of_a_plain_search(lines: list[str], around: int, size: int) -> None:
    """However text is cut into pieces, the lines shown are those within reach of a hit."""
    texts = ["".join(f"{t}\n" for t in lines[n : n + size]) for n in range(0, len(lines), size)]
    hits = {n for n, text in enumerate(lines, 1) if re.search("ab", text)}
    near = {n for n in range(1, len(lines) + 1) if any(abs(n - hit) <= around for hit in hits)}
    shown = results("ab", *texts, before=around, after=around)
    assert {number for number, _, _ in shown} == near
    assert [number for number, _, _ in shown] == sorted(near)
    assert {number for number, _, hit in shown if hit} == hits


def test_time_is_looked_at() -> None:
    """A long text gives its caller the chance to stop."""
    ticks: list[int] = []
    pieces = [TextPiece("a\n" * 9000, foreign=False)]
    list(matching.lines(matching.search("a"), pieces, lambda: ticks.append(1)))
    assert len(ticks) == 2
