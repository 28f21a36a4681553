"""Which paths may not be what they were."""

from memd.watch.dirty import Dirty


def test_what_is_noted_is_taken_once() -> None:
    """Paths gather by directory; taking them leaves nothing of that directory."""
    dirty = Dirty()
    dirty.note_all("/a", frozenset({"x", "y"}))
    dirty.note("/b", "z")
    dirty.name("/c")
    dirty.name("/b")
    assert dirty.directories() == frozenset({"/a", "/b", "/c"})
    assert dirty.take("/a") == frozenset({"x", "y"})
    assert (dirty.take("/a"), dirty.take("/c")) == (frozenset(), frozenset())
    assert dirty.directories() == frozenset({"/b"})


def test_everything_stays_everything() -> None:
    """Once all is in doubt, or too much is, no single path makes it less."""
    dirty = Dirty(2)
    dirty.note_all("/a", None)
    dirty.note("/a", "x")
    for path in "xyz":
        dirty.note("/b", path)
    assert (dirty.take("/a"), dirty.take("/b")) == (None, None)
    assert dirty.take("/b") == frozenset()
