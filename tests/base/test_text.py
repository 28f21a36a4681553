"""Text as bytes and characters."""

from hypothesis import given
from hypothesis import strategies as st

from memd.base import text

DAY = 24 * 3600


@given(st.text(), st.integers(0, 40))
def test_cutting_stays_within_the_bytes_and_on_characters(value: str, limit: int) -> None:
    """A cut text is a start of the text and fits the bytes."""
    cut = text.cut_bytes(value, limit)
    assert value.startswith(cut) or "?" in cut
    assert len(cut.encode(errors="replace")) <= limit or cut == value


def test_from_two_days_on_a_memory_says_that_it_is_old() -> None:
    """The staleness notice begins with the second day and names the age."""
    now = 1_000_000_000.0
    assert text.stale_notice(int((now - DAY) * 10**9), now) is None
    notice = text.stale_notice(int((now - 2 * DAY) * 10**9), now)
    assert notice is not None
    assert "2 days old" in notice
