"""An archive is whole under its name or not there, whatever fails and whenever the process dies."""

import ctypes
import errno
import fcntl
import os
import platform
import signal
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import anyio
import pytest

from memd.base.errors import Refused
from memd.portable.destination import Destination
from memd.portable.manifest import Manifest, ProjectRecord
from memd.portable.values import ExportRequest
from memd.portable.writing import Staging
from memd.store.disk import Disk, find_renamer, real_disk
from tests.portable.exports import archives_in, checked, content
from tests.support.faults import Countdown, FaultyDisk

FILES = {
    "projects/app/memory/a.md": b"a" * 900,
    "projects/app/memory/sub/ü.md": b"",
    "x.toml": b"x",
}
LEFT = ".memd-export-"
SHAPES = ("out", "out.tar.gz")
FAULTS = (
    (errno.EIO, False, ()),
    (errno.ENOSPC, True, ("create", "write", "fsync", "sync_folder")),
    (errno.EIO, True, ()),
)


class Quick(Disk):
    """The system's disk, but for the wait until it has all: no power is cut here."""

    def fsync(self, file: int) -> None:
        """Do nothing."""
        os.fstat(file)


class Fatal(Countdown):
    """Kills this process where a countdown raises."""

    def step(self, name: str) -> None:
        """Count one call, and die when it is its turn."""
        self.names.append(name)
        if len(self.names) == self.fail_at:
            os.kill(os.getpid(), signal.SIGKILL)


def quick() -> Disk:
    """Return a quick disk with this system's renames, which waits for each file by itself."""
    return Quick(find_renamer(sys.platform, platform.machine(), ctypes.CDLL(None, use_errno=True)))


def write(folder: Path, name: str, disk: Disk | None = None) -> None:
    """Write an archive of three files."""
    packed = name.endswith(".tar.gz")
    staging = Staging(Destination(str(folder), name, packed), disk or quick())
    try:
        staging.open()
        manifest = Manifest(format="memd-export", version=1)
        project = ProjectRecord(id="app", name="app")
        for path, text in FILES.items():
            record = staging.add(path, text, 1_700_000_000_000_000_000)
            assert record is not None
            inside = path.startswith("projects/")
            record.path = path.removeprefix("projects/app/")
            (project.files if inside else manifest.files).append(record)
        manifest.projects.append(project)
        staging.finish(manifest)
    finally:
        staging.close()


def failure(folder: Path, name: str, disk: Disk) -> Refused | None:
    """Write an archive; return what kept it from that, if anything did."""
    try:
        write(folder, name, disk)
    except Refused as error:
        return error
    return None


def left(folder: Path) -> list[str]:
    """Return what exports left beside their destination."""
    return [name for name in os.listdir(folder) if name.startswith(LEFT)]


def state(folder: Path, name: str) -> bool:
    """Say whether the archive is there; where it is, it is whole, and nothing else ever is."""
    assert set(os.listdir(folder)) - set(left(folder)) <= {name}
    if not os.path.lexists(folder / name):
        return False
    found = content(folder / name)
    assert {path: found[path] for path in FILES} == FILES
    assert len(found) == len(FILES) + 2
    return True


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize(("code", "ever", "only"), FAULTS)
def test_a_disk_that_fails_at_any_call_leaves_no_archive(
    tmp_path: Path, name: str, code: int, only: tuple[str, ...], *, ever: bool
) -> None:
    """Each failure is an error that names the destination; the next export finds a clean place."""
    number, passed = 0, False
    while not passed:
        number += 1
        folder = tmp_path / str(number)
        folder.mkdir()
        countdown = Countdown(number, code, ever=ever, only=only)
        error = failure(folder, name, FaultyDisk(countdown, disk=quick(), portion=700))
        if error is not None:
            assert os.strerror(code) in error.sentence
            # Where nothing works any more, a whole archive cannot be taken back.
            there = state(folder, name)
            assert not there or (ever and countdown.names.count("sync_folder") > 0)
            assert ever or not left(folder)
            if not there:
                write(folder, name)
        assert state(folder, name)
        passed = not countdown.reached
        assert not left(folder) or passed or ever
    assert number > 25


@pytest.mark.parametrize("name", SHAPES)
def test_a_death_at_any_call_leaves_the_whole_archive_or_none(tmp_path: Path, name: str) -> None:
    """What it leaves beside is recognised, and the next export removes it."""
    number, died = 0, True
    while died:
        number += 1
        folder = tmp_path / str(number)
        folder.mkdir()
        disk = FaultyDisk(Fatal(number), disk=quick(), portion=700)
        died = in_child(partial(write, folder, name, disk))
        there = state(folder, name)
        assert there or died
        write(folder, "again" if there and name == "out" else f"{'again-' * there}{name}")
        assert left(folder) == []
        assert there or state(folder, name)
    assert number > 25


def in_child(work: Callable[[], None]) -> bool:
    """Do some work in a process of its own; say whether it was killed."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert not os.WIFEXITED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def test_what_another_export_makes_is_left_alone(tmp_path: Path) -> None:
    """Only what nobody holds is removed, and nothing that has another name."""
    for name in ("00000000.tmp", "11111111.tmp", "22222222.tar.gz.tmp", "ffff.tmp", "notes"):
        (tmp_path / f"{LEFT}{name}").mkdir()
    os.symlink("/etc", tmp_path / f"{LEFT}33333333.tmp")
    os.mkfifo(tmp_path / f"{LEFT}44444444.tmp")
    (tmp_path / f"{LEFT}00000000.tmp" / "sub").mkdir()
    held = os.open(tmp_path / f"{LEFT}11111111.tmp", os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        write(tmp_path, "out")
        names = {name.removeprefix(LEFT) for name in left(tmp_path)}
        assert names == {"11111111.tmp", "33333333.tmp", "44444444.tmp", "ffff.tmp", "notes"}
    finally:
        os.close(held)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("system", [True, False])
def test_nothing_that_came_meanwhile_is_overwritten(
    tmp_path: Path, name: str, *, system: bool
) -> None:
    """What somebody puts under the name in the last instant stays, however the system renames."""
    made: list[str] = []

    def come(call: str, target: str) -> None:
        if call.startswith("move"):
            (tmp_path / name).write_text("mine")
            made.append(target)

    disk = FaultyDisk(before=come, disk=real_disk() if system else Disk())
    with pytest.raises(Refused, match="meanwhile"):
        write(tmp_path, name, disk)
    assert made == [name]
    assert os.listdir(tmp_path) == [name]
    assert (tmp_path / name).read_text() == "mine"


@pytest.mark.parametrize("name", SHAPES)
def test_a_system_without_exclusive_renames_writes_the_same(tmp_path: Path, name: str) -> None:
    """Where the kernel has no such call, the nearest safe one gives the same archive."""
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    write(tmp_path / "one", name)
    write(tmp_path / "two", name, Disk())
    assert content(tmp_path / "one" / name) == content(tmp_path / "two" / name)
    assert left(tmp_path / "two") == []


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """Make a folder in which nothing can be made, also not by root."""
    folder = tmp_path / "gone"
    folder.mkdir()
    yield folder
    assert not folder.exists()


def test_a_folder_that_went_away_is_named(read_only: Path) -> None:
    """Where the destination's folder is no longer there, the error says so."""
    read_only.rmdir()
    with pytest.raises(Refused, match="No such file"):
        write(read_only, "out")


@pytest.mark.anyio
async def test_a_cancelled_export_leaves_nothing(tmp_path: Path) -> None:
    """A caller that goes away takes the half archive along."""
    with archives_in(tmp_path / "home") as archives:
        project = archives.project()
        await archives.write(
            project, {"a.md": b"---\nname: a\ndescription: a\ntype: user\n---\n\nx"}
        )
        with anyio.CancelScope() as scope:

            async def stop(done: int, _: int) -> None:
                if done:
                    scope.cancel()
                    await anyio.lowlevel.checkpoint()

            request = ExportRequest(str(tmp_path / "out"), (project, project))
            await archives.exports.write(request, stop)
        assert scope.cancelled_caught
        assert os.listdir(tmp_path) == ["home"]
        await archives.export(tmp_path / "out")
        checked(tmp_path / "out")
