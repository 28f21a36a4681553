"""Files that memd has replaced, and what is written into them afterwards."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.base import limits
from memd.files.disk import real_disk
from memd.store.replaced import DelayedSave, Replaced, late_save_plan, put_back_plan
from tests.store.bench import Bench, open_bench, topic

A, B, C = topic("a", "old"), topic("a", "of memd"), topic("a", "of a person")
LATER = 10.0 + limits.LOOK_SECONDS


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Open a bench with one memory."""
    with open_bench(tmp_path) as opened:
        opened.write("a.md", A)
        yield opened


class Writer:
    """A program that has a memory open for writing while a commit replaces or removes it."""

    def __init__(
        self, bench: Bench, content: bytes | None = B, replaced: Replaced | None = None
    ) -> None:
        self.replaced = replaced or Replaced(real_disk())
        self.bench = bench.keeping(self.replaced)
        self.file = os.open(bench.path / "a.md", os.O_RDWR)
        self.result = self.bench.write("a.md", content)

    def save(self, text: bytes = C) -> None:
        """Write into the file that has lost its name, and close it."""
        os.ftruncate(self.file, 0)
        os.pwrite(self.file, text, 0)
        os.close(self.file)

    def late_saves(self, now: float = LATER) -> tuple[list[DelayedSave], bool]:
        """Ask for late saves."""
        return self.replaced.late_saves(self.bench.directory, now)

    def bring(self, overdue: DelayedSave) -> str | None:
        """Commit a late save and return the change."""
        return self.bench.commit(late_save_plan(overdue, self.bench.journal.blob)).change

    def temporaries(self) -> list[str]:
        """Return the names of replaced files."""
        return [path for path in self.bench.tree() if path.startswith(".memd-")]


def test_half_of_a_save_is_not_read(bench: Bench) -> None:
    """While a program has the file open, whatever stands in it is no save yet."""
    writer = Writer(bench)
    os.ftruncate(writer.file, 0)
    assert writer.late_saves(1e9) == ([], True)
    os.pwrite(writer.file, C[:20], 0)
    assert writer.late_saves(1e9) == ([], True)
    writer.save()
    assert [overdue.body for overdue in writer.late_saves()[0]] == [C]


def test_a_late_save_never_goes_over_newer_work(bench: Bench) -> None:
    """Where somebody has saved the same lines since, the plan leaves the file alone."""
    writer = Writer(bench)
    writer.save()
    (overdue,), _ = writer.late_saves()
    bench.write("a.md", topic("a", "newest"))
    assert writer.bring(overdue) is None
    assert (bench.path / "a.md").read_bytes() == topic("a", "newest")


def test_what_was_emptied_is_merged_with_the_text_before(bench: Bench) -> None:
    """A save that began with an emptied file is merged by what memd had put back there."""
    text = topic("a", "\n\n".join(f"line {n}" for n in range(9)))
    bench.write("a.md", text)
    replaced = Replaced(real_disk())
    kept = bench.keeping(replaced)
    with (bench.path / "a.md").open("wb") as file:
        kept.commit(put_back_plan("a.md", text, None))
        assert (bench.path / "a.md").read_bytes() == text
        kept.write("a.md", text.replace(b"line 1", b"by memd"))
        file.write(text.replace(b"line 7", b"by a person"))
    (overdue,), _ = replaced.late_saves(bench.directory, 1e9)
    kept.commit(late_save_plan(overdue, bench.journal.blob))
    both = text.replace(b"line 1", b"by memd").replace(b"line 7", b"by a person")
    assert (bench.path / "a.md").read_bytes() == both


def test_a_file_that_nobody_writes_to_goes_after_a_moment(bench: Bench) -> None:
    """It stays for the moment in which a program may be about to open it, then it is removed."""
    writer = Writer(bench)
    os.close(writer.file)
    assert writer.late_saves(10.0) == ([], True)
    assert len(writer.temporaries()) == 1
    assert writer.late_saves() == ([], False)
    assert writer.temporaries() == []


def test_the_end_leaves_what_is_open(bench: Bench) -> None:
    """A daemon that ends removes replaced files, but for one that a program still writes to."""
    writer = Writer(bench)
    writer.replaced.close()
    assert len(writer.temporaries()) == 1
    writer.save()
    bench.changes.recover(20.0)
    other = Writer(bench)
    os.close(other.file)
    other.replaced.close()
    assert len(writer.temporaries()) == 1  # the late save, which nobody has read yet


def test_a_start_finds_what_an_earlier_daemon_kept(bench: Bench) -> None:
    """A save that came after a kill is found by the next start, open or closed by then."""
    for closed in (True, False):
        bench.write("a.md", A)
        writer = Writer(bench)
        if closed:
            writer.save()
        again = Replaced(real_disk())
        assert bench.keeping(again).changes.recover(20.0, 10.0) == ()
        if not closed:
            assert again.late_saves(bench.directory, LATER) == ([], True)
            writer.save()
        (overdue,), _ = again.late_saves(bench.directory, LATER)
        assert overdue.body == C
        again.remove_saved(bench.directory, overdue)


def test_a_file_that_is_too_large_stays_and_is_told_of(bench: Bench) -> None:
    """A replaced file that grew beyond what memd reads stays where it is."""
    writer = Writer(bench)
    os.ftruncate(writer.file, limits.READ_BYTES + 1)
    os.close(writer.file)
    assert writer.late_saves() == ([], False)
    (sentence,) = bench.changes.recover(20.0)
    assert "does not know" in sentence


def test_without_leases_a_file_is_kept_for_long(bench: Bench) -> None:
    """Where the system does not say who writes, a late save of the next half minute is found."""
    writer = Writer(bench, replaced=Replaced(real_disk(), lambda _directory, _path: None))
    writer.save()
    assert writer.late_saves(10.0 + limits.HOLD_SECONDS - 1) == ([], True)
    (overdue,), again = writer.late_saves(10.0 + limits.HOLD_SECONDS)
    assert (overdue.body, again) == (C, False)


def test_a_directory_that_is_gone_is_no_reason_to_forget(bench: Bench) -> None:
    """Where the directory cannot be opened nothing is refused, and the next call looks again."""
    writer = Writer(bench)
    writer.save()
    bench.path.rename(bench.root / "elsewhere")
    assert writer.late_saves() == ([], False)
    (bench.root / "elsewhere").rename(bench.path)
    assert [overdue.body for overdue in writer.late_saves()[0]] == [C]
