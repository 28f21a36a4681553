"""The port to the disk, on a real disk."""

import os
import socket
from pathlib import Path

import pytest

from memd.instructions.disk import RealDisk

_ROOT = os.geteuid() == 0


@pytest.fixture
def disk() -> RealDisk:
    """Make a disk that remembers nothing."""
    return RealDisk()


def test_what_is_no_file_of_the_user_has_a_reason(tmp_path: Path, disk: RealDisk) -> None:
    """A FIFO, a socket, a folder, a device, a file too large, a circle: none blocks or raises."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    (tmp_path / "device").symlink_to("/dev/zero")
    (tmp_path / "linked").symlink_to("fifo")
    (tmp_path / "circle").symlink_to("circle")
    with socket.socket(socket.AF_UNIX) as server, (tmp_path / "large").open("wb") as large:
        server.bind(str(tmp_path / "socket"))
        large.truncate(1 << 30)
        for name in ("fifo", "folder", "device", "linked", "socket"):
            assert disk.read(str(tmp_path / name)).why_not == "it is no regular file"
        assert disk.read(str(tmp_path / "large")).why_not == "it is larger than 1 MiB"
        assert "cannot be read" in disk.read(str(tmp_path / "circle")).why_not
    assert not any(disk.read(str(path)).text for path in tmp_path.iterdir())


@pytest.mark.parametrize("name", ["a", "a/b", "file/b", "x" * 5000, "\0", "a\0b", "\ud800", "dead"])
def test_what_is_not_there_is_missing(name: str, tmp_path: Path, disk: RealDisk) -> None:
    """A name that no file has, or that no file can have, is missing and nothing else."""
    (tmp_path / "file").write_text("x")
    (tmp_path / "dead").symlink_to("nowhere")
    read = disk.read(f"{tmp_path}/{name}")
    assert read.missing
    assert read.why_not == "there is no such file"
    assert disk.entries(f"{tmp_path}/{name}") == ()
    assert isinstance(disk.real(f"{tmp_path}/{name}"), str)


@pytest.mark.skipif(not _ROOT, reason="only root gives files away")
def test_a_file_of_somebody_else_is_refused(tmp_path: Path, disk: RealDisk) -> None:
    """A file of another user has a reason, also where it was read before it was given away."""
    path = tmp_path / "file"
    path.write_text("x")
    assert disk.read(str(path)).text == "x"
    os.chown(path, 54_321, 54_321)
    assert disk.read(str(path)).why_not == "it belongs to another user"


@pytest.mark.skipif(_ROOT, reason="root reads everything")
def test_a_file_that_may_not_be_read_has_a_reason(tmp_path: Path, disk: RealDisk) -> None:
    """A file without the right to read it has a reason, also where it was read before."""
    path = tmp_path / "file"
    path.write_text("x")
    assert disk.read(str(path)).text == "x"
    path.chmod(0)
    assert "cannot be read" in disk.read(str(path)).why_not


def test_a_changed_file_is_read_anew(tmp_path: Path, disk: RealDisk) -> None:
    """A change of content is seen though size and time of change are as before."""
    path = tmp_path / "file"
    path.write_text("old")
    status = path.stat()
    assert disk.read(str(path)).text == "old"
    other = tmp_path / "other"
    other.write_text("new")
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.replace(path)
    assert disk.read(str(path)).text == "new"
    path.unlink()
    assert disk.read(str(path)).missing
    path.mkdir()
    assert disk.read(str(path)).why_not == "it is no regular file"


def test_links_are_followed_and_their_change_is_seen(tmp_path: Path, disk: RealDisk) -> None:
    """A text has the real path of its file, also after a link on the way leads elsewhere."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    link = tmp_path / "link"
    link.symlink_to("a")
    read = disk.read(f"{link}/file")
    assert (read.real, read.text) == (os.path.realpath(tmp_path / "a/file"), "a")
    link.unlink()
    link.symlink_to("b")
    assert disk.read(f"{link}/file").text == "b"
