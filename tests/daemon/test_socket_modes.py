"""G14: at every instant of a start nobody else can use the socket, and there is no other way in."""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.crash import kill
from tests.support.daemon import Home, daemon_process, throw_away_home
from tests.support.waiting import wait_until_up

_CALLS = "umask,mkdir,mkdirat,bind,chmod,fchmod,fchmodat,chown,fchown,fchownat,rename"
_UMASK = re.compile(r"umask\((0\d*|0)\)")
_MADE = re.compile(r'mkdir(?:at\([^,]+, |\()"([^"]+)", (0\d+)\) = 0')
_BOUND = re.compile(r'bind\(\d+, \{sa_family=AF_UNIX, sun_path="([^"]+)"')
_START = "import os, sys; os.umask(int(sys.argv[1])); os.execv(sys.argv[2], sys.argv[2:])"


@pytest.mark.skipif(bool(kill.missing()), reason=kill.missing() or "strace traces")
@pytest.mark.parametrize(
    "umask",
    [0o000, *(pytest.param(each, marks=pytest.mark.soak) for each in (0o002, 0o022, 0o077))],
)
def test_the_socket_is_private_at_every_instant(umask: int) -> None:
    """Directories are made 0700 and the socket 0600 under any umask, and no mode is changed."""
    with throw_away_home() as home:
        os.rmdir(f"{home.path}/run")
        trace = f"{home.path}/trace"
        # The daemon itself is our child, and strace looks on.
        strace = (shutil.which("strace") or "", "-D", "-f", "-o", trace, "-e", f"trace={_CALLS}")
        memd = (*strace, sys.executable, "-m", "memd", "serve")
        command = (sys.executable, "-c", _START, str(umask), *memd)
        with daemon_process(home, command=command):
            folder, name = os.path.split(home.places.socket)
            modes = [os.stat(path).st_mode & 0o7777 for path in (folder, home.places.socket)]
        lines = Path(trace).read_text().splitlines()
    assert modes == [0o700, 0o600]
    made, bound, changed = played(lines, umask)
    assert {path: oct(mode) for path, mode in made.items() if home.path in path} == {
        path: "0o700" for path in made if home.path in path
    }
    assert folder in made
    assert bound in ({home.places.socket: 0o600}, {name: 0o600})
    assert [line for line in changed if "run" in line or name in line] == []


def played(lines: list[str], umask: int) -> tuple[dict[str, int], dict[str, int], list[str]]:
    """Return the modes with which directories and sockets were made, and changes of modes."""
    made: dict[str, int] = {}
    bound: dict[str, int] = {}
    changed: list[str] = []
    for line in lines:
        if match := _UMASK.search(line):
            umask = int(match[1], 8)
        elif match := _MADE.search(line):
            made[match[1]] = int(match[2], 8) & ~umask
        elif match := _BOUND.search(line):
            bound[match[1]] = 0o777 & ~umask
        elif re.search(r"ch(mod|own)", line):
            changed.append(line)
    return made, bound, changed


@pytest.fixture(name="running")
def _running() -> Iterator[tuple[Home, int]]:
    with throw_away_home() as home, daemon_process(home) as process:
        yield home, process.pid


@pytest.mark.skipif(not os.path.isdir("/proc/self/net"), reason="sockets are told by /proc")
def test_there_is_one_way_in(running: tuple[Home, int]) -> None:
    """The daemon listens at its path alone: on no port, and at no name without a path."""
    home, pid = running
    wait_until_up(home.places, 30)
    listening = [
        words
        for words in map(str.split, table(pid, "unix"))
        if words[3] == "00010000" and words[6] in inodes(pid)
    ]
    assert [words[7] for words in listening] == [home.places.socket]
    abstract = [words for words in map(str.split, table(pid, "unix")) if words[6] in inodes(pid)]
    assert not any(words[7:] and words[7].startswith("@") for words in abstract)
    for kind in ("tcp", "tcp6", "udp", "udp6", "raw", "raw6", "netlink", "packet"):
        assert not inodes(pid).intersection(
            word for row in table(pid, kind) for word in row.split()
        )


def table(pid: int, kind: str) -> list[str]:
    """Return the rows of a table of the kernel's sockets, none where it has no such table."""
    path = Path(f"/proc/{pid}/net/{kind}")
    return path.read_text().splitlines()[1:] if path.exists() else []


def inodes(pid: int) -> set[str]:
    """Return the inodes of the sockets that a process has open."""
    result = set()
    for entry in os.scandir(f"/proc/{pid}/fd"):
        with suppress(FileNotFoundError):  # closed meanwhile
            result.add(os.readlink(entry.path).removeprefix("socket:[").removesuffix("]"))
    return {name for name in result if name.isdigit()}


@pytest.mark.parametrize("what", ["a link", "open to all", "a foreign one"])
def test_a_directory_that_is_not_ours_alone_ends_the_start(what: str) -> None:
    """A start with such a directory for its socket ends with words, and changes nothing of it."""
    if what == "a foreign one" and os.getuid():
        pytest.skip("only root can make a directory of someone else")
    with throw_away_home() as home, tempfile.TemporaryDirectory(prefix="memd-") as other:
        folder = Path(home.places.socket).parent
        if what == "a link":
            folder.symlink_to(other)
        else:
            folder.mkdir(mode=0o700)
            os.chmod(folder, 0o777 if what == "open to all" else 0o700)
        if what == "a foreign one":
            os.chown(folder, 65534, 65534)
        before = os.lstat(folder)
        done = subprocess.run(
            [sys.executable, "-m", "memd", "serve"],
            env=dict(home.environ), capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 78
        assert "is refused" in done.stderr
        after = os.lstat(folder)
        assert (before.st_mode, before.st_uid, before.st_ino) == (
            after.st_mode, after.st_uid, after.st_ino
        )  # fmt: skip
        assert os.listdir(folder) == []
        with socket.socket(socket.AF_UNIX) as made, pytest.raises(FileNotFoundError):
            made.connect(home.places.socket)
