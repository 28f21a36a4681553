"""Why a memory was brought or left out."""

from hypothesis import given
from hypothesis import strategies as st

from memd.recall import explain
from memd.recall.explain import Row

ROWS = st.builds(
    Row,
    path=st.sampled_from("abcdefgh"),
    name=st.just("n"),
    score=st.floats(0, 10),
    kept=st.booleans(),
)


def test_what_is_kept_comes_first_and_in_its_own_order() -> None:
    """A model may order as it likes; the rest follows by score, equal scores by path."""
    rows = (
        Row("low.md", "low", 1.0, kept=True),
        Row("b.md", "b", 2.0, reason=explain.NO_ROOM),
        Row("a.md", "a", 2.0, reason=explain.NO_ROOM),
        Row("high.md", "high", 9.0, kept=True),
        Row("far.md", "far", 3.0, reason=explain.ALREADY_READ),
    )
    shown = [row.path for row in explain.ordered(rows)]
    assert shown == ["low.md", "high.md", "far.md", "a.md", "b.md"]


@given(st.lists(ROWS), st.integers(0, 9))
def test_no_row_is_made_up_and_the_bound_holds(rows: list[Row], most: int) -> None:
    """The rows shown are rows that were given, at most as many as asked for, kept ones first."""
    shown = explain.ordered(rows, most)
    assert len(shown) == min(most, len(rows))
    assert all(row in rows for row in shown)
    assert sorted(shown, key=lambda row: not row.kept) == list(shown)
