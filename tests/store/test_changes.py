"""The commit protocol: all or nothing, nobody's save overwritten, a retry is no second write."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memd.base.names import INDEX
from memd.base.values import CursorMove, Draft, FileEdit, Pointer, Tree
from memd.state.cursors import Cursors
from memd.state.database import StateUnusableError
from memd.store.changes import FSYNCS_PER_COMMIT, DirectoryBusyError, StorageFailedError
from tests.changes import history
from tests.store.bench import Bench, edits, open_bench, topic
from tests.support.faults import Countdown, FaultyDatabase, FaultyDisk


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Open a bench with two memories."""
    with start(tmp_path / "bench") as opened:
        yield opened


def test_effects_come_true_with_the_change(bench: Bench) -> None:
    """A cursor moves with the memories it accounts for, and also when there are none."""
    cursors = Cursors(bench.database)
    bench.write("c.md", topic("c"), CursorMove("s", "t", 1, "m"))
    assert cursors.get(bench.directory, "s") == CursorMove("s", "t", 1, "m")
    bench.commit(Draft(effects=(CursorMove("s", "t", 2, "m"),)))
    assert cursors.get(bench.directory, "s") == CursorMove("s", "t", 2, "m")


def append(path: str, line: bytes) -> Callable[[Tree], Draft]:
    """Return a plan that adds a line to whatever the file is when it runs."""

    def plan(tree: Tree) -> Draft:
        results = tree.read(path)
        return edits(FileEdit(path, (results.content if results else b"") + line))

    return plan


@pytest.mark.parametrize(
    ("call", "name"), [("exchange", "a.md"), ("create", ""), ("sync_folder", "")]
)
def test_a_save_in_any_instant_is_seen(bench: Bench, call: str, name: str) -> None:
    """A foreign save before, during and after the staging is never overwritten unseen."""
    saved: list[str] = []

    def save(now: str, target: str) -> None:
        if now == call and (not name or target == name) and not saved:
            saved.append(target)
            bench.save("a.md", topic("a", "by hand"))

    by_hand = bench.using(FaultyDisk(before=save))
    by_hand.commit(append("a.md", b"by plan\n"))
    if call == "sync_folder":  # after the exchange: the person replaced what was just written
        assert bench.topics()["a.md"] == topic("a", "by hand")
    else:
        assert bench.topics()["a.md"] == topic("a", "by hand") + b"by plan\n"
    assert set(bench.tree()) == {"a.md", "b.md", INDEX}


def test_an_editor_that_writes_into_the_old_file_is_seen(bench: Bench) -> None:
    """A program that had the file open and writes after the exchange gets its file back."""
    with open(bench.path / "a.md", "r+b") as editor:
        written: list[str] = []

        def write(call: str, _name: str) -> None:
            if call == "sync_folder" and not written:
                written.append(call)
                editor.seek(0, os.SEEK_END)
                editor.write(b"by hand\n")
                editor.flush()

        bench.using(FaultyDisk(before=write)).commit(append("a.md", b"by plan\n"))
    assert bench.topics()["a.md"] == topic("a") + b"by hand\nby plan\n"


def test_a_file_that_was_saved_is_not_deleted(bench: Bench) -> None:
    """A deletion that was based on an older text gives the file back and asks the plan again."""
    done: list[str] = []

    def save(call: str, name: str) -> None:
        if call == "move" and name.startswith(".memd") and not done:
            done.append(name)
            bench.save("a.md", topic("a", "precious"))

    def plan(tree: Tree) -> Draft:
        results = tree.read("a.md")
        return (
            edits(FileEdit("a.md", None)) if results and results.content == topic("a") else Draft()
        )

    result = bench.using(FaultyDisk(before=save)).commit(plan)
    assert result.change is None
    assert bench.topics() == {"a.md": topic("a", "precious"), "b.md": topic("b")}


def test_a_rival_that_never_rests_is_reported(bench: Bench) -> None:
    """After ten lost races the caller is told; the rival's last save is what stays."""
    count = 0

    def save(call: str, name: str) -> None:
        nonlocal count
        if call == "exchange" and name == "a.md":
            count += 1
            bench.save("a.md", f"save {count // 2}\n".encode())

    with pytest.raises(DirectoryBusyError) as caught:
        bench.using(FaultyDisk(before=save)).commit(append("a.md", b"x"))
    assert caught.value.retryable
    assert bench.topics()["a.md"].startswith(b"save ")
    assert bench.journal.pending() == ()


def test_a_file_saved_after_an_abandoned_swap_stays(bench: Bench) -> None:
    """Taking a set back leaves alone what somebody saved over it meanwhile."""
    done: list[str] = []

    def save(call: str, name: str) -> None:
        if call == "exchange" and name == "b.md" and not done:
            done.append(name)
            bench.save("a.md", topic("a", "again by hand"))
            bench.save("b.md", topic("b", "by hand"))

    def plan(tree: Tree) -> Draft:
        if done:
            return Draft()
        return edits(*(FileEdit(h.path, b"merged\n") for h in sorted(tree.headers(), key=str)))

    assert bench.using(FaultyDisk(before=save)).commit(plan).change is None
    assert bench.topics() == {
        "a.md": topic("a", "again by hand"),
        "b.md": topic("b", "by hand"),
    }


def test_a_set_is_few_waits_for_the_medium(bench: Bench) -> None:
    """One memory and its index line cost a fixed, small number of fsyncs."""
    countdown = Countdown()
    watched = bench.using(FaultyDisk(countdown), FaultyDatabase(bench.database, countdown))
    watched.write("c.md", topic("c"))
    waits = [n for n in countdown.names if n in {"fsync", "sync_folder", "transaction"}]
    assert len(waits) == FSYNCS_PER_COMMIT


def extraction(bench: Bench) -> None:
    """Commit a new topic, an update and a cursor."""
    draft = Draft(
        (FileEdit("new/c.md", topic("c")), FileEdit("a.md", topic("a", "learned"))),
        {"new/c.md": Pointer("C", "hook")},
        (CursorMove("s", "t", 1, "m"),),
    )
    bench.commit(draft, "extraction")


def dream(bench: Bench) -> None:
    """Merge two topics into one, keeping its time."""
    merged = FileEdit("ab.md", topic("ab", "both"), mtime_ns=1_600_000_000_000_000_000)
    bench.commit(edits(merged, FileEdit("a.md", None), FileEdit("b.md", None)), "dream")


def undo(bench: Bench) -> None:
    """Undo the first change."""
    bench.undo("c1")


OPERATIONS = {"extraction": extraction, "dream": dream, "undo": undo}


# A full disk refuses new bytes and lets files be renamed; one that is read-only refuses it all.
FULL = ("create", "write", "fsync", "sync_folder", "transaction")
FAULTS = {
    "once": lambda number: Countdown(number, errno.EIO),
    "full": lambda number: Countdown(number, errno.ENOSPC, ever=True, only=FULL),
    "read-only": lambda number: Countdown(number, errno.EROFS, ever=True),
}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("fault", FAULTS)
def test_any_call_may_fail(tmp_path: Path, operation: str, fault: str) -> None:
    """Whichever call fails, the directory is as before or after, and the next write works."""
    run = OPERATIONS[operation]
    with start(tmp_path / "twin") as twin:
        before = twin.tree()
        run(twin)
        after = twin.tree()
    number, reached = 0, True
    while reached:
        number += 1
        with start(tmp_path / str(number)) as bench:
            countdown = FAULTS[fault](number)
            faulty = bench.using(FaultyDisk(countdown), FaultyDatabase(bench.database, countdown))
            done = _attempt(run, faulty)
            reached = countdown.reached
            if fault != "read-only":  # there it can be put right only when the fault has ended
                assert _visible(bench) in (before, after)
            assert not done or _visible(bench) == after
            bench.commit(edits(FileEdit("z.md", topic("z"))))
            bench.undo(history(bench.journal, bench.directory)[0].id)
            assert bench.changes.recover(1.0) == ()
            assert bench.tree() in (before, after)
            assert bench.journal.pending() == ()
    assert number > 8


@contextmanager
def start(root: Path) -> Iterator[Bench]:
    """Open a new bench with two memories."""
    root.mkdir()
    with open_bench(root) as bench:
        bench.commit(edits(FileEdit("a.md", topic("a")), FileEdit("b.md", topic("b"))))
        yield bench


def _visible(bench: Bench) -> dict[str, bytes]:
    """Return what a reader sees."""
    return {path: text for path, text in bench.tree().items() if not _hidden(path)}


def _hidden(path: str) -> bool:
    return path.rpartition("/")[2].startswith(".")


def _attempt(run: Callable[[Bench], None], bench: Bench) -> bool:
    try:
        run(bench)
    except (StorageFailedError, StateUnusableError):
        return False
    return True


def test_a_persons_line_to_no_file_stays(bench: Bench) -> None:
    """A line that points where memd never had a memory is left as it is; memd's own goes."""
    person = b"- [Plan](plan.md) - to be written\n- [Plan](plan.md) again\n* [x](<my file.md>)\n"
    bench.save(INDEX, person)
    bench.write("a.md", topic("a"))
    bench.write("b.md", topic("b"))
    assert bench.tree()[INDEX].startswith(person)
    bench.write("a.md", None)
    assert bench.tree()[INDEX] == person + "- [b](b.md) — about b\n".encode()
    bench.save("plan.md", topic("plan"))
    bench.write("b.md", topic("b", "again"))
    assert bench.tree()[INDEX].count(b"plan.md") == 1
    bench.write("plan.md", None)
    assert b"plan.md" not in bench.tree()[INDEX]
    assert b"my file.md" in bench.tree()[INDEX]
