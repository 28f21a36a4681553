"""Finding and starting the daemon."""

import os
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.base.places import Places, find
from memd.client.blocking import Client
from memd.client.errors import DaemonUnavailableError
from memd.client.launch import connect, supervisor
from tests.support.waiting import wait_until_up

# A daemon with nothing in it but the lock and the server; each start leaves a line in a file.
DAEMON = (
    f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r})\n"
    """
import os, sys, anyio
from functools import partial
from memd.base.places import find
from memd.daemon.instance import AlreadyRunningError, Instance
from memd.rpc.hub import Hub
from memd.rpc.listener import make_listener
from memd.rpc.server import serve
from tests.wire_server import RecordingLog

stop = anyio.Event()

async def hello(call, params):
    return {"pid": os.getpid(), "sid": os.getsid(0), "config": os.environ["MEMD_CONFIG"]}

async def shutdown(call, params):
    stop.set()

async def main(listener):
    async with anyio.create_task_group() as group:
        await group.start(partial(serve, listener, {"hello": hello, "shutdown": shutdown}, Hub(),
                                  RecordingLog()))
        await stop.wait()
        group.cancel_scope.cancel()

places = find(os.environ, os.environ["HOME"])
try:
    with Instance(places):
        with open(places.home + "/starts", "a") as starts:
            starts.write("start\\n")
        print("serving", flush=True)
        with make_listener(places.socket) as listener:
            anyio.run(main, listener)
        os.unlink(places.socket)
except AlreadyRunningError:
    sys.exit(0)
"""
)
COMMAND = (sys.executable, "-c", DAEMON)
SECONDS = 60.0


@pytest.fixture
def home() -> Iterator[str]:
    """Make a home with a short path and stop the daemon that was started in it."""
    with tempfile.TemporaryDirectory(prefix="memd-") as path:
        yield path
        try:
            with Client(places_of(path).socket, environment={}) as client:
                client.call("shutdown")
        except DaemonUnavailableError:
            return
        # The lock is free again once the process has ended: nothing writes in the home any more.
        lock = ["flock", places_of(path).lock, "true"]
        subprocess.run(lock, check=True, timeout=SECONDS)


def environ_of(home: str) -> dict[str, str]:
    """Return an environment whose places lie in this home."""
    kept = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}
    return {**kept, "HOME": home, "PATH": os.environ["PATH"], "MEMD_STATE_DIR": f"{home}/state"}


def places_of(home: str) -> Places:
    """Return the places in this home."""
    return find(environ_of(home), home)


def test_a_daemon_is_started_and_found(home: str) -> None:
    """It runs detached with the client's places, and its output is in a log of its own."""
    places = places_of(home)
    with connect(places, environ_of(home), name="t", deadline=SECONDS, command=COMMAND) as client:
        heard = client.call("hello")
    assert heard["pid"] == heard["sid"] != os.getpid()
    assert heard["config"] == places.config
    assert Path(places.log).read_text() == "serving\n"
    assert stat.S_IMODE(os.stat(places.log).st_mode) == 0o600
    with connect(places, environ_of(home), name="t", start=False) as again:
        assert again.call("hello")["pid"] == heard["pid"]
    wait_until_up(places, SECONDS)


def test_many_clients_start_one_daemon(home: str) -> None:
    """However many need it at once, one daemon serves them all."""
    places, pids, failures = places_of(home), [], []

    def ask() -> None:
        try:
            with connect(
                places, environ_of(home), name="t", deadline=SECONDS, command=COMMAND
            ) as client:
                pids.append(client.call("hello")["pid"])
        except DaemonUnavailableError as error:
            failures.append(error)

    threads = [threading.Thread(target=ask) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(pids) == 12
    assert len(set(pids)) == 1
    assert Path(home, "starts").read_text() == "start\n"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ((sys.executable, "-c", "print('why'); raise SystemExit(3)"), "ended with status 3"),
        ((sys.executable, "-c", "raise SystemExit('memd: why')"), "with status 1: why"),
        (("/nonexistent/program",), "starting it failed"),
    ],
)
def test_a_daemon_that_cannot_start_is_told(
    home: str, command: tuple[str, ...], words: str
) -> None:
    """The error says what happened and where the log is, long before the deadline."""
    places = places_of(home)
    with pytest.raises(DaemonUnavailableError, match=words) as caught:
        connect(places, environ_of(home), name="t", deadline=SECONDS, command=command)
    assert caught.value.facts["log"] == places.log


def program(folder: Path, name: str, script: str) -> dict[str, str]:
    """Make a program with this name and return an environment that finds it first."""
    path = folder / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return {"HOME": str(folder), "PATH": f"{path.parent}:{os.environ['PATH']}"}


def test_systemd_is_asked_where_it_knows_memd(tmp_path: Path) -> None:
    """With the unit installed and no places of its own a client asks systemctl."""
    environ = program(tmp_path, "systemctl", "exit 0")
    assert supervisor(environ, str(tmp_path), "linux") == ()
    unit = tmp_path / ".config/systemd/user/memd.socket"
    unit.parent.mkdir(parents=True)
    unit.touch()
    requested = (f"{tmp_path}/bin/systemctl", "--user", "start", "memd.socket")
    assert supervisor(environ, str(tmp_path), "linux") == (requested,)
    assert supervisor({**environ, "MEMD_SOCKET": "/x"}, str(tmp_path), "linux") == ()
    assert supervisor({"PATH": "/nonexistent"}, str(tmp_path), "linux") == ()
    moved = {**environ, "XDG_CONFIG_HOME": f"{tmp_path}/other"}
    assert supervisor(moved, str(tmp_path), "linux") == ()


@pytest.mark.skipif(sys.platform == "darwin", reason="systemd is Linux's")
@pytest.mark.parametrize(("status", "words"), [(0, "asked the supervisor"), (1, "started one")])
def test_a_supervisor_that_fails_is_replaced(home: str, status: int, words: str) -> None:
    """When systemd takes the request the client waits for it, else it starts a daemon itself."""
    environ = program(Path(home), "systemctl", f"exit {status}")
    unit = Path(home, ".config/systemd/user/memd.socket")
    unit.parent.mkdir(parents=True)
    unit.touch()
    with pytest.raises(DaemonUnavailableError, match=words):
        connect(find(environ, home), environ, name="t", deadline=0.3, command=("/bin/true",))
