"""Marks that readers of a catalogue hold."""

from hypothesis import given
from hypothesis import strategies as st

from memd.store.marks import Marks


def test_a_mark_tells_what_came_after_it() -> None:
    """Each mark gives exactly the paths that changed since it was given."""
    marks = Marks()
    first = marks.now
    marks.change(["a", "b"])
    second = marks.now
    marks.change(["a", "c"])
    assert marks.since(first) == {"a", "b", "c"}
    assert marks.since(second) == {"a", "c"}
    assert marks.since(marks.now) == set()
    marks.change([])
    assert marks.since(marks.now) == set()


def test_a_foreign_mark_is_not_known() -> None:
    """Neither no mark, nor one of an earlier or later log, is taken for one of this log."""
    older, marks = Marks(), Marks()
    older.change(["x"])
    newer = Marks()
    for foreign in (-1, 0, older.now, older._first, newer.now):
        assert marks.since(foreign) is None


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=4), max_size=20))
def test_a_full_log_forgets_and_says_so(rounds: list[list[str]]) -> None:
    """However short the log, it gives every path that changed since a mark, or says no."""
    marks = Marks(3)
    given_out: list[tuple[int, set[str]]] = []
    for paths in rounds:
        given_out.append((marks.now, set()))
        marks.change(paths)
        for _, missed in given_out:
            missed.update(paths)
    for mark, missed in given_out:
        assert marks.since(mark) in (missed, None)
    assert marks.since(marks.now) == set()


def test_more_changes_than_a_log_holds_are_a_new_beginning() -> None:
    """After too much at once no earlier mark is known, and the next one is."""
    marks = Marks(3)
    before = marks.now
    marks.change(list("abcd"))
    assert (marks.since(before), marks.since(marks.now)) == (None, set())
    later = marks.now
    marks.change(["a"])
    assert marks.since(later) == {"a"}
