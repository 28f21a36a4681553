"""What was, and the way back to it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.core.names import NameRefusedError
from memd.core.text import sha256
from memd.core.values import Actor, FileEdit, Pointer, Provenance
from memd.store.door import ConflictError
from memd.store.history import Past, Range, RangeReversedError, VersionNotFoundError
from memd.store.undo import ChangeNotFoundError
from tests.store.bench import Bench, edits, open_bench, topic

LONG_AGO = 1_500_000_000_123_456_789
UNDO = Provenance(Actor.UNDO, client="test")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Open a bench: c1 and c3 write a.md, c2 writes b.md, c4 deletes a.md."""
    with open_bench(tmp_path) as opened:
        wanted = FileEdit("a.md", topic("a", "one"), mtime_ns=LONG_AGO)
        opened.commit(edits(wanted, pointers={"a.md": Pointer("Mine", "my own words")}))
        opened.write("b.md", topic("b"))
        opened.write("a.md", topic("a", "two"))
        opened.write("a.md", None)
        yield opened


def past(bench: Bench) -> Past:
    """Return the past of a bench."""

    def live(_: str, path: str) -> bytes | None:
        file = bench.path / path
        return file.read_bytes() if file.exists() else None

    return Past(bench.journal, live)


@pytest.mark.parametrize(
    ("path", "at", "error"),
    [
        ("a.md", "c4", VersionNotFoundError),
        ("b.md", "c1", VersionNotFoundError),
        ("none.md", "c1", VersionNotFoundError),
        ("a.md", "c9", ChangeNotFoundError),
        ("../a.md", "c1", NameRefusedError),
    ],
)
def test_a_version_that_never_was_is_an_error(
    bench: Bench, path: str, at: str, error: type[Exception]
) -> None:
    """Where there was no file, no change or no proper name there is no version."""
    with pytest.raises(error):
        past(bench).version(bench.directory, path, at)


def test_a_text_that_is_gone_or_binary_is_said_so(bench: Bench) -> None:
    """A body that the journal lost and one that is no text are told in words."""
    bench.save("bin.md", b"\xff\x00")
    bench.write("bin.md", topic("bin"))
    assert past(bench).diff(bench.directory, "c5", "bin.md")[0].diff == "bin.md: binary\n"
    with bench.database.transaction() as cursor:
        cursor.execute("DELETE FROM blobs")
    lost = past(bench).diff(bench.directory, "c2", "b.md")[0].diff
    assert lost == "b.md: the journal does not hold this text any more\n"
    with pytest.raises(VersionNotFoundError):
        bench.commit(past(bench).restore(bench.directory, "a.md"))


def test_a_file_that_changed_unseen_within_a_range_stays(bench: Bench) -> None:
    """Work of which no change tells is not taken back with the range around it."""
    bench.save("b.md", topic("b", "unseen"))
    bench.write("b.md", topic("b", "later"))
    done = bench.commit(past(bench).undo(bench.directory, Range("c2")), by=UNDO)
    assert done.conflicts == ("b.md",)
    assert bench.topics() == {"a.md": topic("a", "one"), "b.md": topic("b", "later")}


def test_a_range_has_two_known_ends_in_order(bench: Bench) -> None:
    """An unknown change and a range that ends before it begins are errors."""
    for which in (Range("c9"), Range("c1", "c9"), "c9"):
        with pytest.raises(ChangeNotFoundError):
            past(bench).undo(bench.directory, which)
    with pytest.raises(RangeReversedError):
        past(bench).undo(bench.directory, Range("c3", "c2"))


def test_a_dream_repeats_what_was_taken_back(bench: Bench) -> None:
    """The same edit of the same text as a dream made before is named, and no other one."""
    dream = Provenance(Actor.DREAM)
    live = sha256(topic("b"))
    gone, changed = FileEdit("b.md", None, live), FileEdit("b.md", topic("b", "new"), live)
    assert past(bench).repeats(bench.directory, [gone, changed]) == frozenset()
    bench.undo(bench.commit(edits(gone), by=dream).change)
    assert past(bench).repeats(bench.directory, [gone]) == {"b.md"}
    assert past(bench).repeats(bench.directory, [changed]) == frozenset()
    assert past(bench).repeats(bench.directory, [FileEdit("b.md", None)]) == frozenset()
    new = FileEdit("c.md", topic("c"), "")
    bench.undo(bench.commit(edits(new), by=dream).change)
    assert past(bench).repeats(bench.directory, [new]) == {"c.md"}


def test_a_refused_text_is_kept_and_comes_back(bench: Bench) -> None:
    """A conflict can be looked at and restored by its id, and by no other way."""
    live = bench.tree()
    with pytest.raises(ConflictError) as caught:
        bench.commit(edits(FileEdit("b.md", topic("b", "mine"), base=sha256(topic("x")))))
    assert bench.tree() == live
    old, change = past(bench), caught.value.facts["change"]
    assert isinstance(change, str)
    assert "+mine\n" in old.diff(bench.directory, change)[0].diff
    with pytest.raises(VersionNotFoundError):
        old.restore(bench.directory, "a.md", change)
    with pytest.raises(ChangeNotFoundError):
        old.undo(bench.directory, change)
    bench.commit(old.restore(bench.directory, "b.md", change), by=UNDO)
    assert bench.topics()["b.md"] == topic("b", "mine")


def test_what_never_was_has_no_history(bench: Bench) -> None:
    """A file that a change or the journal does not have is an error, and nobody wrote it."""
    old, directory = past(bench), bench.directory
    for ask in (
        lambda: old.diff(directory, "c1", "b.md"),
        lambda: old.compare(directory, "none.md", None, None),
        lambda: old.restore(directory, "none.md"),
        lambda: bench.commit(old.restore(directory, "b.md")),
    ):
        with pytest.raises(VersionNotFoundError):
            ask()
    assert old.writers(directory, "none.md").changes == ()
    assert old.diff(directory, None) == old.diff(directory, "c4")
