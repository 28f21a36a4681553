"""The few system calls that change a memory directory, with and without the system's help."""

import errno
import fcntl
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memd.base import limits
from memd.files import disk as exchange
from memd.files.disk import (
    EXCHANGE,
    NOREPLACE,
    NOT_A_MEMORY,
    Disk,
    find_renamer,
    real_disk,
)


def refusing(code: int) -> exchange.Renamer:
    """Return a rename that a file system refuses."""

    def rename(_folder: int, _source: str, _target: str, _how: str) -> None:
        raise OSError(code, os.strerror(code))

    return rename


DISKS: dict[str, Callable[[], Disk]] = {
    "native": real_disk,
    "portable": Disk,
    "refused": lambda: Disk(refusing(errno.EINVAL)),
}


@pytest.fixture(params=DISKS)
def disk(request: pytest.FixtureRequest) -> Disk:
    """Return each kind of disk; all must behave alike."""
    return DISKS[request.param]()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    """Open an empty folder."""
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield fd
    os.close(fd)


def test_an_exchange_swaps_two_files(disk: Disk, folder: int, tmp_path: Path) -> None:
    """After an exchange each name has the other's file, the very same one."""
    (tmp_path / "t.tmp").write_text("new")
    (tmp_path / "a.md").write_text("old")
    before = {name: os.stat(tmp_path / name).st_ino for name in ("t.tmp", "a.md")}
    disk.exchange(folder, "t.tmp", "a.md")
    after = {name: os.stat(tmp_path / name).st_ino for name in ("t.tmp", "a.md")}
    assert after == {"t.tmp": before["a.md"], "a.md": before["t.tmp"]}
    assert sorted(os.listdir(tmp_path)) == ["a.md", "t.tmp"]


@pytest.mark.parametrize("missing", ["t.tmp", "a.md"])
def test_an_exchange_needs_both(disk: Disk, folder: int, tmp_path: Path, missing: str) -> None:
    """An exchange with nothing fails and leaves the other file."""
    for name in {"t.tmp", "a.md"} - {missing}:
        (tmp_path / name).write_text(name)
    with pytest.raises(FileNotFoundError):
        disk.exchange(folder, "t.tmp", "a.md")
    for name in {"t.tmp", "a.md"} - {missing}:
        assert (tmp_path / name).read_text() == name
    assert len(os.listdir(tmp_path)) == 1


def test_a_move_never_replaces(disk: Disk, folder: int, tmp_path: Path) -> None:
    """A move renames; where the target is there, nothing happens at all."""
    (tmp_path / "a").write_text("a")
    disk.move(folder, "a", "b")
    assert os.listdir(tmp_path) == ["b"]
    (tmp_path / "c").write_text("c")
    with pytest.raises(FileExistsError):
        disk.move(folder, "b", "c")
    assert ((tmp_path / "b").read_text(), (tmp_path / "c").read_text()) == ("a", "c")


def test_a_link_of_a_crash_is_used_again(folder: int, tmp_path: Path) -> None:
    """The portable exchange goes on from its own link, and touches no other file of that name."""
    (tmp_path / "x.tmp").write_text("new")
    (tmp_path / "a.md").write_text("old")
    os.link(tmp_path / "a.md", tmp_path / "x-old.tmp")
    Disk().exchange(folder, "x.tmp", "a.md")
    assert ((tmp_path / "a.md").read_text(), (tmp_path / "x.tmp").read_text()) == ("new", "old")
    (tmp_path / "x-old.tmp").write_text("somebody's")
    with pytest.raises(FileExistsError):
        Disk().exchange(folder, "x.tmp", "a.md")
    assert (tmp_path / "a.md").read_text() == "new"
    assert (tmp_path / "x-old.tmp").read_text() == "somebody's"


def test_a_real_failure_is_no_reason_to_try_another_way(folder: int) -> None:
    """Only what the system does not know is done by hand."""
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        Disk(refusing(errno.EIO)).move(folder, "a", "b")


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o400])
def test_a_new_file_has_its_mode_under_any_umask(folder: int, tmp_path: Path, mode: int) -> None:
    """A file is made with exactly the mode asked for, and only where none was."""
    disk = Disk()
    old = os.umask(0o077)
    try:
        file = disk.create(folder, "a.tmp")
        assert os.fstat(file).st_mode & 0o777 == 0o600
        disk.set_mode(file, mode)
    finally:
        os.umask(old)
    disk.write(file, memoryview(b"text"))
    disk.set_mtime(file, 1_000_000_007)
    disk.fsync(file)
    disk.close(file)
    disk.sync_folder(folder)
    status = os.stat(tmp_path / "a.tmp")
    assert (status.st_mode & 0o777, status.st_mtime_ns, status.st_size) == (mode, 1_000_000_007, 4)
    with pytest.raises(FileExistsError):
        disk.create(folder, "a.tmp")


def test_a_system_with_a_stronger_sync_uses_it(folder: int) -> None:
    """Where fsync does not reach the medium, the call that does is made instead."""
    Disk(full_sync=fcntl.F_GETFD).sync_folder(folder)
    with pytest.raises(OSError, match=os.strerror(errno.EINVAL)):
        Disk(full_sync=10_000).sync_folder(folder)


def test_what_is_no_memory_is_seen_as_something_else(folder: int, tmp_path: Path) -> None:
    """Links, folders, FIFOs, sockets and huge files are there, but are never read or followed."""
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")
    with open(tmp_path / "huge", "wb") as file:
        file.truncate(limits.READ_BYTES + 1)
    here = os.open(".", os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as server:
        os.chdir(tmp_path)
        try:
            server.bind("socket")
        finally:
            os.fchdir(here)
            os.close(here)
        for name in ("link", "folder", "fifo", "huge", "socket"):
            results = Disk().read(folder, name)
            assert results is not None
            assert (results.hash, results.content) == (NOT_A_MEMORY, b"")
    with pytest.raises(OSError, match=os.strerror(errno.ENAMETOOLONG)):
        Disk().read(folder, "x" * 300)


class Library:
    """A C library that notes how its rename was called."""

    def __init__(self, *names: str) -> None:
        self.calls: list[tuple[Any, ...]] = []
        for name in names:
            setattr(self, name, self._call)

    def _call(self, *arguments: Any) -> int:
        self.calls.append(tuple(getattr(a, "value", a) for a in arguments))
        return 0


@pytest.mark.parametrize(
    ("system", "machine", "name", "how", "expected"),
    [
        ("linux", "x86_64", "renameat2", EXCHANGE, (3, b"a", 3, b"b", 2)),
        ("linux", "riscv64", "renameat2", NOREPLACE, (3, b"a", 3, b"b", 1)),
        ("linux", "x86_64", "syscall", EXCHANGE, (316, 3, b"a", 3, b"b", 2)),
        ("linux", "aarch64", "syscall", NOREPLACE, (276, 3, b"a", 3, b"b", 1)),
        ("darwin", "arm64", "renameatx_np", EXCHANGE, (3, b"a", 3, b"b", 2)),
        ("darwin", "arm64", "renameatx_np", NOREPLACE, (3, b"a", 3, b"b", 4)),
    ],
)
def test_each_system_is_called_in_its_own_words(
    system: str, machine: str, name: str, how: str, expected: tuple[Any, ...]
) -> None:
    """Linux and macOS get their own call with their own flags."""
    library = Library(name)
    renamer = find_renamer(system, machine, library)
    assert renamer is not None
    renamer(3, "a", "b", how)
    assert library.calls == [expected]


@pytest.mark.parametrize(
    ("system", "machine"), [("linux", "riscv64"), ("darwin", "arm64"), ("freebsd14", "amd64")]
)
def test_a_system_without_the_call_has_none(system: str, machine: str) -> None:
    """Where the library knows no rename with flags, the portable way is taken."""
    assert find_renamer(system, machine, Library()) is None
