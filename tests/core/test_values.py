"""The nouns that several rooms share."""

import gc

from memd.core.values import Header


def test_a_header_is_small_and_tells_versions_apart() -> None:
    """Its fingerprint is made of what it has, and the collector never looks at it."""
    header = Header("a.md", "a", "about a", None, 5, 7, damaged=False, inode=3)
    assert header.fingerprint == (3, 5, 7)
    assert not gc.is_tracked(header)
