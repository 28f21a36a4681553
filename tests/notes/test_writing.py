"""Notes on a disk that fails, and in a process that dies: the old ones or the new ones, whole."""

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from memd.base.errors import Conflict, Storage
from memd.base.values import Project
from memd.notes import files
from memd.store.disk import Disk
from tests.notes import killing
from tests.support.faults import Countdown, FaultyDisk

FULL = ("create", "write", "fsync", "sync_folder")
FAULTS = {
    "EIO once": (errno.EIO, False, ()),
    "EIO for ever": (errno.EIO, True, ()),
    "ENOSPC": (errno.ENOSPC, True, FULL),
    "EROFS": (errno.EROFS, True, ()),
    "EMFILE": (errno.EMFILE, True, ("create", "sync_folder")),
}


@pytest.fixture
def place(tmp_path: Path) -> files.NotesPlace:
    """Return where the notes of a session lie."""
    base = str(tmp_path)
    project = Project(cwd="/p", root="/p", memory_dir="", source="", transcripts=base, enabled=True)
    return files.place(project, "s")


def current(place: files.NotesPlace) -> tuple[str, str]:
    """Return the text and the hash of the notes, both "" where there are none."""
    notes = files.read(place)
    return (notes.text, notes.hash) if notes else ("", "")


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("old", ["", killing.text("old")], ids=["new", "replaced"])
def test_a_disk_that_fails_leaves_old_notes(fault: str, old: str, place: files.NotesPlace) -> None:
    """Whatever call fails, the failure is named, the old notes stay, and the next write works."""
    code, ever, only = FAULTS[fault]
    number, failed = 0, 0
    while True:
        number += 1
        if current(place)[1]:
            files.remove(place)
        expected = files.replace(place, old, "") if old else ""
        countdown = Countdown(number, code, ever=ever, only=only)
        new = killing.text("new")
        disk = FaultyDisk(countdown, portion=9_000)
        error = failure(partial(files.replace, place, new, expected, disk))
        # Where nothing works any more behind the exchange, new notes cannot be taken back.
        stuck = ever and not only and swapped(countdown)
        assert current(place)[0] in ((new,) if error is None else (old, new) if stuck else (old,))
        if error is not None:
            failed += 1
            assert os.strerror(code) in error.sentence
        files.replace(place, killing.text("again"), current(place)[1])
        assert current(place)[0] == killing.text("again")
        assert os.listdir(os.path.dirname(place.path)) == ["summary.md"]
        if not countdown.reached:
            break
    assert failed > 1


def failure(call: Callable[[], object]) -> Storage | None:
    """Return how a call failed, ``None`` where it did not."""
    try:
        call()
    except Storage as error:
        return error
    return None


def swapped(countdown: Countdown) -> bool:
    """Say whether the failing call came behind the one that puts new notes in place."""
    done = countdown.names[: countdown.fail_at - 1]
    return "exchange" in done or "move" in done


@pytest.mark.parametrize("old", ["", killing.text("old")], ids=["new", "replaced"])
def test_notes_are_on_the_disk_before_they_are_seen(old: str, place: files.NotesPlace) -> None:
    """The new file is synced before it is put in place, and its folder before that is told."""
    expected = files.replace(place, old, "") if old else ""
    countdown = Countdown()
    files.replace(place, killing.text("new"), expected, FaultyDisk(countdown))
    put = "exchange" if old else "move"
    assert countdown.names == [
        *("create", "set_mode", "write", "fsync", "close", put, "sync_folder", "unlink")
    ]


def test_a_full_disk_keeps_notes_that_go(place: files.NotesPlace) -> None:
    """Where notes cannot be removed the failure is named, and they are there or gone."""
    for number in (1, 2):
        if not current(place)[1]:
            files.replace(place, killing.text("old"), "")
        with pytest.raises(Storage):
            files.remove(place, FaultyDisk(Countdown(number, errno.EROFS, ever=True)))
        assert current(place)[0] in ("", killing.text("old"))


class SavingDisk(Disk):
    """The real disk, on which somebody saves the notes right before they are put in place."""

    def __init__(self, save: Callable[[], object]) -> None:
        super().__init__()
        self._save = save

    def exchange(self, folder: int, temp: str, live: str) -> None:
        """Save once, then exchange."""
        save, self._save = self._save, bool
        save()
        super().exchange(folder, temp, live)

    def move(self, folder: int, source: str, target: str) -> None:
        """Save, then move."""
        self._save()
        super().move(folder, source, target)


@pytest.mark.parametrize("old", ["", killing.text("old")], ids=["new", "replaced"])
def test_what_somebody_saves_meanwhile_stays(old: str, place: files.NotesPlace) -> None:
    """A save between the comparison and the exchange comes back, and the writer is told."""
    expected = files.replace(place, old, "") if old else ""
    path = Path(place.path)

    def save() -> None:
        aside = path.with_name("aside")
        aside.write_text("# By an editor\n")
        aside.rename(path)

    with pytest.raises(Conflict):
        files.replace(place, killing.text("new"), expected, SavingDisk(save))
    assert path.read_text() == "# By an editor\n"
    assert os.listdir(path.parent) == ["summary.md"]


def test_a_killed_writer_leaves_notes_whole(tmp_path: Path) -> None:
    """Killed before any call, notes are old or new with the cursor that fits, and go on."""
    result = subprocess.run(
        [sys.executable, killing.__file__, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    kills = [json.loads(line) for line in result.stdout.splitlines()]
    states = {
        "new": ("", killing.text("new")),
        "replace": (killing.text("old"), killing.text("new")),
        "remove": (killing.text("old"), ""),
    }
    for kill in kills:
        assert kill["text"] in states[kill["operation"]], kill["before"]
        assert kill["again"] == killing.text("again")
        assert kill["left"] == ["summary.md"]
    calls = {(kill["operation"], kill["before"]) for kill in kills}
    assert {("new", "move"), ("replace", "exchange"), ("replace", "unlink")} <= calls
    assert {kill["text"] for kill in kills if kill["operation"] == "replace"} == set(
        states["replace"]
    )
