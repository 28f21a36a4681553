"""What others save at the moment of a change, what the disk does to it, and what becomes true."""

import errno
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from memd.base.errors import MemdError
from memd.base.text import sha256
from memd.base.values import Draft, FileEdit
from memd.extract.cursors import ExtractionCursor, cursor_moved, read_cursor
from memd.state.docs import Docs
from memd.store.forget import prune
from tests.store.bench import Bench, open_bench, topic
from tests.support.countdown import Countdown
from tests.support.faults import FaultyDatabase, FaultyDisk

OLD, NEW, PERSON = topic("a", "old"), topic("a", "new"), topic("a", "a person's")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Make a directory with one memory."""
    with open_bench(tmp_path) as opened:
        opened.write("a.md", OLD)
        opened.clock.advance(1)
        opened.look(last=True)
        yield opened


def once(call: str, work: Callable[[], None]) -> Callable[[str, str], None]:
    """Return what does some work before the first call of a name."""
    left = [work]

    def before(name: str, _: str) -> None:
        if name == call and left:
            left.pop()()

    return before


def texts(bench: Bench, path: str) -> list[bytes | None]:
    """Return what a file said after each change of the log, newest first."""
    steps = [step for record in bench.log.select() for step in record.steps if step.path == path]
    return [bench.log.body(step.after) for step in steps]


def test_a_save_at_the_moment_of_the_exchange(bench: Bench) -> None:
    """What comes out is compared: the person's text is in the history, under the new one."""
    disk = FaultyDisk(before=once("exchange", lambda: bench.save("a.md", PERSON)))
    bench.using(disk).write("a.md", NEW)
    assert texts(bench, "a.md")[:2] == [NEW, PERSON]
    assert bench.topics() == {"a.md": NEW}


def test_a_save_that_is_put_back_is_in_the_log_before(bench: Bench) -> None:
    """A program saves as memd exchanges the file, and once more over what was just put back."""
    exchanges = list[str]()

    def save(body: str) -> None:
        (bench.path / "new").write_bytes(topic("a", body))
        (bench.path / "new").replace(bench.path / "a.md")

    class BesideAProgram(FaultyDisk):
        """A disk that another program uses at the same moments."""

        def exchange(self, folder: int, temp: str, live: str) -> None:
            """Exchange two files; the program saves before the first time and after the second."""
            exchanges.append(live)
            if len(exchanges) == 1:
                save("first")
            super().exchange(folder, temp, live)
            if len(exchanges) == 2:
                save("second")

    bench.using(BesideAProgram()).write("a.md", NEW)
    assert texts(bench, "a.md")[:3] == [NEW, topic("a", "second"), topic("a", "first")]


def test_a_save_at_the_moment_of_the_undo(bench: Bench) -> None:
    """The disk refuses the change, and what a person saves while it is undone stays."""
    calls = list[str]()

    def before(call: str, _: str) -> None:
        calls.append(call)
        if calls.count("exchange") == 2 and call == "exchange":
            bench.save("a.md", PERSON)

    failing = Countdown(1, only=("sync_folder",), ever=True)
    with pytest.raises((MemdError, OSError)):
        bench.using(FaultyDisk(failing, before=before)).write("a.md", NEW)
    assert bench.topics() == {"a.md": PERSON}
    bench.writer.recover()
    bench.clock.advance(1)
    bench.look(last=True)
    assert bench.topics() == {"a.md": PERSON}


def test_a_new_file_replaces_none_that_is_there(bench: Bench) -> None:
    """A person makes the same file at the same moment."""
    disk = FaultyDisk(before=once("move", lambda: bench.save("b.md", PERSON)))
    bench.using(disk).write("b.md", NEW)
    assert texts(bench, "b.md") == [NEW, PERSON]


def test_a_short_write_is_continued(bench: Bench) -> None:
    """A disk takes five bytes at a time."""
    bench.using(FaultyDisk(portion=5)).write("a.md", NEW)
    assert bench.topics() == {"a.md": NEW}


def test_an_fsync_that_failed_is_not_tried_again(bench: Bench) -> None:
    """The second one would report success for bytes that are lost."""
    failing = Countdown(4, errno.EIO)
    with pytest.raises((MemdError, OSError)):
        bench.using(FaultyDisk(failing)).write("a.md", NEW)
    assert failing.names[3] == "fsync"
    assert bench.topics() == {"a.md": OLD}


def test_a_late_save_is_taken_in(bench: Bench) -> None:
    """A program has the replaced file open, and writes into it after the change."""
    with (bench.path / "a.md").open("ab", buffering=0) as file:
        bench.write("a.md", OLD.replace(b"about a", b"about all"))
        file.write(b"\n\nlate\n")
    for _ in range(2):
        bench.clock.advance(1)
        bench.look()
    assert b"about all" in bench.topics()["a.md"]
    assert bench.topics()["a.md"].endswith(b"late\n")
    assert not any(name.startswith(".memd") for name in bench.tree())


def test_a_replaced_file_goes_after_work_elsewhere(bench: Bench) -> None:
    """So many directories were used since the change that memory has nothing of this one."""
    bench.write("a.md", OLD)
    bench.write("a.md", NEW)
    for number in range(20):
        bench.rows.of(f"/elsewhere/{number}")
    bench.clock.advance(1)
    bench.writer.clear(bench.directory)
    assert not any(name.startswith(".memd") for name in bench.tree())


def test_files_and_effects_come_true_together(bench: Bench) -> None:
    """Whatever call fails, the cursor has moved where the memory is there, and only there."""
    number, reached = 0, True
    while reached:
        number += 1
        failing = Countdown(number)
        database = FaultyDatabase(bench.database, failing)
        faulty, name = bench.using(FaultyDisk(failing), database), f"b{number}.md"
        with suppress(MemdError, OSError):
            to = ExtractionCursor(name, "/t.jsonl", number, "uuid")
            faulty.write(name, topic("b"), cursor_moved(bench.directory, to))
        reached = failing.reached
        failing.fail_at = 0
        bench.rows.forget()
        bench.write("c.md", topic("c", str(number)))
        moved = read_cursor(Docs(bench.database), bench.directory, name)
        assert (name in bench.topics()) == (moved is not None)
    assert number > 12


def test_rows_come_with_the_change(bench: Bench) -> None:
    """The next process takes nothing that memd wrote for the work of others."""
    bench.write("b.md", topic("b"))
    bench.write("a.md", None)
    assert Bench(bench.root, bench.database).look() == []


def test_a_pruned_history_keeps_the_texts_of_files(bench: Bench) -> None:
    """What a file says now is needed to show what others change in it."""
    for number in range(4):
        bench.write("a.md", topic("a", f"text {number}"))
    while prune(bench.log, 0) != (0, 0):
        pass
    assert bench.log.select() == ()
    bench.save("a.md", PERSON)
    (record,) = bench.look()
    assert bench.log.body(record.steps[0].before) == topic("a", "text 3")


def test_a_conflict_keeps_the_refused_text(bench: Bench) -> None:
    """Two texts for one line: the live one stays, the history has the other."""
    bench.write("a.md", PERSON)
    with pytest.raises(MemdError, match="what was refused is kept as") as raised:
        bench.commit(Draft((FileEdit("a.md", NEW, sha256(OLD)),)))
    kept = bench.log.find(bench.directory, str(raised.value.facts["change"]), refused=True)
    assert kept is not None
    assert bench.log.body(kept.steps[0].after) == NEW
    assert bench.topics() == {"a.md": PERSON}
