"""Opening, listing and reading below a memory directory, and refusing the rest."""

import errno
import hashlib
import os
import socket
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from memd.files import directory as paths
from memd.files import kernel
from memd.files.directory import (
    Directory,
    DirectoryMissingError,
    DirectoryUnusableError,
    FileTooLargeError,
    FileUnreadableError,
    PathRefusedError,
)
from tests.corpora import PLACE
from tests.files.hostile import hostile

PAYLOADS = PLACE / "paths" / "all_traversals.txt.gz"


@pytest.fixture
def memories(tmp_path: Path) -> Path:
    """Make a memory directory with ordinary, foreign and hostile contents."""
    return hostile(tmp_path)


@pytest.mark.parametrize(
    "name",
    [
        *("", ".", "..", "/a.md", "a//b.md", "../secret.md", "sub/../../secret.md", "a.md/"),
        *("./a.md", "a\0.md", "\ud800.md", "\udcff.md", "link.md", "out.md", "sub/loop/a.md"),
        *("folder.md", "fifo.md", "x" * 300 + ".md"),
    ],
)
def test_what_leads_out_or_is_no_file_is_refused(memories: Path, name: str) -> None:
    """Traversal, links and what is no regular file end in one kind of error, without hanging."""
    with Directory(str(memories)) as directory:
        with pytest.raises(PathRefusedError) as caught:
            directory.stat(name)
        assert caught.value.sentence.isprintable()
        with pytest.raises(PathRefusedError):
            directory.read(name, 10)


def test_the_parent_of_a_name_is_held_open(memories: Path) -> None:
    """A writer gets the folder's descriptor and the last component, and may ask for folders."""
    with Directory(str(memories)) as directory:
        with directory.parent("a.md") as (fd, last):
            assert (fd, last) == (directory.fd, "a.md")
        with directory.parent("sub/deep/new.md") as (fd, last):
            os.close(os.open(last, os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=fd))
        assert (memories / "sub/deep/new.md").exists()
        with pytest.raises(DirectoryMissingError), directory.parent("x/y/new.md"):
            pass
        with directory.parent("x/y/new.md", create=True) as (fd, last):
            assert last == "new.md"
            assert os.fstat(fd).st_ino == (memories / "x/y").stat().st_ino
        assert stat.S_IMODE((memories / "x").stat().st_mode) == 0o700
        for name in ("sub/loop/new.md", "a.md/new.md"):
            with pytest.raises(PathRefusedError), directory.parent(name, create=True):
                pass
        with pytest.raises(FileUnreadableError):  # noqa: SIM117 - one thing per line
            with directory.parent("x" * 300 + "/new.md", create=True):
                pass


def test_a_directory_is_made_with_its_parents(tmp_path: Path) -> None:
    """What memd makes is private; what was there keeps its mode."""
    (tmp_path / "old").mkdir()
    (tmp_path / "old").chmod(0o755)  # a umask has its say in what mkdir makes
    path = tmp_path / "old" / "projects" / "-a" / "memory"
    for _ in range(2):
        Directory(f"{path}/", create=True).close()
    assert [stat.S_IMODE(p.stat().st_mode) for p in (path, path.parent, path.parent.parent)] == [
        0o700
    ] * 3
    assert stat.S_IMODE((tmp_path / "old").stat().st_mode) == 0o755


def test_directories_that_are_made_at_once(tmp_path: Path) -> None:
    """Threads that make directories below the same missing parents do not disturb one another."""
    for number in range(50):
        ready = threading.Barrier(4)

        def make(name: str, ready: threading.Barrier = ready, number: int = number) -> bool:
            ready.wait()
            with Directory(str(tmp_path / f"p{number}" / "q" / name), create=True):
                return True

        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(make, ("a", "b", "c", "d"))) == [True] * 4


@pytest.mark.parametrize("below", ["", "/below/it"])
def test_the_directory_of_a_link_to_nowhere_is_made(tmp_path: Path, below: str) -> None:
    """Where a link leads to a directory that is gone, the directory is made at its target."""
    (tmp_path / "dangling").symlink_to("nowhere/x")
    with Directory(f"{tmp_path}/dangling{below}", create=True):
        assert (tmp_path / f"nowhere/x{below}").is_dir()


def test_a_directory_that_cannot_be_opened(tmp_path: Path) -> None:
    """Missing, a file, in a circle, relative or impossible: each has its own error."""
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(DirectoryMissingError):
        Directory(f"{tmp_path}/no")
    with pytest.raises(DirectoryMissingError):
        Directory(f"{tmp_path}/dangling")
    for path in ("file", "file/x", "file/x/y", "circle"):
        with pytest.raises(DirectoryUnusableError):
            Directory(f"{tmp_path}/{path}", create=True)
    for path in ("relative", "", f"{tmp_path}/\0", f"{tmp_path}/\ud800"):
        with pytest.raises(PathRefusedError):
            Directory(path, create=True)


_WITHOUT_DESCRIPTORS = """
import os, resource, sys
from memd.files.directory import Directory, DirectoryUnusableError

soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
first = os.open("/", os.O_RDONLY)
os.close(first)
resource.setrlimit(resource.RLIMIT_NOFILE, (first, hard))
try:
    Directory(sys.argv[1])
except DirectoryUnusableError as error:
    print(error.facts["cause"])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
with Directory(sys.argv[1]):
    print("open")
"""


def test_a_want_of_descriptors_is_told_and_forgotten(tmp_path: Path) -> None:
    """The first look of a process without descriptors has its error, and decides nothing."""
    command = [sys.executable, "-c", _WITHOUT_DESCRIPTORS, str(tmp_path)]
    cause = os.strerror(errno.EMFILE)
    told = subprocess.check_output(command, text=True).splitlines()
    assert told == [cause, "open"]


def test_closing_twice_is_nothing(tmp_path: Path) -> None:
    """A closed directory stays closed and never closes somebody else's descriptor."""
    directory = Directory(str(tmp_path))
    directory.close()
    directory.close()
    assert directory.fd == -1
    with pytest.raises(FileUnreadableError):
        directory.read("a.md", 1)


def test_size_is_capped(memories: Path) -> None:
    """A file above the limit is refused before it is loaded; its head can still be had."""
    (memories / "big.md").write_bytes(b"x" * 1001)
    with Directory(str(memories)) as directory:
        with pytest.raises(FileTooLargeError) as caught:
            directory.read("big.md", 1000)
        assert caught.value.facts["size"] == 1001
        answer = directory.read("big.md", 1001)
        assert answer is not None
        assert len(answer[0]) == 1001
        head = directory.read_head("big.md", 10)
        assert head is not None
        assert head[0] == b"x" * 10


def test_a_file_that_grows_while_it_is_read_is_capped() -> None:
    """The bytes themselves are counted, whatever the status said before."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"x" * 100)
        assert kernel.read_bytes(ours.fileno(), 30, 5) == b"x" * 30
        theirs.close()
        assert kernel.read_bytes(ours.fileno(), 1000, 5) == b"x" * 70


def test_a_strangers_file_is_refused(memories: Path) -> None:
    """Only files of this user, of root and of the directory's owner count as memories."""
    status = (memories / "a.md").stat()
    foreign = os.stat_result(
        (status.st_mode, 0, 0, 1, 4242, 0, 0, status.st_atime, status.st_mtime, status.st_ctime)
    )
    paths._check("a.md", foreign, frozenset((4242,)))
    with pytest.raises(PathRefusedError, match="another user"):
        paths._check("a.md", foreign, frozenset((0, 1000)))


def test_a_digest_is_of_the_whole_file_whatever_its_size(memories: Path) -> None:
    """A file that is too large to load still has a hash; what is no file of ours has none."""
    body = b"x" * (5 << 20)
    (memories / "large.md").write_bytes(body)
    with Directory(str(memories)) as directory:
        answer = directory.digest("large.md")
        assert answer is not None
        assert (answer[0], answer[1].st_size) == (hashlib.sha256(body).hexdigest(), 5 << 20)
        assert directory.digest("none.md") is None
        for name in ("link.md", "fifo.md", "../secret.md"):
            with pytest.raises(PathRefusedError):
                directory.digest(name)
