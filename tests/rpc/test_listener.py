"""The listening socket."""

import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.base.errors import Refused
from memd.rpc.listener import (
    inherited_listener,
    launchd_listener,
    make_listener,
    private_directory,
)


@pytest.fixture
def folder() -> Iterator[Path]:
    """Make a directory with a short path, since a socket's path must fit."""
    with tempfile.TemporaryDirectory(prefix="memd-") as path:
        yield Path(path)


@pytest.mark.parametrize("umask", [0o000, 0o002, 0o022, 0o077])
def test_modes_hold_under_any_umask(folder: Path, umask: int) -> None:
    """The directory is 0700, the socket 0600, and the umask is what it was before."""
    code = (
        "import os, sys; os.umask(int(sys.argv[2]))\n"
        "from memd.rpc.listener import make_listener\n"
        "listener = make_listener(sys.argv[1])\n"
        "folder, path = os.path.dirname(sys.argv[1]), sys.argv[1]\n"
        "print(*[oct(os.stat(p).st_mode & 0o7777) for p in (folder, path)], os.umask(0))"
    )
    command = [sys.executable, "-c", code, str(folder / "a/b/memd.sock"), str(umask)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0o700", "0o600", str(umask)]


@pytest.mark.parametrize("kind", ["file", "directory", "link", "fifo"])
def test_anything_else_in_its_place_is_left_alone(folder: Path, kind: str) -> None:
    """What is no socket of ours is refused and stays."""
    path = folder / "memd.sock"
    if kind == "file":
        path.write_text("mine")
    elif kind == "directory":
        path.mkdir()
    elif kind == "link":
        path.symlink_to("/dev/null")
    else:
        os.mkfifo(path)
    before = os.lstat(path)
    with pytest.raises(Refused, match="no socket of ours"):
        make_listener(str(path))
    assert os.path.samestat(before, os.lstat(path))


@pytest.mark.parametrize("mode", [0o755, 0o750, 0o701, 0o770, 0o1777])
def test_a_directory_open_to_others_is_refused(folder: Path, mode: int) -> None:
    """A directory that others may use in any way is refused, and not changed."""
    folder.chmod(mode)
    with pytest.raises(Refused, match=f"mode {mode:04o}"):
        make_listener(str(folder / "memd.sock"))
    assert stat.S_IMODE(folder.stat().st_mode) == mode


def test_a_link_in_place_of_the_directory_is_refused(folder: Path) -> None:
    """The last component of the directory's path is no link; a file is none either."""
    (folder / "real").mkdir(mode=0o700)
    (folder / "link").symlink_to("real")
    (folder / "file").touch()
    for name in ("link", "file"):
        with pytest.raises(Refused):
            make_listener(str(folder / name / "memd.sock"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a directory of someone else")
def test_a_foreign_directory_is_refused(folder: Path) -> None:
    """A directory of another user is refused even when we could use it."""
    (folder / "d").mkdir(mode=0o700)
    os.chown(folder / "d", 65534, 65534)
    with pytest.raises(Refused, match="belongs to user 65534"):
        private_directory(str(folder / "d"))


def test_a_path_that_does_not_fit_is_refused_in_words(folder: Path) -> None:
    """The kernel's limit is named instead of met."""
    with pytest.raises(Refused, match="shorter"):
        make_listener(f"{folder}/{'x' * 120}")


def test_a_name_that_cannot_be_bound_is_refused(folder: Path) -> None:
    """A path that ends in a slash has no name to bind."""
    with pytest.raises(Refused):
        make_listener(f"{folder}/")


INHERIT = """
import os, socket, sys
from memd.rpc.listener import Refused, inherited_listener
kind = sys.argv[1]
made = socket.socket(socket.AF_INET if kind == "inet" else socket.AF_UNIX)
if kind != "deaf" and kind != "inet":
    made.bind(sys.argv[2])
    made.listen()
if kind == "file":
    os.dup2(os.open("/dev/null", os.O_RDONLY), 3)
elif kind != "none":
    os.dup2(made.fileno(), 3)
environ = {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1"}
try:
    found = inherited_listener(environ, os.getpid())
except Refused as error:
    print(error.sentence)
else:
    print(found.fileno(), os.get_inheritable(3), found.getblocking())
"""


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("good", "3 False False"),
        ("deaf", "no listening Unix socket"),
        ("inet", "no listening Unix socket"),
        ("file", "Socket operation on non-socket"),
    ],
)
def test_systemd_hands_over_descriptor_three(folder: Path, kind: str, said: str) -> None:
    """A listening Unix socket is taken, close-on-exec and non-blocking; others are refused."""
    command = [sys.executable, "-W", "ignore", "-c", INHERIT, kind, str(folder / "s")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert said in done.stdout


@pytest.mark.parametrize(
    "environ",
    [{}, {"LISTEN_PID": "1", "LISTEN_FDS": "1"}, {"LISTEN_PID": "7", "LISTEN_FDS": "0"}],
)
def test_without_a_hand_over_there_is_none(environ: dict[str, str]) -> None:
    """Variables of another process, or no descriptors, mean nothing was handed over."""
    assert inherited_listener(environ, 7) is None


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS has launchd")
def test_launchd_is_only_asked_on_macos() -> None:
    """Elsewhere there is no such socket."""
    assert launchd_listener("Listener") is None
