"""A daemon to test against: a real process or one in this process, with a HOME of its own."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import anyio
from msgspec import Struct

from memd.base.clock import Clock
from memd.base.places import Places, find
from memd.client.launch import Client
from memd.daemon.app import Log, Ports, daemon
from memd.daemon.clock import SystemClock
from memd.rpc.listener import make_listener
from tests.support.leaks import SETTLING_SECONDS, no_leaks_here, no_leaks_of
from tests.support.waiting import wait_until_up

_STOP_SECONDS = 70  # in which a daemon must end
_MEMCTL = "import sys; from memd.cli.main import main; sys.exit(main())"
_SERVE = (sys.executable, "-m", "memd", "serve")


class Home(Struct, frozen=True):
    """A temporary HOME: its path, an environment with it, and the paths of its daemon."""

    path: str
    environ: Mapping[str, str]
    places: Places

    def project(self, name: str = "project") -> str:
        """Make a git project below the home and return its root."""
        root = Path(self.path) / name
        (root / ".git").mkdir(parents=True, exist_ok=True)
        return str(root)


@contextmanager
def throw_away_home() -> Iterator[Home]:
    """Make a HOME with short paths (a socket's path must fit) and remove it afterwards."""
    with tempfile.TemporaryDirectory(prefix="memd-") as path:
        environ = home_environ(path)
        os.makedirs(f"{path}/run", mode=0o700)
        yield Home(path=path, environ=environ, places=find(environ, path))


def home_environ(home: str) -> dict[str, str]:
    """Return an environment whose HOME and XDG directories are all below one directory."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name in ("PATH", "LANG", "TMPDIR") or name.startswith("COVERAGE_")
    }
    return inherited | {
        "HOME": home,
        "XDG_RUNTIME_DIR": f"{home}/run",
        "XDG_STATE_HOME": f"{home}/.local/state",
        "XDG_CONFIG_HOME": f"{home}/.config",
    }


@contextmanager
def daemon_process(
    home: Home, deadline: float = 120.0, command: Sequence[str] = _SERVE
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a real daemon process until the end of the block, and check it for leaks.

    ``deadline`` is in seconds for its start. Its log is in the home.
    """
    os.makedirs(home.places.state_dir, mode=0o700, exist_ok=True)
    with open(home.places.log, "ab") as log:
        process = subprocess.Popen(
            command,
            env=dict(home.environ),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        wait_until_up(home.places, deadline)
        with no_leaks_of(process.pid, home.places):
            yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:  # pragma: no cover - a daemon that hangs fails the test
            process.kill()
            process.wait()
            raise


def memctl(home: Home, cwd: str, *arguments: str) -> str:
    """Return what memctl prints in a directory. Raises CalledProcessError where it fails."""
    ended = memctl_ended(home, cwd, *arguments)
    ended.check_returncode()
    return ended.stdout


def memctl_ended(home: Home, cwd: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run memctl in a directory to its end, and return what it printed and its status."""
    return subprocess.run(
        memctl_command(*arguments),
        env=home.environ,
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )


@contextmanager
def piped(home: Home, cwd: str, command: Sequence[str]) -> Iterator["subprocess.Popen[str]"]:
    """Run a program in a directory with pipes for input and output; close its input at the end."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, env=dict(home.environ), cwd=cwd, stdin=pipe, stdout=pipe, text=True
    ) as process:
        yield process
        if process.stdin is not None:
            process.stdin.close()


def memctl_command(*arguments: str) -> tuple[str, ...]:
    """Return the command that runs memctl with this Python."""
    return (sys.executable, "-P", "-c", _MEMCTL, *arguments)


@asynccontextmanager
async def daemon_here(
    home: Home,
    clock: Clock | None = None,
    on_battery: Callable[[], bool] = bool,
    *,
    settling: float = SETTLING_SECONDS,
) -> AsyncIterator[anyio.Event]:
    """Run a daemon in this process and loop; the event is set once it is asked to stop.

    ``on_battery`` says whether the machine runs on battery. What is left of the daemon
    ``settling`` seconds after its end is a leak.
    """
    with (
        no_leaks_here(home.path, settling),
        _ports(home, clock or SystemClock(), on_battery) as ports,
    ):
        async with daemon(ports) as stop:
            yield stop


@contextmanager
def _ports(home: Home, clock: Clock, on_battery: Callable[[], bool]) -> Iterator[Ports]:
    """Yield what a daemon in this process needs: its log, listener and clock."""
    os.makedirs(home.places.state_dir, mode=0o700, exist_ok=True)
    with (
        open(home.places.log, "a", encoding="utf-8") as stream,
        make_listener(home.places.socket) as listener,
    ):
        yield Ports(home.places, home.environ, clock, Log(stream), listener, on_battery=on_battery)


def client(home: Home, name: str = "test") -> Client:
    """Return a blocking client of the home's daemon."""
    return Client(home.places.socket, name=name, environment={}, timeout=300.0)
