"""Where two versions of one text differ, in whole lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.text.spans import Span, around, differing

_TEXTS = st.lists(st.sampled_from(["a", "b", "ab", ""]), max_size=8).map("\n".join)


@pytest.mark.parametrize(
    ("before", "after", "span"),
    [
        (b"", b"", Span(0, 0, 0)),
        (b"a\nb\n", b"a\nb\n", Span(4, 4, 4)),
        (b"a\n", b"a\nb\n", Span(2, 2, 4)),
        (b"a\nb\nc\n", b"a\nc\n", Span(2, 4, 2)),
        (b"a\nXb\n", b"a\nb\n", Span(2, 5, 4)),
        (b"ab\ncd\nef\n", b"ab\ncx\nef\n", Span(3, 6, 6)),
        (b"a\nb", b"a\nxb", Span(2, 3, 4)),
    ],
)
def test_what_differs_is_between_what_both_have(before: bytes, after: bytes, span: Span) -> None:
    """Lines that both begin and end with are left out; a line that differs is in it as a whole."""
    assert differing(before, after) == span


@given(_TEXTS, _TEXTS)
def test_the_rest_of_both_is_the_same_whole_lines(one: str, other: str) -> None:
    """Outside the span both texts say the same, and it begins and ends where lines do."""
    before, after = one.encode(), other.encode()
    span = differing(before, after)
    assert before[: span.start] == after[: span.start]
    assert before[span.before :] == after[span.after :]
    for text, end in ((before, span.before), (after, span.after)):
        assert span.start <= end <= len(text)
        for at in (span.start, end):
            assert at in {0, len(text)} or text[at - 1 : at] == b"\n"


def test_the_surroundings_are_whole_lines() -> None:
    """Lines around a place come with it, as far as asked for and to their ends."""
    text = b"one\ntwo\nthree\nfour\n"
    assert around(text, 7, 14, 0) == b"two\nthree\nfour\n"
    assert around(text, 8, 9, 0) == b"three\n"
    assert around(text, 8, 9, 1) == b"two\nthree\n"
    assert around(text, 8, 9, 100) == text
    assert around(b"one", 0, 1, 1) == b"one"
