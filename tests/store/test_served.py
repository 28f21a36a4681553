"""Texts that readers were given a moment ago."""

from memd.core import limits
from memd.store.served import Served


def test_what_was_served_is_known_for_a_while() -> None:
    """The newest texts are kept, and one that is served again counts as new."""
    served = Served(most=6)
    for key, body in (("a", b"aa"), ("b", b"bb"), ("c", b"cc"), ("a", b"aa"), ("d", b"dd")):
        served.keep(key, body)
    assert [served.get(key) for key in "abcd"] == [b"aa", None, b"cc", b"dd"]
    served.keep("e", b"eeeeee")
    assert [served.get(key) for key in "acde"] == [None, None, None, b"eeeeee"]


def test_what_is_too_large_to_be_merged_is_not_kept() -> None:
    """A text above the size of a memory would only push out others."""
    served = Served()
    served.keep("a", b"x" * (limits.MEMORY_BYTES + 1))
    served.keep("b", b"x" * limits.MEMORY_BYTES)
    assert (served.get("a"), len(served.get("b") or b"")) == (None, limits.MEMORY_BYTES)
