"""What a change that died leaves, and what others saved at that moment, is told apart."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.base.text import sha256
from memd.base.values import Actor, Draft, FileEdit
from memd.state.database import open_database
from memd.store.disk import Disk
from memd.store.log import OPEN, ChangeRecord, Step
from memd.store.sync import BY as EXTERNAL
from tests.store.bench import BY, SCHEMAS, Bench, open_bench, topic
from tests.support.countdown import Countdown
from tests.support.faults import FaultyDatabase, FaultyDisk

OLD, NEW = topic("a", "old"), topic("a", "new words\n" * 20)


class DeadError(BaseException):
    """The process is dead from here on."""


class Deadly(Countdown):
    """Dies at the n-th call, and at all that follow."""

    def step(self, name: str) -> None:
        """Count one call."""
        self.names.append(name)
        if self.fail_at and len(self.names) >= self.fail_at:
            raise DeadError


class TwoCalls(Disk):
    """A disk without exchanges that dies in the middle of each move or exchange."""

    def __init__(self) -> None:
        super().__init__(None)

    def move(self, folder: int, source: str, target: str) -> None:
        """Give the file its second name, and die."""
        os.link(source, target, src_dir_fd=folder, dst_dir_fd=folder)
        raise DeadError


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Make a directory with one memory."""
    with open_bench(tmp_path) as opened:
        opened.write("a.md", OLD)
        opened.clock.advance(1)
        opened.look(last=True)
        yield opened


def open_change(bench: Bench, *steps: Step, bodies: dict[str, bytes]) -> ChangeRecord:
    """Record a change that died."""
    record = ChangeRecord(0, bench.directory, OPEN, bench.clock.now(), BY, steps)
    bench.rows.drop(bench.directory)  # as after a restart
    with bench.database.transaction() as cursor:
        return bench.log.add(cursor, record, bodies, token="0123abcd")  # noqa: S106 - no password


def update(bench: Bench) -> ChangeRecord:
    """Record a change of the memory that died."""
    step = Step("a.md", sha256(OLD), sha256(NEW))
    return open_change(bench, step, bodies={sha256(OLD): OLD, sha256(NEW): NEW})


@pytest.mark.parametrize("torn", [NEW[:30], b"", NEW[:9] + bytes(30) + NEW[39:]])
def test_a_torn_file_never_takes_the_place_of_the_same_text(bench: Bench, torn: bytes) -> None:
    """A daemon died while it wrote a new file, and a program then saved that very text."""
    record = update(bench)
    (bench.path / record.steps[0].temp).write_bytes(torn)
    bench.save("a.md", NEW)
    bench.writer.recover()
    bench.look(last=True)
    assert bench.topics() == {"a.md": NEW}
    assert not any(name.startswith(".memd") for name in bench.tree())


def test_a_torn_file_with_gaps_is_nobodys_text(bench: Bench) -> None:
    """A power cut may leave zeros in the middle: they are merged into nothing."""
    record = update(bench)
    (bench.path / record.steps[0].temp).write_bytes(NEW[:9] + bytes(30) + NEW[39:])
    bench.writer.recover()
    bench.look(last=True)
    assert bench.topics() == {"a.md": OLD}
    assert not any(name.startswith(".memd") for name in bench.tree())


@pytest.mark.parametrize("name", ["a.md", "b.md"])
def test_a_death_between_two_calls_is_undone(bench: Bench, name: str) -> None:
    """Where files cannot be exchanged, a new or deleted file had two names at that moment."""
    content = None if name == "a.md" else topic("b")
    with pytest.raises(DeadError):
        bench.using(TwoCalls()).write(name, content)
    bench.writer.recover()
    bench.clock.advance(1)
    bench.look(last=True)
    assert bench.topics() == {"a.md": OLD}
    assert bench.log.open_changes() == ()


def test_a_late_save_may_be_the_beginning_of_memds_text(bench: Bench) -> None:
    """A person takes the last words out of the file that memd replaced by a longer one."""
    longer = OLD + b"\nmore words\n"
    with (bench.path / "a.md").open("r+b", buffering=0) as file:
        bench.write("a.md", longer)
        file.truncate(0)
        file.write(OLD[:-4])
    bench.clock.advance(1)
    bench.look()
    bench.clock.advance(1)
    bench.look()  # the merge has replaced a file as well
    (text,) = bench.topics().values()
    assert text == longer.replace(b"old\n", b"")
    assert not any(name.startswith(".memd") for name in bench.tree())


def test_a_file_of_an_older_state_file_is_of_no_change(tmp_path: Path) -> None:
    """A new state file counts from one again, and takes no older file for a late save."""
    with open_bench(tmp_path) as bench:
        bench.save("a.md", OLD)
        bench.look()
        bench.write("a.md", NEW)
        ours = bench.log.select()[0].steps[0].temp
        strange = ours[: -len("00000000.tmp")] + "00000000.tmp"
        (bench.path / strange).write_bytes(topic("z"))
        bench.clock.advance(1)
        bench.look(last=True)
        assert bench.topics() == {"a.md": NEW}
        assert bench.tree()[strange] == topic("z")


def test_what_an_open_change_needs_stays(bench: Bench) -> None:
    """The replaced file of a change that waits to be undone is removed by no look."""
    record = update(bench)
    (bench.path / "a.md").rename(bench.path / record.steps[0].temp)
    (bench.path / "a.md").write_bytes(NEW)
    bench.clock.advance(60)
    bench.look(last=True)
    bench.writer.recover()
    assert bench.topics() == {"a.md": OLD}


def test_recovery_leaves_what_was_saved_since(bench: Bench) -> None:
    """A program saved the file that a dead change had replaced: its text stays."""
    record = update(bench)
    (bench.path / "a.md").rename(bench.path / record.steps[0].temp)
    bench.save("a.md", topic("a", "a person's"))
    bench.writer.recover()
    bench.clock.advance(1)
    bench.look(last=True)
    assert bench.topics() == {"a.md": topic("a", "a person's")}


@pytest.mark.parametrize("path", ["../outside.md", "notes.txt", ".hidden/a.md"])
def test_recovery_believes_no_path(bench: Bench, path: str) -> None:
    """The row of a damaged state file leads to no file that memd may not write."""
    outside = bench.path / path
    outside.parent.mkdir(exist_ok=True)
    outside.write_bytes(NEW)
    open_change(bench, Step(path, None, sha256(NEW)), bodies={sha256(NEW): NEW})
    bench.writer.recover()
    assert outside.read_bytes() == NEW
    assert bench.log.open_changes() == ()


def test_recovery_believes_no_temporary_name(bench: Bench) -> None:
    """A token of a damaged row is no way to another file."""
    record = update(bench)
    bench.save("x/a.md", OLD)
    bench.save("a.md", NEW)
    folder = bench.path / f".memd-{record.number}-0-"
    folder.mkdir()
    (folder / "x.tmp").write_bytes(topic("evil"))
    bench.database.write("UPDATE change SET token = '/x' WHERE id = ?", (record.number,))
    bench.writer.recover()
    assert bench.topics()["a.md"] == NEW


def test_the_next_change_undoes_one_that_died(bench: Bench) -> None:
    """No start is needed, wherever it died."""
    for number in range(1, 14):
        name = f"b{number}.md"
        fatal = Deadly(number)
        with pytest.raises(DeadError):
            bench.using(FaultyDisk(fatal)).write(name, topic("b"))
        bench.rows.drop(bench.directory)  # what another process changed is read anew
        bench.write("c.md", topic("c", str(number)))
        assert bench.log.open_changes() == ()
        assert name not in bench.topics()
        assert not any(step.path == name for each in bench.log.select() for step in each.steps)


def test_a_request_id_is_answered_once(bench: Bench) -> None:
    """The same request after the answer makes no second change, also in another process."""
    draft = Draft((FileEdit("b.md", topic("b")),))
    first = bench.commit(draft, "r1")
    bench.save("b.md", topic("b", "a person's"))
    again = Bench(bench.root, bench.database).commit(draft, "r1")
    assert (again.change, again.repeated) == (first.change, True)
    assert bench.topics()["b.md"] == topic("b", "a person's")


def test_five_waits_for_the_disk_are_enough(bench: Bench) -> None:
    """A memory and its index line: the log, two files, one folder, the mark."""
    calls = Countdown()
    bench.using(FaultyDisk(calls), FaultyDatabase(bench.database, calls)).write("b.md", topic("b"))
    waits = [name for name in calls.names if name in ("fsync", "sync_folder", "transaction")]
    assert waits == ["transaction", "fsync", "fsync", "sync_folder", "transaction"]


def test_an_emptied_file_is_half_saved(bench: Bench) -> None:
    """A program that truncated a file and will fill it has not deleted its text."""
    with (bench.path / "a.md").open("wb", buffering=0) as file:
        assert bench.look() == []
        file.write(NEW)
    (record,) = bench.look()
    assert [(step.before, step.after) for step in record.steps] == [(sha256(OLD), sha256(NEW))]
    assert record.by == EXTERNAL
    assert record.by.actor is Actor.EXTERNAL


def test_a_body_outlives_the_one_that_it_was_packed_against(bench: Bench) -> None:
    """Pruning and purging repack what was packed against a text that goes."""
    texts = [topic("a", "the same words\n" * 40 + f"number {number}") for number in range(5)]
    for text in texts:
        bench.write("a.md", text)
    packed = bench.database.read("SELECT id, base FROM body WHERE base IS NOT NULL")
    assert packed
    with bench.database.transaction() as cursor:
        bench.log.delete_bodies(cursor, [packed[0]["base"]])
    kept = [bench.log.body(sha256(text)) for text in texts]
    assert sum(text is None for text in kept) <= 1
    assert kept[-1] == texts[-1]


def test_a_damaged_state_file_renamed_costs_no_memory(tmp_path: Path) -> None:
    """With a new state file the next write works, and the memories are as they were."""
    with open_bench(tmp_path) as bench:
        bench.write("a.md", OLD)
    (tmp_path / "state.db").write_bytes(b"junk" * 5000)
    database = open_database(str(tmp_path / "state.db"), SCHEMAS)
    again = Bench(tmp_path, database)
    again.write("b.md", topic("b"))
    assert again.topics() == {"a.md": OLD, "b.md": topic("b")}
    database.close()
