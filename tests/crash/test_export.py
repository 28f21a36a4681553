"""Kill -9, a full disk and a failing one at every system call of an export."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crash import exporting, kill
from tests.crash.conftest import FIGURE
from tests.portable.exports import checked

pytestmark = [
    pytest.mark.crash,
    pytest.mark.skipif(bool(kill.missing()), reason=kill.missing() or "strace works"),
]
DRIVER = Path(exporting.__file__)
CALLS = ("openat", "write", "fsync", "renameat2", "mkdir", "mkdirat", "utimensat", "fchmod")
BENCH = kill.Point("mkdir", 1)  # what the bench does first: the memory directory is there


class Trial:
    """Exports of one prepared home, each of another copy."""

    def __init__(self, folder: Path, shape: str) -> None:
        self.shape = shape
        self.template, self.root = folder / "template", folder / "root"
        self.template.mkdir()
        done = kill.run(self.template, shape, "prepare", driver=DRIVER)
        assert done.returncode == 0, done.stderr
        (self.template / "archive").mkdir()

    def restore(self) -> None:
        """Begin anew."""
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.copytree(self.template, self.root)

    def points(self) -> list[kill.Point]:
        """Return every call that changes something below the archive's folder."""
        self.restore()
        return kill.points(self.root, self.shape, "run", output=False, driver=DRIVER)

    def wrong(self, said: str) -> str:
        """Say what is not as promised after an end; the next export has to succeed."""
        folder, name = self.root / "archive", exporting.NAMES[self.shape]
        there = os.path.lexists(folder / name)
        others = [n for n in os.listdir(folder) if n != name and not n.startswith(".memd-export-")]
        if others or ("acknowledged" in said and not there):
            return f"{others} beside it, or an acknowledged archive is not there"
        if there:  # whole, before anything is cleaned up
            shutil.move(folder / name, self.root / f"whole-{name}")
            checked(self.root / f"whole-{name}")
        done = kill.run(self.root, self.shape, "run", driver=DRIVER)
        if "acknowledged" not in done.stdout:
            return f"the next one fails: {done.stdout}{done.stderr}"
        checked(folder / name)
        return "" if os.listdir(folder) == [name] else "something is left over"


@pytest.fixture(params=exporting.NAMES)
def trial(request: pytest.FixtureRequest, tmp_path: Path) -> Trial:
    """Prepare memories, and the shape of the archive."""
    return Trial(tmp_path, request.param)


def test_a_kill_at_any_call_leaves_no_half_archive(
    trial: Trial, record_property: Callable[[str, object], None]
) -> None:
    """The archive is whole or not there, and the next export removes what is left."""
    every, bad = trial.points(), []
    for point in every:
        trial.restore()
        said = kill.killed(trial.root, trial.shape, "run", point, driver=DRIVER)
        if wrong := trial.wrong(said):
            bad.append((point, wrong))
    words = f"export {trial.shape}, kill: {len(every)} points, {len(bad)} bad"
    record_property(FIGURE, words)
    assert len(every) > 30
    assert bad == []


@pytest.mark.parametrize("code", ["ENOSPC", "EIO"])
def test_a_refused_call_leaves_nothing(
    trial: Trial, code: str, record_property: Callable[[str, object], None]
) -> None:
    """A call that fails, and all later ones of its name, is an error; nothing half stays."""
    every = [point for point in trial.points() if point.call in CALLS and point != BENCH]
    bad = []
    for point in every:
        trial.restore()
        inject = f"inject={point.call}:error={code}:when={point.number}+"
        strace = ("-e", f"trace={point.call}", "-e", inject, "-o", os.devnull)
        done = kill.run(trial.root, trial.shape, "run", *strace, driver=DRIVER)
        said = done.stdout
        if wrong := trial.wrong(said):
            bad.append((point, wrong))
        elif "acknowledged" in said and point.call != "openat":  # a cache that cannot be written
            bad.append((point, "it said that all went well"))
    record_property(FIGURE, f"export {trial.shape}, {code}: {len(every)} points, {len(bad)} bad")
    assert len(every) > 30
    assert bad == []
