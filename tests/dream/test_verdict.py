"""What a dream wants, and what became of it, as values."""

from memd.dream.verdict import Size, Verdict, Wanted


def test_nothing_wanted_is_nothing_done() -> None:
    """A dream that wants nothing is empty throughout, and so is the verdict on it."""
    assert Wanted() == Wanted(edits=(), merges=(), reasons={}, left=(), listed=())
    assert Verdict() == Verdict(changed=(), merged=(), removed=(), problems=())
    assert Size() == Size(0, 0, 0, 0)
