"""Patterns from outside and of our own, matched by google-re2."""

import time

import pytest

from memd.core import regex
from memd.core.regex import PatternRefusedError


def test_a_foreign_pattern_matches_line_by_line() -> None:
    """Anchors mean lines, and case is ignored where it is asked for."""
    assert regex.foreign("^b$").search("a\nb\nc") is not None
    assert regex.foreign("B").search("b") is None
    assert regex.foreign("B", ignore_case=True).search("b") is not None


@pytest.mark.parametrize(
    "pattern", ["(", r"(a)\1", "(?=a)", "a{5000}", "((a{900}){900}){900}", "x" * 1001, "[z-a]"]
)
def test_what_cannot_be_matched_is_refused(pattern: str) -> None:
    """Back references, look-around, broken and enormous patterns are refused in words."""
    with pytest.raises(PatternRefusedError, match="the pattern is refused: "):
        regex.foreign(pattern)


def test_the_worst_pattern_is_linear() -> None:
    """A pattern that keeps a backtracking engine busy for ages is answered at once."""
    begun = time.process_time()
    assert regex.foreign("(a|a)*(a+)+b$").search("a" * 100_000) is None
    assert time.process_time() - begun < 1
