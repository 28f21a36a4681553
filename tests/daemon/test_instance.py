"""One daemon per user."""

import fcntl
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memd.base.errors import Storage
from memd.base.places import Places
from memd.daemon.instance import AlreadyRunningError, Instance


def places_in(folder: Path) -> Places:
    """Return places with their state below a folder."""
    return Places(
        home=str(folder), socket="/run/x.sock", state_dir=f"{folder}/state/memd", config=""
    )


@contextmanager
def held(folder: Path, body: bytes) -> Iterator[Places]:
    """Hold the lock as a foreign process would, with this body in the file."""
    places = places_in(folder)
    os.makedirs(places.state_dir)
    with open(places.lock, "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(body)
        file.flush()
        yield places


def test_who_comes_second_learns_who_serves(tmp_path: Path) -> None:
    """The loser gets pid, version and socket of the winner, and exit status 0."""
    places = places_in(tmp_path)
    with Instance(places, "1.2") as first:
        assert first.holds()
        with pytest.raises(AlreadyRunningError) as caught, Instance(places):
            pass
        assert first.holds()
    error = caught.value
    facts = {"pid": os.getpid(), "version": "1.2", "socket": "/run/x.sock"}
    assert error.facts == facts
    assert error.exit_status == 0
    assert error.sentence == f"memd 1.2 serves already: process {os.getpid()} at /run/x.sock"
    assert not first.holds()


def test_only_we_can_read_them(tmp_path: Path) -> None:
    """The state directory is 0700, the lock file 0600, both under an open umask."""
    places = places_in(tmp_path)
    before = os.umask(0)
    try:
        with Instance(places):
            pass
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(places.state_dir).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(places.lock).st_mode) == 0o600


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"junk",
        b"\0" * 100,
        b"[]",
        b"{" * 100_000,
        b'{"pid": 999999999, "version": "1", "socket": "s"}',
        b'{"pid": 0, "version": "1", "socket": "s"}',
        b'{"pid": -1, "version": "1", "socket": "s"}',
        b'{"pid": true, "version": "1", "socket": "s"}',
        b'{"pid": 2147483648, "version": "1", "socket": "s"}',
        b'{"pid": "1"}',
    ],
)
def test_a_body_that_says_nothing_is_no_obstacle(tmp_path: Path, body: bytes) -> None:
    """Whatever stands in the file, the lock alone decides; nobody is named without reason."""
    with (
        held(tmp_path, body) as places,
        pytest.raises(AlreadyRunningError, match="another memd") as caught,
        Instance(places, seconds=0.02),
    ):
        pass
    assert caught.value.pid == 0
    with Instance(places) as instance:
        assert instance.holds()


@pytest.mark.parametrize("kind", ["link", "directory", "fifo"])
def test_what_is_no_file_is_refused(tmp_path: Path, kind: str) -> None:
    """A lock that is no regular file is an error in words."""
    places = places_in(tmp_path)
    os.makedirs(places.state_dir)
    if kind == "link":
        os.symlink("/dev/null", places.lock)
    elif kind == "directory":
        os.mkdir(places.lock)
    else:
        os.mkfifo(places.lock)
    with pytest.raises(Storage), Instance(places):
        pass


def test_a_state_directory_that_others_write_in_is_refused(tmp_path: Path) -> None:
    """Others could take the lock away there."""
    places = places_in(tmp_path)
    os.makedirs(places.state_dir)
    os.chmod(places.state_dir, 0o777)  # noqa: S103 - the case under test
    with pytest.raises(Storage, match="others may write"), Instance(places):
        pass


def test_a_lost_lock_file_is_noticed(tmp_path: Path) -> None:
    """When the file was deleted or replaced the holder can see that its lock protects nothing."""
    places = places_in(tmp_path)
    with Instance(places) as instance:
        os.unlink(places.lock)
        assert not instance.holds()
        Path(places.lock).touch()
        assert not instance.holds()


def test_a_killed_holder_frees_the_lock(tmp_path: Path) -> None:
    """After kill -9 the next one serves although the body still names the dead."""
    places = places_in(tmp_path)
    holder = start(tmp_path, 1)[0]
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"serving\n"
    with pytest.raises(AlreadyRunningError) as caught, Instance(places):
        pass
    assert caught.value.pid == holder.pid
    holder.kill()
    holder.communicate()
    with Instance(places) as instance:
        assert instance.holds()


def test_a_child_does_not_inherit_the_lock(tmp_path: Path) -> None:
    """A process that the daemon started holds nothing after the daemon's end."""
    places = places_in(tmp_path)
    with Instance(places):
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with Instance(places) as again:
        assert again.holds()
    child.communicate(b"\n")


STARTER = """
import sys
from memd.base.places import Places
from memd.daemon.instance import AlreadyRunningError, Instance
places = Places(home="", socket="s", state_dir=sys.argv[1], config="")
sys.stdin.read(1)
try:
    with Instance(places, "9"):
        print("serving", flush=True)
        sys.stdin.read()
except AlreadyRunningError as error:
    print(error.pid, flush=True)
    sys.exit(error.exit_status)
"""


def start(folder: Path, number: int) -> list["subprocess.Popen[bytes]"]:
    """Start so many processes that claim the right to serve at the same moment."""
    command = [sys.executable, "-c", STARTER, places_in(folder).state_dir]
    pipe = subprocess.PIPE
    starters = [subprocess.Popen(command, stdin=pipe, stdout=pipe) for _ in range(number)]
    for starter in starters:
        assert starter.stdin is not None
        starter.stdin.write(b"g")
        starter.stdin.flush()
    return starters


def race(folder: Path) -> int:
    """Let eight start at once; return how many serve, when the others name one and leave with 0."""
    starters = start(folder, 8)
    said = [starter.stdout.readline().strip() for starter in starters if starter.stdout]
    serving = [s for s, word in zip(starters, said, strict=True) if word == b"serving"]
    for starter in starters:
        starter.communicate()
        assert starter.returncode == 0
    assert sorted(said) == sorted([b"serving"] + [b"%d" % serving[0].pid] * 7)
    return len(serving)


def test_of_eight_starters_one_serves(tmp_path: Path) -> None:
    """Seven name the eighth and leave with status 0."""
    assert race(tmp_path) == 1
