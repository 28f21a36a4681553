"""Three texts, line by line."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from memd.documents import diff3
from memd.documents.diff3 import SplitText
from memd.documents.frontmatter import BOM

LINES = st.lists(st.sampled_from([b"\n", b"a\n", b"b\n", b"c\n", b"d\n"]), max_size=30)


@given(LINES, LINES)
def test_matches_are_equal_lines_in_order(a: list[bytes], b: list[bytes]) -> None:
    """Every pair names the same line on both sides, and both numbers rise."""
    pairs = diff3.matched_lines(a, b)
    assert all(a[i] == b[j] for i, j in pairs)
    assert all(i < k and j < m for (i, j), (k, m) in pairwise(pairs))


def test_much_that_repeats_itself_costs_little() -> None:
    """Two large texts without any line of their own are not compared pair by pair."""
    a = [b"a\n", b"b\n"] * 20_000
    b = [b"x\n", *a[2:300], b"y\n", *a[1:-1], b"z\n"]
    assert diff3.matched_lines(a, b) == []


def test_how_a_text_ends_is_merged_too() -> None:
    """A BOM and a missing last line end are kept, taken or given by whoever changed them."""
    bare, ended = SplitText.of(BOM + b"a"), SplitText.of(b"a\n")
    assert (bare.lines, bare.had_last_line_end, bare.bom) == ((b"a\n",), False, BOM)
    assert SplitText.of(b"a\r\nb").lines == (b"a\r\n", b"b\r\n")
    assert SplitText.of(b"") == SplitText((), had_last_line_end=True, bom=b"")
    assert diff3.joined_lines(bare, bare, bare, [b"a\n", b"b\r\n"]) == BOM + b"a\nb"
    assert diff3.joined_lines(ended, bare, bare, [b"a\n", b"\n"]) == BOM + b"a\n"
    assert diff3.joined_lines(bare, bare, ended, [b"a\n"]) == b"a\n"
    assert diff3.joined_lines(ended, bare, ended, [b"a\n"]) == BOM + b"a\n"
