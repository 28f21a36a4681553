"""Bringing files into place, and taking them out again."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.base.text import sha256
from memd.files.directory import Directory
from memd.files.disk import real_disk
from memd.state.records import Step
from memd.store.apply import Application, ForeignSaveError
from tests.support.faults import Countdown, FaultyDisk

OLD, NEW = b"old\n", b"new\n"
TEMP = ".memd-1-0-0123abcd.tmp"
UPDATE = Step("a.md", sha256(OLD), sha256(NEW), temp=TEMP)
CREATE = Step("s/n.md", None, sha256(NEW), temp=TEMP)
DELETE = Step("a.md", sha256(OLD), None, temp=TEMP)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Make a directory with one file."""
    (tmp_path / "a.md").write_bytes(OLD)
    return tmp_path


@pytest.fixture
def application(root: Path) -> Iterator[Application]:
    """Open an application on the real disk."""
    with Directory(str(root)) as directory, Application(directory, real_disk()) as opened:
        yield opened


@pytest.mark.parametrize("step", [UPDATE, CREATE])
def test_a_save_while_taking_back_is_given_back(root: Path, step: Step) -> None:
    """A save between the look and the swap of taking back is found and put in place again."""
    saved: list[str] = []

    def save(call: str, _name: str) -> None:
        saved.append(call)
        if saved.count("exchange") + saved.count("move") == 2 and call in {"exchange", "move"}:
            (root / step.path).write_bytes(b"theirs\n")

    disk = FaultyDisk(before=save)
    with Directory(str(root)) as directory, Application(directory, disk) as application:
        application.stage(step, NEW)
        application.swap(step)
        application.take_back()
    assert (root / step.path).read_bytes() == b"theirs\n"


def test_a_second_save_in_the_same_instant_wins(root: Path) -> None:
    """Of two saves that race with one swap the newer is live, and the older is kept aside."""
    saves = {1: b"first\n", 2: b"second\n"}
    count = 0

    def save(call: str, _name: str) -> None:
        nonlocal count
        if call == "exchange":
            count += 1
            if count in saves:
                (root / "editor").write_bytes(saves[count])
                os.rename(root / "editor", root / "a.md")

    disk = FaultyDisk(before=save)
    with Directory(str(root)) as directory, Application(directory, disk) as application:
        application.stage(UPDATE, NEW)
        with pytest.raises(ForeignSaveError):
            application.swap(UPDATE)
        application.remove_temporary(UPDATE, unfinished=NEW)
    assert (root / "a.md").read_bytes() == b"second\n"
    assert (root / TEMP).read_bytes() == b"first\n"


def test_a_file_made_anew_while_the_deletion_is_undone_stays(root: Path) -> None:
    """Giving back a file never replaces one that was made meanwhile."""

    def save(call: str, name: str) -> None:
        if call == "move":
            (root / "a.md").write_bytes(b"changed\n" if name == TEMP else b"made anew\n")

    disk = FaultyDisk(before=save)
    with Directory(str(root)) as directory, Application(directory, disk) as application:
        with pytest.raises(ForeignSaveError):
            application.swap(DELETE)
        application.remove_temporary(DELETE)
    assert (root / "a.md").read_bytes() == b"made anew\n"
    assert (root / TEMP).read_bytes() == b"changed\n"


def test_what_is_gone_or_there_already_is_foreign(root: Path, application: Application) -> None:
    """A file that vanished cannot be replaced, one that appeared cannot be made."""
    application.stage(UPDATE, NEW)
    (root / "a.md").unlink()
    with pytest.raises(ForeignSaveError):
        application.swap(UPDATE)
    application.remove_temporary(UPDATE)
    (root / "s").mkdir()
    (root / "s" / "n.md").write_bytes(NEW)
    application.stage(CREATE, NEW)
    with pytest.raises(ForeignSaveError):
        application.swap(CREATE)
    application.take_back()
    assert (root / "s" / "n.md").read_bytes() == NEW


def test_a_descriptor_is_not_fsynced_again_after_a_failure(root: Path) -> None:
    """The kernel would say yes the second time, whatever became of the bytes."""
    disk = FaultyDisk(Countdown(4, only=("fsync",)))
    with Directory(str(root)) as directory, Application(directory, disk) as application:
        with pytest.raises(OSError, match="Input/output"):
            application.stage(UPDATE, NEW)
        assert disk.countdown.names.count("fsync") == 1
        application.remove_temporary(UPDATE, unfinished=NEW)
