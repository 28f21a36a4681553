"""What was, and the way back to it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.core.names import INDEX, NameRefusedError
from memd.core.text import sha256
from memd.core.values import Actor, CursorMove, Draft, FileEdit, Pointer, Provenance
from memd.documents import index
from memd.state.history import Filter
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


def test_an_old_version_is_read(bench: Bench) -> None:
    """A file is as it was after a change or at a time, whichever file that change was about."""
    versions = past(bench)
    read = versions.version(bench.directory, "a.md", "c2")
    assert (read.content, read.header.mtime_ns) == (topic("a", "one"), LONG_AGO)
    at = bench.at - 1  # the time of c3
    assert versions.version(bench.directory, "a.md", at).content == topic("a", "two")
    newest = versions.version(bench.directory, "b.md", "c4")
    assert (newest.content, newest.header.mtime_ns) == (topic("b"), int((bench.at - 2) * 1e9))


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


def test_two_versions_are_compared(bench: Bench) -> None:
    """By default the live file is compared with what it was before its last change."""
    old = past(bench)
    deleted = old.compare(bench.directory, "a.md", None, None)
    assert "-two\n" in deleted
    assert "\n+" not in deleted.replace("\n+++", "")
    changed = old.compare(bench.directory, "a.md", "c1", "c3")
    assert ("-one\n" in changed, "+two\n" in changed) == (True, True)
    assert "+one\n" in old.compare(bench.directory, "a.md", None, "c1")
    assert old.compare(bench.directory, "b.md", "c2", None) == ""
    with pytest.raises(VersionNotFoundError):
        old.compare(bench.directory, "none.md", None, None)


def test_a_diff_can_be_of_one_file(bench: Bench) -> None:
    """One file of a change can be asked for; one that is not in it is an error."""
    assert [file.path for file in past(bench).diff(bench.directory, "c1", INDEX)] == [INDEX]
    with pytest.raises(VersionNotFoundError):
        past(bench).diff(bench.directory, "c1", "b.md")


def test_the_newest_change_is_shown_unless_named(bench: Bench) -> None:
    """Without an id the last change is meant; a directory without changes has nothing to show."""
    newest = past(bench).diff(bench.directory, None)
    assert newest == past(bench).diff(bench.directory, "c4")
    assert past(bench).diff(str(bench.root), None) == ()


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


def test_the_writers_of_a_file_are_told(bench: Bench) -> None:
    """First and last change, the message it was learnt from, and all changes are known."""
    by = Provenance(Actor.EXTRACT, session="s1", model="m")
    moved = CursorMove("s1", "t.jsonl", 3, "m7")
    bench.commit(Draft((FileEdit("l.md", topic("l")),), effects=(moved,)), by=by)
    bench.write("l.md", topic("l", "by hand"))
    writers = past(bench).writers(bench.directory, "l.md")
    assert writers.first is not None
    assert writers.last is not None
    assert (writers.first.message, writers.first.transcript) == ("m7", "t.jsonl")
    made = writers.first
    assert (made.actor, made.session, made.model) == (by.actor, by.session, by.model)
    assert (made.change, made.action) == ("c5", "created")
    assert (writers.last.actor, writers.last.message) == (Actor.CLIENT, "")
    assert writers.changes == ("c6", "c5")
    assert past(bench).writers(bench.directory, "none.md").first is None


def test_a_deleted_file_comes_back_with_time_and_line(bench: Bench) -> None:
    """Restoring without saying which brings the version that was deleted, with its line."""
    plan = past(bench).restore(bench.directory, "a.md")
    bench.commit(plan, by=UNDO)
    assert bench.tree()["a.md"] == topic("a", "two")
    (entry,) = [e for e in index.entries(bench.tree()[INDEX]) if e.path == "a.md"]
    assert (entry.title, entry.hook) == ("Mine", "my own words")


def test_an_older_version_comes_back(bench: Bench) -> None:
    """A change names the version: as it left the file, or found it where it deleted it."""
    bench.commit(past(bench).restore(bench.directory, "a.md", "c2"), by=UNDO)
    assert bench.tree()["a.md"] == topic("a", "one")
    assert bench.times()["a.md"] == LONG_AGO
    again = past(bench).restore(bench.directory, "a.md", "c1")
    assert bench.commit(again, by=UNDO).change is None
    bench.commit(past(bench).restore(bench.directory, "a.md", "c4"), by=UNDO)
    assert bench.tree()["a.md"] == topic("a", "two")
    bench.commit(past(bench).restore(bench.directory, "a.md"), by=UNDO)
    assert bench.tree()["a.md"] == topic("a", "one")


@pytest.mark.parametrize("path", ["b.md", "none.md"])
def test_what_has_no_older_version_cannot_be_restored(bench: Bench, path: str) -> None:
    """A file that was never different, or never there, has nothing to go back to."""
    with pytest.raises(VersionNotFoundError):
        bench.commit(past(bench).restore(bench.directory, path))
    with pytest.raises(NameRefusedError):
        past(bench).restore(bench.directory, f"../{path}")


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


def test_a_range_is_one_plan_and_one_change(bench: Bench) -> None:
    """Several changes are taken back as one, which can be undone as one."""
    before = bench.tree()
    done = bench.committed(past(bench).undo(bench.directory, Range("c2", "c4")), by=UNDO)
    assert done.conflicts == ()
    assert bench.topics() == {"a.md": topic("a", "one")}
    assert bench.times()["a.md"] == LONG_AGO
    bench.undo(done.outcome.change)
    assert bench.tree() == before


def test_everything_after_a_time_is_taken_back(bench: Bench) -> None:
    """As of a time before everything nothing is left; as of now nothing happens."""
    end = bench.at
    assert bench.commit(past(bench).undo(bench.directory, end), by=UNDO).change is None
    bench.commit(past(bench).undo(bench.directory, end - 3), by=UNDO)
    assert bench.topics() == {"a.md": topic("a", "one")}
    bench.commit(past(bench).undo(bench.directory, 0.0), by=UNDO)
    assert bench.topics() == {}


def test_a_file_that_changed_unseen_within_a_range_stays(bench: Bench) -> None:
    """Work of which no change tells is not taken back with the range around it."""
    bench.save("b.md", topic("b", "unseen"))
    bench.write("b.md", topic("b", "later"))
    done = bench.committed(past(bench).undo(bench.directory, Range("c2")), by=UNDO)
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


def test_history_can_be_of_all_directories(bench: Bench) -> None:
    """Without a directory every change is told, and a page may begin at any of them."""
    everywhere = past(bench)
    assert [c.id for c in everywhere.changes(Filter(), limit=2, before="c4")] == ["c3", "c2"]
    assert len(everywhere.changes(Filter(bench.directory), limit=50)) == 4
    other = os.path.dirname(bench.directory)
    assert everywhere.changes(Filter(other), limit=50) == ()
    with pytest.raises(ChangeNotFoundError):
        everywhere.changes(Filter(other), limit=50, before="c4")
