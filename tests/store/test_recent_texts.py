"""Texts that readers were given a moment ago."""

from memd.core import limits
from memd.store.recent_texts import RecentTexts


def test_what_was_served_is_known_for_a_while() -> None:
    """The newest texts are kept, and one that is read again counts as new."""
    recent = RecentTexts(most=6)
    for key, body in (("a", b"aa"), ("b", b"bb"), ("c", b"cc"), ("a", b"aa"), ("d", b"dd")):
        recent.add(key, body)
    assert [recent.get(key) for key in "abcd"] == [b"aa", None, b"cc", b"dd"]
    recent.add("e", b"eeeeee")
    assert [recent.get(key) for key in "acde"] == [None, None, None, b"eeeeee"]


def test_what_is_too_large_to_be_merged_is_not_kept() -> None:
    """A text above the size of a memory would only push out others."""
    recent = RecentTexts()
    recent.add("a", b"x" * (limits.MEMORY_BYTES + 1))
    recent.add("b", b"x" * limits.MEMORY_BYTES)
    assert (recent.get("a"), len(recent.get("b") or b"")) == (None, limits.MEMORY_BYTES)
