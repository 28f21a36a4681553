"""What others did is noticed, journalled with what was there before, and can be undone."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memd.base.names import INDEX
from memd.base.text import sha256
from memd.state.baseline import Baseline, FileState
from memd.state.records import ChangeRecord, PlannedChange, Step
from memd.watch.external import DetectionScope, ExternalEdits, fingerprint
from tests.changes import history
from tests.store.bench import BY, Bench, open_bench, topic
from tests.stores import files_of

A, B = topic("a", "first"), topic("b", "second")
NEVER = 0.0  # a look at this time takes every status for one that another save could have left
LATER = 2e10  # and one at this time for one that it could not


class Looking:
    """A bench whose directory is looked at."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.path = bench.path
        self.external = ExternalEdits(bench.journal, Baseline(bench.database))

    def inspect(self, at: float = NEVER, **options: Any) -> Any:
        """Look once."""
        return self.external.detect(self.bench.directory, DetectionScope(at, **options))

    def change(self) -> ChangeRecord | None:
        """Look, and return the change that it made."""
        results: ChangeRecord | None = self.inspect().change
        return results

    def actions(self) -> dict[str, str]:
        """Look, and return what happened to each file."""
        change = self.change()
        return {step.path: step.action for step in change.steps} if change else {}

    def history(self) -> int:
        """Return how many changes there are."""
        return len(history(self.bench.journal, self.bench.directory))


@pytest.fixture
def looking(tmp_path: Path) -> Iterator[Looking]:
    """Open a bench with two memories and an index, all of them known."""
    with open_bench(tmp_path) as bench:
        bench.save("a.md", A)
        bench.save("b.md", B)
        bench.save(INDEX, b"- [a](a.md)\n- [b](b.md)\n")
        opened = Looking(bench)
        opened.inspect()
        yield opened


def test_what_cannot_be_read_at_first_sight_is_not_known(tmp_path: Path) -> None:
    """A link in the index's place is passed over when a directory is seen first."""
    with open_bench(tmp_path) as bench:
        (bench.path / INDEX).symlink_to("x")
        bench.save("a.md", A)
        opened = Looking(bench)
        opened.inspect()
        assert files_of(Baseline(bench.database), bench.directory) == {
            "a.md": _state_of(bench.path / "a.md")
        }


def _state_of(file: Path) -> FileState:
    status = file.stat()
    return FileState(sha256(file.read_bytes()), "", status.st_mtime_ns, status.st_mode & 0o777)


def test_a_directory_that_is_claimed_has_only_news(tmp_path: Path) -> None:
    """Where nothing was when memd first wrote, every later file of another is a change."""
    with open_bench(tmp_path) as bench:
        bench.path.rmdir()
        opened = Looking(bench)
        opened.inspect()
        opened.inspect(claim=True)
        bench.path.mkdir()
        bench.save("a.md", A)
        assert opened.actions() == {"a.md": "created"}


def test_an_old_status_saves_reading(looking: Looking) -> None:
    """A file whose status is not young is read once; a save that keeps size and mtime is seen."""
    looking.inspect(LATER)
    file = looking.path / "a.md"
    status = file.stat()
    assert fingerprint(status, status.st_ctime) == ""
    assert fingerprint(status, LATER) != ""
    file.write_bytes(A.replace(b"first", b"FIRST"))
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert looking.actions() == {"a.md": "updated"}


def test_half_of_a_save_waits_for_the_next_look(looking: Looking) -> None:
    """An emptied or absent file is no change to a patient look; one that stays so is."""
    (looking.path / "a.md").write_bytes(b"")
    (looking.path / "b.md").unlink()
    (looking.path / "new.md").write_bytes(b"")
    looking.bench.save("c.md", A)
    noticed = looking.inspect(patient=True)
    assert noticed.unsettled == {"a.md", "b.md", "new.md"}
    assert [step.path for step in noticed.change.steps] == ["c.md"]
    (looking.path / "a.md").write_bytes(B)
    assert looking.actions() == {"a.md": "updated", "b.md": "deleted", "new.md": "created"}


def test_a_set_that_is_not_finished_is_not_taken_for_anothers(looking: Looking) -> None:
    """There is no look between what memd has put in place and the mark that it did."""
    step = Step("a.md", sha256(A), sha256(B))
    bodies = {sha256(A): A, sha256(B): B}
    looking.bench.journal.record(
        PlannedChange(looking.bench.directory, 1.0, BY, "", "00000000", (step,), bodies)
    )
    looking.bench.save("a.md", B)
    assert looking.change() is None
    looking.bench.write("c.md", A)
    assert looking.change() is None


def test_what_cannot_be_asked_about_is_not_gone(looking: Looking) -> None:
    """A link in a file's place means that the memory is gone; an unreadable one is not."""
    (looking.path / "a.md").unlink()
    (looking.path / "a.md").symlink_to("b.md")
    (looking.path / "b.md").unlink()
    (looking.path / "b.md").mkdir()
    (looking.path / INDEX).unlink()
    (looking.path / INDEX).symlink_to("b.md")
    assert looking.actions() == {"a.md": "deleted", "b.md": "deleted", INDEX: "deleted"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_that_memd_may_not_read_is_not_noticed(looking: Looking) -> None:
    """Another user's file, new or in a memory's place, is neither a change nor a deletion."""
    for name in ("a.md", "new.md"):
        looking.bench.save(name, B)
        os.chown(looking.path / name, 12345, -1)
    assert looking.change() is None


def test_the_shadow_outlives_the_process(tmp_path: Path) -> None:
    """What was done while memd was not running is noticed when it looks again."""
    with open_bench(tmp_path) as bench:
        bench.save("a.md", A)
        Looking(bench).inspect()
    bench.save("a.md", B)
    with open_bench(tmp_path) as again:
        assert Looking(again).actions() == {"a.md": "updated"}


def test_a_status_is_trusted_sooner_where_the_clock_is_fine(tmp_path: Path) -> None:
    """Where times have fractions of a second a tenth is enough, with whole seconds it takes two."""
    file = tmp_path / "a.md"
    file.write_text("x")
    os.utime(file, ns=(1_000_000_000, 1_000_000_001))
    status = file.stat()
    assert fingerprint(status, status.st_ctime + 0.05) == ""
    assert fingerprint(status, status.st_ctime + 0.2) != ""
    whole = os.stat_result((*status[:10], *(1.0, 1.0, 1.0), *(10**9, 10**9, 10**9)))
    assert fingerprint(whole, 2.5) == ""
    assert fingerprint(whole, 3.5) != ""


def test_many_statuses_are_written_down_at_last(looking: Looking) -> None:
    """What was learned of many files outlives the process, so that they are not read again."""
    for number in range(80):
        looking.bench.save(f"n{number}.md", topic(f"n{number}"))
    looking.inspect(NEVER)
    looking.inspect(LATER)
    states = files_of(Baseline(looking.bench.database), looking.bench.directory) or {}
    assert all(state.fingerprint for state in states.values())
    assert looking.history() == 1
