"""A directory on a failing medium: closed, probed, open again."""

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.core.values import FileEdit
from memd.files.disk import ReadOnlyError
from memd.store.changes import ChangeRequest, StorageFailedError
from tests.store.bench import BY, Bench, edits, open_bench, topic
from tests.support.faults import Countdown, FaultyDisk

START = 1000.0


class Failing:
    """A bench whose disk fails every wait for the medium until it is mended."""

    def __init__(self, bench: Bench) -> None:
        self.countdown = Countdown()
        self.bench = bench.using(FaultyDisk(self.countdown))

    def fail(self, *calls: str) -> None:
        """Let these calls fail from now on."""
        self.countdown.fail_at = len(self.countdown.names) + 1
        self.countdown.ever, self.countdown.only = True, calls
        self.countdown.code = errno.EIO

    def mend(self) -> None:
        """End the fault."""
        self.countdown.fail_at = 0

    def write(self, at: float, name: str = "n") -> str:
        """Try to write at a time; return the error's kind, or ""."""
        draft = edits(FileEdit(f"{name}.md", topic(name, str(at))))
        try:
            self.bench.changes.commit(ChangeRequest(self.bench.directory, lambda _: draft, BY, at))
        except (ReadOnlyError, StorageFailedError) as error:
            return error.kind
        return ""


@pytest.fixture
def failing(tmp_path: Path) -> Iterator[Failing]:
    """Open a bench with one memory."""
    with open_bench(tmp_path) as bench:
        bench.write("a.md", topic("a"))
        yield Failing(bench)


def test_two_failed_waits_close_the_directory(failing: Failing) -> None:
    """The third write is refused with a cause and a sentence, and nothing is tried for it."""
    before = failing.bench.tree()
    failing.fail("fsync", "sync_folder")
    assert [failing.write(START + n) for n in range(2)] == ["storage_failed"] * 2
    assert failing.write(START + 2) == "read_only"
    tried = len(failing.countdown.names)
    assert failing.write(START + 2.9) == "read_only"
    assert len(failing.countdown.names) == tried
    with pytest.raises(ReadOnlyError) as caught:
        failing.bench.write("x.md", topic("x"))
    assert (caught.value.code, caught.value.retryable) == (1008, True)
    assert "Input/output error" in caught.value.sentence
    assert failing.bench.tree() == before


def test_writes_work_within_a_second_of_the_end(failing: Failing) -> None:
    """After the fault the next probe opens the directory again, without a restart."""
    failing.fail("fsync", "sync_folder")
    for n in range(3):
        failing.write(START + n)
    failing.mend()
    assert failing.write(START + 2.5) == "read_only"
    assert failing.write(START + 3.0) == ""
    assert failing.bench.topics()["n.md"] == topic("n", "1003.0")
    assert not [path for path in failing.bench.tree() if ".memd-" in path]


def test_an_answer_that_was_given_is_given_again(failing: Failing) -> None:
    """A retry of what is done needs no medium: it is answered while the directory is closed."""
    failing.bench.commit(edits(FileEdit("b.md", topic("b"))), "r1")
    failing.fail("fsync", "sync_folder")
    for n in range(3):
        failing.write(START + n)
    assert failing.bench.commit(edits(FileEdit("b.md", topic("b"))), "r1").repeated


@pytest.mark.parametrize("call", ["create", "write", "fsync", "close", "unlink", "sync_folder"])
def test_a_probe_that_fails_anywhere_keeps_it_closed(failing: Failing, call: str) -> None:
    """Whichever call of the probe fails the directory stays closed, and opens a second later."""
    failing.fail("fsync", "sync_folder")
    for n in range(2):
        failing.write(START + n)
    failing.fail(call)
    assert failing.write(START + 2) == "read_only"
    failing.mend()
    assert failing.write(START + 3) == ""


def test_one_directory_does_not_close_another(failing: Failing, tmp_path: Path) -> None:
    """The health of a directory is its own."""
    failing.fail("fsync", "sync_folder")
    for n in range(3):
        failing.write(START + n)
    failing.mend()
    other = tmp_path / "other"
    draft = edits(FileEdit("o.md", topic("o")))
    failing.bench.changes.commit(ChangeRequest(str(other), lambda _: draft, BY, START + 2.1))
    assert failing.write(START + 2.2) == "read_only"


def test_what_a_crash_leaves_of_a_probe_is_removed(failing: Failing) -> None:
    """The next start removes the probe's file, whole or torn, and keeps a text of somebody."""
    for number, text in enumerate((b"", b"memd looks", b"mine")):
        (failing.bench.path / f".memd-probe-0000000{number}.tmp").write_bytes(text)
    (sentence,) = failing.bench.changes.recover(2.0)
    assert ".memd-probe-00000002.tmp" in sentence
    assert [p for p in failing.bench.tree() if "probe" in p] == [".memd-probe-00000002.tmp"]
