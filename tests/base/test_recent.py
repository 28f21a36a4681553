"""A dict that forgets: bounded, whatever is set."""

from hypothesis import given
from hypothesis import strategies as st

from memd.base.recent import Recent


@given(st.lists(st.tuples(st.integers(0, 20), st.booleans())))
def test_what_is_remembered_is_bounded(steps: list[tuple[int, bool]]) -> None:
    """There are never more entries than allowed and in use, and the newest is always there."""
    recent: Recent[int, bool] = Recent(5, in_use=bool)
    for key, value in steps:
        recent[key] = value
        assert recent[key] is value
        assert len(recent) <= 5 + sum(recent.values())


def test_the_first_goes_first() -> None:
    """When one more is set the first of those that are not in use goes."""
    recent: Recent[str, bool] = Recent(2, in_use=bool)
    for key, value in (("a", True), ("b", False), ("c", False)):
        recent.setdefault(key, value)
    assert list(recent) == ["a", "c"]
    assert recent.setdefault("c", True) is False
    assert recent.setdefault("a", False) is True
