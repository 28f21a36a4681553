"""Commits with what others do at the same time."""

import os
from pathlib import Path

from memd.core import limits
from memd.core.values import Draft, FileEdit
from memd.files.disk import real_disk
from memd.state.baseline import Baseline
from memd.store.changes import ChangeRequest
from memd.store.commits import Commits
from memd.store.detection import Detection
from memd.store.reading import DirectoryReader
from memd.store.replaced import Replaced
from memd.testing.clock import FakeClock
from memd.watch.external import ExternalEdits
from tests.store.bench import BY, Bench, open_bench, topic


def commits(bench: Bench) -> Commits:
    """Return commits on a bench."""
    external = ExternalEdits(bench.journal, Baseline(bench.database))
    detection = Detection(external, DirectoryReader(FakeClock()))
    replaced = Replaced(real_disk())
    return Commits(bench.journal, bench.keeping(replaced).changes, external, detection, replaced)


def request(bench: Bench, body: bytes, now: float = 0.0) -> ChangeRequest:
    """Return the wish to write one memory."""
    draft = Draft((FileEdit("a.md", body),))
    return ChangeRequest(bench.directory, lambda _: draft, BY, 1.0, monotonic=now)


def test_a_late_save_becomes_the_file_again(tmp_path: Path) -> None:
    """What goes into a file that memd has replaced is a change; without one there is none."""
    with open_bench(tmp_path) as bench:
        made = commits(bench)
        made.change(request(bench, topic("a", "old")))
        file = os.open(bench.path / "a.md", os.O_WRONLY)
        made.change(request(bench, topic("a", "new")))
        assert made.late_saves(bench.directory, 2.0, 0.0) == ([], True)
        overdue = topic("a", "from a person")
        os.pwrite(file, overdue, 0)
        os.close(file)
        (saved,), _ = made.late_saves(bench.directory, 2.0, limits.LOOK_SECONDS)
        assert [change.path for change in saved.files] == ["a.md"]
        made.close()
        assert bench.topics() == {"a.md": overdue}


def test_a_late_save_that_cannot_be_the_file_is_kept(tmp_path: Path) -> None:
    """Where somebody has saved since, the late text is in the history alone."""
    with open_bench(tmp_path) as bench:
        made = commits(bench)
        made.change(request(bench, topic("a", "old")))
        file = os.open(bench.path / "a.md", os.O_WRONLY)
        made.change(request(bench, topic("a", "new")))
        overdue = topic("a", "from a person")
        os.pwrite(file, overdue, 0)
        os.close(file)
        bench.save("a.md", topic("a", "newest"))
        (saved,), _ = made.late_saves(bench.directory, 2.0, limits.LOOK_SECONDS)
        assert bench.topics() == {"a.md": topic("a", "newest")}
        assert bench.journal.blob(saved.files[0].after or "") == overdue
        made.close()


def test_a_rehearsal_writes_nothing(tmp_path: Path) -> None:
    """It says what would become of the files, and nothing does."""
    with open_bench(tmp_path) as bench:
        result = commits(bench).rehearse(request(bench, topic("a")))
        assert [(file.path, file.action) for file in result.files] == [("a.md", "created")]
        assert bench.tree() == {}
