"""Kill -9 and a full disk at every system call of a change of the state file's format."""

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from memd.core.errors import MemdError
from memd.state.formats import copies
from tests.crash import kill, migrating
from tests.crash.conftest import FIGURE
from tests.state.test_formats import dump
from tests.state.test_migration import opened

pytestmark = pytest.mark.skipif(bool(kill.missing()), reason=kill.missing() or "strace works")
DRIVER = Path(migrating.__file__)
FULL = ("write", "pwrite64", "fsync", "fdatasync", "ftruncate", "fallocate", "rename", "openat")
EVERY = [pytest.param(100, id="sample"), pytest.param(1, id="all", marks=pytest.mark.crash)]


class Trial:
    """State files of an older memd, each of another copy."""

    def __init__(self, folder: Path, version: str) -> None:
        self.version = version
        self.template, self.root = folder / "template", folder / "root"
        self.template.mkdir()
        done = kill.run(self.template, version, "prepare", driver=DRIVER)
        assert done.returncode == 0, done.stderr
        self.old = dump(self.template / "state.db")
        self.restore()
        opened(self.root / "state.db").close()
        self.new = dump(self.root / "state.db")

    def restore(self) -> None:
        """Begin anew."""
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.copytree(self.template, self.root)

    def points(self) -> list[kill.Point]:
        """Return every call that changes something below the folder."""
        self.restore()
        return kill.points(self.root, self.version, "run", output=False, driver=DRIVER)

    def wrong(self, *, acknowledged: bool) -> str:
        """Say what is not as promised after an end; the next start has to succeed."""
        path = self.root / "state.db"
        found = dump(path)
        if found not in (self.old, self.new) and not self._tables_alone(path):
            return "it is neither the old file nor the new one"
        made = copies(str(path))
        if found != self.old and [number for number, _ in made] != [int(self.version)]:
            return "it has a new format and no copy"
        if any(dump(Path(copy)) != self.old for _, copy in made):
            return "a copy is not whole"
        if acknowledged and found != self.new:
            return "it was acknowledged and is not new"
        opened(path).close()
        if dump(path) != self.new:
            return "the next start does not bring it up"
        left = {name for name in os.listdir(self.root) if name.startswith("state.db")}
        expected = {"state.db", f"state.db.format-{self.version}"}
        return "" if left == expected else f"{left - expected} is left over"

    def _tables_alone(self, path: Path) -> bool:
        """Whether only tables without a row are missing: they are made after the format."""
        with closing(sqlite3.connect(path)) as connection:
            version = connection.execute("PRAGMA user_version").fetchone()
        found = [f"{version}", *dump(path)[1:]]
        return all(line in self.new for line in found)


@pytest.fixture(params=["1", "2"])
def trial(request: pytest.FixtureRequest, tmp_path: Path) -> Trial:
    """Prepare the file of an older memd."""
    return Trial(tmp_path, request.param)


@pytest.mark.parametrize("every", EVERY)
def test_a_kill_at_any_call_leaves_the_old_file_or_the_new_one(
    trial: Trial, every: int, record_property: Callable[[str, object], None]
) -> None:
    """Nothing is half, a new format has its copy, and the next start completes it."""
    points, bad = trial.points(), []
    for point in points[::every]:
        trial.restore()
        said = kill.killed(trial.root, trial.version, "run", point, driver=DRIVER)
        if wrong := trial.wrong(acknowledged="acknowledged" in said):
            bad.append((point, wrong))
    record_property(
        FIGURE, f"format {trial.version}, kill: {len(points[::every])} points, {len(bad)} bad"
    )
    assert len(points) > 50
    assert bad == []


@pytest.mark.parametrize("every", EVERY)
def test_a_kill_while_the_file_is_created_leaves_one_that_opens(
    tmp_path: Path, every: int, record_property: Callable[[str, object], None]
) -> None:
    """The next start completes it, whatever SQLite left beside it."""
    root = tmp_path / "root"

    def empty() -> None:
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()

    empty()
    points, bad = kill.points(root, "0", "run", output=False, driver=DRIVER), []
    made = dump(root / "state.db")
    # A journal that only a writer can roll back lies there around the first waits for the disk.
    first = [point for point in points if point.call == "fdatasync"][:6]
    chosen = list(dict.fromkeys([*points[::every], *first]))
    for point in chosen:
        empty()
        kill.killed(root, "0", "run", point, driver=DRIVER)
        try:
            opened(root / "state.db").close()
        except MemdError as error:
            bad.append((point, str(error)))
            continue
        if dump(root / "state.db") != made or os.listdir(root) != ["state.db"]:
            bad.append((point, "it is not as a new one"))
    record_property(FIGURE, f"a new state file, kill: {len(chosen)} points, {len(bad)} bad")
    assert len(points) > 50
    assert bad == []


@pytest.mark.crash
@pytest.mark.parametrize("code", ["ENOSPC", "EIO"])
def test_a_refused_call_leaves_the_old_file_or_the_new_one(
    trial: Trial, code: str, record_property: Callable[[str, object], None]
) -> None:
    """Where a call and all later ones of its name fail, nothing is lost by the next start."""
    points = [point for point in trial.points() if point.call in FULL]
    bad = []
    for point in points:
        trial.restore()
        inject = f"inject={point.call}:error={code}:when={point.number}+"
        strace = ("-e", f"trace={point.call}", "-e", inject, "-o", os.devnull)
        done = kill.run(trial.root, trial.version, "run", *strace, driver=DRIVER)
        if wrong := trial.wrong(acknowledged="acknowledged" in done.stdout):
            bad.append((point, wrong))
    record_property(FIGURE, f"format {trial.version}, {code}: {len(points)} points, {len(bad)} bad")
    assert bad == []
