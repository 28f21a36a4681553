"""Files that memd has just replaced, and what is written into them afterwards."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.core import limits
from memd.core.values import Draft, FileEdit
from memd.state.journal import Step
from memd.store.held import Held, Holding, Late, late_plan
from memd.store.paths import Directory
from memd.store.tree import LiveTree
from tests.store.bench import Bench, open_bench, topic

A, B, C = topic("a", "old"), topic("a", "of memd"), topic("a", "of a person")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Open a bench with one memory."""
    with open_bench(tmp_path) as opened:
        opened.write("a.md", A)
        yield opened


class Writer:
    """A commit of the memory whose replaced file is held, and a descriptor that an editor kept."""

    def __init__(self, bench: Bench, held: Held, content: bytes | None = B) -> None:
        self.held = held
        self.bench = bench
        self.editor = os.open(bench.path / "a.md", os.O_WRONLY)
        holding = Holding()
        plan = holding.plan(lambda _: Draft((FileEdit("a.md", content), FileEdit("n.md", A))))
        outcome = bench.commit(plan)
        record = bench.journal.change(bench.directory, outcome.change or "")
        assert record is not None
        self.steps = record.steps
        held.keep(bench.directory, holding, record.steps, 10.0)
        assert holding.files == {}

    def write(self) -> None:
        """Write into the file that has no name any more."""
        os.ftruncate(self.editor, 0)
        os.pwrite(self.editor, C, 0)
        os.close(self.editor)

    def late(self, now: float) -> tuple[list[Late], bool]:
        """Ask for late saves."""
        return self.held.late(self.bench.directory, now)


@pytest.mark.parametrize("content", [B, None], ids=["replaced", "removed"])
def test_a_late_save_becomes_the_file_again(bench: Bench, content: bytes | None) -> None:
    """What is written into a replaced or removed file is found once and comes back."""
    held = Held()
    writer = Writer(bench, held, content)
    assert writer.late(10.0) == ([], True)
    assert held.late("/elsewhere", 10.0) == ([], False)
    writer.write()
    (late,), _ = writer.late(10.0)
    assert (late.path, late.body) == ("a.md", C)
    bench.commit(late_plan(late))
    assert (bench.path / "a.md").read_bytes() == C
    held.close()
    assert writer.late(10.0) == ([], False)


def test_a_late_save_never_goes_over_newer_work(bench: Bench) -> None:
    """Where somebody has saved since, the plan leaves the file alone."""
    writer = Writer(bench, held := Held())
    writer.write()
    (late,), _ = writer.late(10.0)
    bench.write("a.md", A)
    assert bench.commit(late_plan(late)).change is None
    assert (bench.path / "a.md").read_bytes() == A
    held.close()


def test_files_are_held_for_a_moment_only(bench: Bench) -> None:
    """After the moment, and when there are too many, they are closed."""
    held = Held()
    writer = Writer(bench, held)
    writer.write()
    assert len(writer.late(10.0)[0]) == 1
    for _ in range(70):
        os.close(Writer(bench, held, topic("a", os.urandom(4).hex())).editor)
    before = len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0
    assert writer.late(10.0)[1] is False
    if before:
        assert len(os.listdir("/proc/self/fd")) < before - 60
    last = Writer(bench, held, topic("a", "last"))
    os.close(last.editor)
    assert last.late(20.0) == ([], False)


def test_what_is_the_file_again_is_no_late_save(bench: Bench) -> None:
    """A replaced file that somebody has put back is live, whatever it says."""
    os.link(bench.path / "a.md", bench.path / "backup")
    writer = Writer(bench, held := Held())
    os.replace(bench.path / "backup", bench.path / "a.md")
    writer.write()
    assert writer.late(10.0) == ([], True)
    held.close()


def test_a_file_that_cannot_be_read_is_no_late_save(bench: Bench) -> None:
    """A replaced file that grew beyond what memd reads is let go."""
    writer = Writer(bench, held := Held())
    os.ftruncate(writer.editor, limits.READ_BYTES + 1)
    assert writer.late(20.0) == ([], False)
    os.close(writer.editor)
    held.close()


def test_what_was_not_replaced_is_let_go(bench: Bench) -> None:
    """Files that a plan named and the set left alone are closed."""
    holding = Holding()
    with Directory(bench.directory) as directory:
        plan = holding.plan(lambda _: Draft((FileEdit("a.md", B), FileEdit("../x.md", B))))
        plan(LiveTree(directory))
        assert sorted(holding.files) == ["MEMORY.md", "a.md"]
        plan(LiveTree(directory))
    held = Held()
    held.keep(bench.directory, holding, [Step("a.md", "1", "2", conflict=True)], 10.0)
    assert held.late(bench.directory, 10.0) == ([], False)
