"""Patterns from outside and of our own, matched by google-re2."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.base import regex
from memd.base.errors import Invalid


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
    with pytest.raises(Invalid, match="the pattern is refused: "):
        regex.foreign(pattern)


def test_the_worst_pattern_is_linear() -> None:
    """A pattern that keeps a backtracking engine busy for ages is answered at once."""
    begun = time.process_time()
    assert regex.foreign("(a|a)*(a+)+b$").search("a" * 100_000) is None
    assert time.process_time() - begun < 1


WORDS = ("a", "ab", "aba", "ba", ":", "a.b", "é", "key", "apikey", "keyring")
present = regex.words_in(WORDS)


@given(st.lists(st.sampled_from(WORDS) | st.text(max_size=3), max_size=20).map("".join))
def test_words_are_seen_wherever_they_stand(text: str) -> None:
    """Each word that a text holds is named, also where it overlaps with another."""
    assert present(text) == {word for word in WORDS if word in text}


def test_very_many_words_are_seen() -> None:
    """A text that holds every one of many words, in any order, names them all."""
    words = [f"{number * 7919 % 2000:04}" for number in range(2000)]
    assert regex.words_in(words)(" ".join(words)) == set(words)
