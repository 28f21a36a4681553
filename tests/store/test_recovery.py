"""Finishing what a crash left, from whatever a crash may have left."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.base import limits
from memd.base.names import INDEX
from memd.base.text import sha256
from memd.base.values import CursorMove, FileEdit
from memd.files.disk import real_disk
from memd.state.cursors import Cursors
from memd.state.database import StateUnusableError
from memd.state.records import ChangeRecord, PlannedChange, Step
from memd.store.replaced import Replaced
from tests.changes import history
from tests.store.bench import BY, Bench, edits, open_bench, topic
from tests.support.faults import Countdown, FaultyDatabase, FaultyDisk

OLD, NEW, ADDED = topic("a"), topic("a", "new"), topic("n")
ROWS_KEPT = topic("k")
MARK = "0123abcd"


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Open a bench with three memories and a true index."""
    with open_bench(tmp_path) as opened:
        wanted = {"a.md": OLD, "k.md": ROWS_KEPT, "d.md": topic("d")}
        opened.commit(edits(*(FileEdit(path, text) for path, text in wanted.items())))
        yield opened


def record(bench: Bench, *steps: Step, request: str = "") -> ChangeRecord:
    """Record a set that updates, creates and deletes, and stop there, as a crash does."""
    chosen = steps or (
        Step("a.md", sha256(OLD), sha256(NEW), mode=0o600),
        Step("n.md", None, sha256(ADDED)),
        Step("d.md", sha256(topic("d")), None),
    )
    bodies = {sha256(text): text for text in (OLD, NEW, ADDED, topic("d"))}
    effects = (CursorMove("s", "t", 1, "m"),)
    return bench.journal.record(
        PlannedChange(bench.directory, 1.0, BY, request, MARK, chosen, bodies, effects)
    )


AFTER = {"a.md": NEW, "n.md": ADDED, "k.md": ROWS_KEPT}


def temp(bench: Bench, one: ChangeRecord, position: int) -> Path:
    """Return the path of a step's temporary file."""
    return bench.path / one.steps[position].temp


def test_a_recorded_set_is_rolled_forward(bench: Bench) -> None:
    """A set of which nothing was done is done at the next start, its effects too, and told."""
    one = record(bench)
    (sentence,) = bench.changes.recover(2.0)
    assert one.id in sentence
    assert bench.topics() == AFTER
    assert Cursors(bench.database).get(bench.directory, "s") == CursorMove("s", "t", 1, "m")
    assert bench.changes.recover(3.0) == ()


@pytest.mark.parametrize("path", ["an odd n\u00e4me.md", "a/b/c/d/e/f.md", "-rf.md"])
def test_an_odd_name_is_rolled_forward(bench: Bench, path: str) -> None:
    """A file that an undo or an import brings back under a person's own name is completed too."""
    record(bench, Step(path, None, sha256(ADDED)))
    bench.changes.recover(2.0)
    assert (bench.path / path).read_bytes() == ADDED


def test_a_save_that_was_swapped_out_comes_back(bench: Bench) -> None:
    """A foreign text that a crash caught under our name is put back and is not lost."""
    one = record(bench)
    temp(bench, one, 0).write_bytes(b"by hand\n")
    (bench.path / "a.md").write_bytes(NEW)
    os.unlink(bench.path / "d.md")
    temp(bench, one, 2).write_bytes(b"saved before it was deleted\n")
    (sentence,) = bench.changes.recover(2.0)
    assert "a.md, d.md" in sentence
    assert bench.topics() == {
        **AFTER,
        "a.md": b"by hand\n",
        "d.md": b"saved before it was deleted\n",
    }
    (change,) = [c for c in history(bench.journal, bench.directory) if c.id == one.id]
    assert [file.path for file in change.files] == ["n.md"]
    assert bench.journal.blob(sha256(NEW)) == NEW


def test_a_new_file_in_place_stays(bench: Bench) -> None:
    """A file that nobody had before is not taken away for an unknown text under our name."""
    one = record(bench)
    (bench.path / "n.md").write_bytes(ADDED)
    temp(bench, one, 1).write_bytes(b"whose is this?\n")
    assert len(bench.changes.recover(2.0)) == 2
    assert bench.topics() == {**AFTER, one.steps[1].temp: b"whose is this?\n"}


def test_what_was_saved_since_is_left_alone(bench: Bench) -> None:
    """Files that somebody changed, made or removed after the crash stay as they are."""
    record(bench)
    bench.save("a.md", b"newer\n")
    bench.save("n.md", b"theirs\n")
    bench.save("d.md", b"kept\n")
    (sentence,) = bench.changes.recover(2.0)
    assert "a.md, n.md, d.md" in sentence
    expected = {"a.md": b"newer\n", "n.md": b"theirs\n", "d.md": b"kept\n", "k.md": ROWS_KEPT}
    assert bench.topics() == expected
    index = bench.tree()[INDEX]
    assert all(f"({path})".encode() in index for path in expected)


def test_a_save_during_recovery_wins(bench: Bench) -> None:
    """A foreign save in the instant of recovery is found like one in a commit."""
    record(bench)
    done: list[str] = []

    def save(call: str, name: str) -> None:
        if call == "exchange" and name == "a.md" and not done:
            done.append(name)
            bench.save("a.md", b"just now\n")

    bench.using(FaultyDisk(before=save)).changes.recover(2.0)
    assert bench.topics() == {**AFTER, "a.md": b"just now\n"}


def test_a_text_that_nobody_knows_is_kept_and_told(bench: Bench) -> None:
    """A temporary file with a foreign text is never removed, and spoken of at each start."""
    one = record(bench)
    temp(bench, one, 1).write_bytes(b"whose is this?\n")
    sentences = bench.changes.recover(2.0)
    assert any("whose" not in s and one.steps[1].temp in s for s in sentences)
    assert temp(bench, one, 1).read_bytes() == b"whose is this?\n"
    assert len(bench.changes.recover(3.0)) == 1


def test_a_late_save_is_found_by_the_start(bench: Bench) -> None:
    """A foreign text in a file that memd had replaced is a late save, and it is not removed."""
    one = record(bench)
    temp(bench, one, 0).write_bytes(b"from a person\n")
    replaced = Replaced(real_disk())
    assert len(bench.keeping(replaced).changes.recover(2.0)) == 1
    (overdue,), _ = replaced.late_saves(bench.directory, limits.LOOK_SECONDS)
    assert (overdue.step.path, overdue.body) == ("a.md", b"from a person\n")
    assert temp(bench, one, 0).read_bytes() == b"from a person\n"


def test_leftovers_of_ended_sets_are_removed(bench: Bench) -> None:
    """Known and torn bodies under our names go at the next start; other hidden files stay."""
    bench.write("sub/x.md", ADDED)
    one = record(bench)
    bench.changes.recover(2.0)
    (bench.path / f".memd-{one.number}-0-{MARK}.tmp").write_bytes(NEW[:9])
    (bench.path / f".memd-{one.number}-1-{MARK}-old.tmp").write_bytes(OLD)
    (bench.path / "sub" / f".memd-{one.number}-1-{MARK}.tmp").write_bytes(ADDED)
    (bench.path / ".mine.tmp").write_bytes(OLD)
    assert bench.changes.recover(3.0) == ()
    assert sorted(p for p in bench.tree() if ".tmp" in p) == [".mine.tmp"]


def test_leftovers_in_an_emptied_folder_are_removed(bench: Bench) -> None:
    """What a crash leaves of the last memory of a folder goes as well."""
    bench.write("sub/x.md", ADDED)
    one = record(bench, Step("sub/x.md", sha256(ADDED), None))
    bench.changes.recover(2.0)
    (bench.path / "sub" / one.steps[0].temp).write_bytes(ADDED)
    assert bench.changes.recover(3.0) == ()
    assert os.listdir(bench.path / "sub") == []


@pytest.mark.parametrize(
    "name", [".memd-99-0-0123abcd.tmp", ".memd-1-99-0123abcd.tmp", ".memd-x.tmp"]
)
def test_leftovers_of_nobody_stay(bench: Bench, name: str) -> None:
    """What looks like ours and is in no journal is kept, a link is not followed."""
    (bench.path / name).write_bytes(b"?")
    assert len(bench.changes.recover(2.0)) == 1
    (bench.path / name).unlink()
    (bench.path / name).symlink_to("a.md")
    assert len(bench.changes.recover(2.0)) == 1
    assert bench.topics()["a.md"] == OLD


def test_a_directory_that_is_away_waits(bench: Bench) -> None:
    """A set of a directory that is not there now is told, and done when it is back."""
    record(bench)
    bench.path.rename(bench.root / "away")
    (sentence,) = bench.changes.recover(2.0)
    assert "waits" in sentence
    (bench.root / "away").rename(bench.path)
    bench.changes.recover(2.0)
    assert bench.topics() == AFTER


def test_a_disk_that_fails_leaves_the_set_for_later(bench: Bench) -> None:
    """Wherever recovery fails, it says so, and the next one succeeds."""
    number, reached = 0, True
    while reached:
        number += 1
        bench.commit(edits(FileEdit("a.md", OLD), FileEdit("d.md", topic("d"))))
        bench.commit(edits(FileEdit("n.md", None)))
        record(bench)
        countdown = Countdown(number)
        sentences = bench.using(FaultyDisk(countdown)).changes.recover(2.0)
        reached = countdown.reached
        assert sentences
        bench.changes.recover(3.0)
        assert bench.topics() == AFTER
    assert number > 8


@pytest.mark.parametrize(
    "path",
    ["../outside.md", "/etc/outside.md", "a.txt", ".hidden.md", "link/x.md", "logs/x.md", ""],
)
def test_hostile_paths_do_no_harm(bench: Bench, path: str) -> None:
    """A journal that names what no client may name changes nothing, inside or outside."""
    outside = bench.root / "outside"
    outside.mkdir()
    (bench.path / "link").symlink_to(outside)
    before = bench.tree()
    record(bench, Step(path, None, sha256(NEW)))
    (sentence,) = bench.changes.recover(2.0)
    assert path in sentence
    assert bench.tree() == before
    assert os.listdir(outside) == []
    assert bench.journal.pending() == ()


@pytest.mark.parametrize(
    "change",
    [
        "temp = 'a.md'",
        "temp = '../../x.tmp'",
        "after = 'abc'",
        "after = NULL, before = NULL",
        "before = 'xyz'",
        "mode = 'all'",
        "path = x'ff'",
        "after = '0000000000000000000000000000000000000000000000000000000000000000'",
    ],
)
def test_hostile_rows_do_no_harm(bench: Bench, change: str) -> None:
    """A row that memd could not have written, or whose body is missing, is left alone."""
    before = bench.topics()
    record(bench, Step("a.md", sha256(OLD), sha256(NEW)))
    with bench.database.transaction() as cursor:
        cursor.execute(f"UPDATE change_files SET {change} WHERE change = 2")  # noqa: S608 - test data
    assert len(bench.changes.recover(2.0)) == 1
    assert bench.topics() == before
    assert bench.journal.pending() == ()


def test_a_state_file_that_fails_stops_recovery(bench: Bench) -> None:
    """What cannot be marked is not passed over in silence."""
    record(bench)
    refusing = FaultyDatabase(bench.database, Countdown(1))
    with pytest.raises(StateUnusableError):
        bench.using(FaultyDisk(), refusing).changes.recover(2.0)
    bench.changes.recover(3.0)
    assert bench.topics() == AFTER


def test_a_hostile_directory_does_no_harm(bench: Bench) -> None:
    """A directory that no path can name is told and passed over."""
    record(bench)
    with bench.database.transaction() as cursor:
        cursor.execute("UPDATE changes SET directory = 'relative' WHERE id = 2")
    (sentence,) = bench.changes.recover(2.0)
    assert "waits" in sentence
