"""The two ways of opening a name beneath a directory behave alike."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.files import kernel
from memd.files.kernel import FOLDER, kernel_walks, open_beneath

WAYS = [True, False] if kernel_walks() else [False]


@pytest.fixture
def root(tmp_path: Path) -> Iterator[int]:
    """Open a directory with a file, a folder and links out of it."""
    (tmp_path / "secret").write_bytes(b"secret")
    inside = tmp_path / "inside"
    (inside / "sub" / "deep").mkdir(parents=True)
    (inside / "a.md").write_bytes(b"a")
    (inside / "sub" / "deep" / "b.md").write_bytes(b"b")
    (inside / "link.md").symlink_to("a.md")
    (inside / "out").symlink_to(tmp_path)
    (inside / "dangling").symlink_to("nowhere")
    fd = os.open(inside, FOLDER)
    yield fd
    os.close(fd)


@pytest.mark.parametrize("kernel", WAYS)
@pytest.mark.parametrize("name", ["link.md", "out", "out/secret", "dangling", "dangling/x"])
def test_no_link_is_followed(root: int, name: str, *, kernel: bool) -> None:
    """A link anywhere in the name is an error of its own, also a harmless one."""
    with pytest.raises(OSError, match="symbolic") as caught:
        open_beneath(root, name, os.O_RDONLY, kernel=kernel)
    assert caught.value.errno == errno.ELOOP


@pytest.mark.parametrize("kernel", WAYS)
def test_no_descriptor_is_left_open(root: int, *, kernel: bool) -> None:
    """Neither an answer nor an error leaks a descriptor."""
    before = sorted(os.listdir("/dev/fd"))
    for name in ("sub/deep/no.md", "sub/out/x", "out/secret", "sub/deep/b.md"):
        try:
            os.close(open_beneath(root, name, os.O_RDONLY, kernel=kernel))
        except OSError:
            continue
    assert sorted(os.listdir("/dev/fd")) == before


def test_the_way_is_chosen_by_trying() -> None:
    """Where the system is another, or the call is unknown or forbidden, the walk is used."""
    assert kernel_walks("darwin") is False
    assert kernel_walks("linux", 0x7FFF) is False


def test_an_endless_race_ends_in_the_walk(root: int) -> None:
    """A rename that makes the kernel ask for another try is met a few times, then walked around."""
    tries: list[str] = []

    def lose(_: int, name: str, __: int) -> int:
        tries.append(name)
        raise BlockingIOError

    assert kernel._kernel_open(root, "a.md", os.O_RDONLY, lose) is None
    assert 1 < len(tries) < 100
