"""Merging frontmatter."""

import pytest

from memd.documents.memory_merge import _merge_head as merge_head

BASE = b"""name: a
description: old
metadata:
  node_type: memory
  type: user
  originSessionId: s1
  modified: 2026-01-01T00:00:00.000Z
"""


def test_stamps_are_never_a_conflict() -> None:
    """The later stamp wins with its session, whichever side has it."""
    ours = BASE.replace(b"s1", b"s2").replace(b"2026-01-01", b"2026-01-03")
    theirs = BASE.replace(b"s1", b"s3").replace(b"2026-01-01", b'"2026-01-02')
    assert merge_head(BASE, ours, theirs) == ours
    assert merge_head(BASE, theirs, ours) == ours


def test_a_stamp_that_one_side_dropped_stays() -> None:
    """Who writes a memory without the stamps takes away nobody's."""
    bare = b"name: a\ndescription: new\nmetadata:\n  node_type: memory\n  type: user\n"
    later = BASE.replace(b"2026-01-01", b"2026-01-03")
    assert merge_head(BASE, bare, later) == later.replace(b"old", b"new")
    other = BASE.replace(b"old", b"other")
    assert merge_head(bare, other, later.replace(b"old", b"new")) == later.replace(b"old", b"other")


def test_stamps_stand_where_they_stood() -> None:
    """Keys behind the stamps stay behind them, and a changed neighbour does not lead them off."""
    more = BASE + b"  extra: 1\nend: 2\n"
    ours = more.replace(b"2026-01-01", b"2026-01-03")
    theirs = more.replace(b"end: 2", b"end: 3")
    assert merge_head(more, ours, theirs) == ours.replace(b"end: 2", b"end: 3")
    typed = BASE.replace(b"type: user", b"type: project")
    newer = BASE.replace(b"2026-01-01", b"2026-01-03").replace(b"  originSessionId: s1\n", b"")
    merged = merge_head(BASE, typed, newer)
    assert merged is not None
    assert sorted(merged.splitlines()) == sorted(
        typed.replace(b"2026-01-01", b"2026-01-03").splitlines()
    )


def test_flat_stamps_stay_flat() -> None:
    """In a flat head, and in one of nothing but stamps, a stamp needs no table."""
    base = b"name: a\nmodified: 1\n"
    assert merge_head(base, b"name: b\nmodified: 3\n", b"modified: 2\nname: a\n") == (
        b"name: b\nmodified: 3\n"
    )
    assert merge_head(base, b"name: b\nmodified: 1\n", b"name: a\nmodified: 2\n") == (
        b"name: b\nmodified: 2\n"
    )
    assert merge_head(b"  modified: 1\n", b"  modified: 2\n", b"  modified: 3\n") == (
        b"  modified: 3\n"
    )


def test_two_keys_are_two_things() -> None:
    """Name and description stand side by side and may be changed by two writers."""
    ours, theirs = BASE.replace(b": a", b": b"), BASE.replace(b"old", b"new")
    assert merge_head(BASE, ours, theirs) == ours.replace(b"old", b"new")
    assert merge_head(BASE, ours, ours) == ours


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (BASE.replace(b"old", b"one"), BASE.replace(b"old", b"two")),
        (b"x: 1\n" + BASE, b"x: 2\n" + BASE),
        (b"x: 1\n" + BASE, b"y: 2\n" + BASE),
    ],
)
def test_one_key_has_one_value(ours: bytes, theirs: bytes) -> None:
    """Two values for one key, or new keys at one place, are a conflict."""
    assert merge_head(BASE, ours, theirs) is None
