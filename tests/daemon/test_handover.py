"""One version gives way to the next in the same process."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from socket import AF_UNIX, SOCK_DGRAM, socket

import pytest
from msgspec.structs import replace

from memd.client.blocking import Client
from memd.client.errors import DaemonUnavailableError
from memd.daemon.handover import VARIABLE, Handover, received
from memd.daemon.instance import AlreadyRunningError, Instance
from tests.support.daemon import Home, client, daemon_process, throw_away_home

NOTE = {"path": "a.md", "name": "a", "description": "d", "type": "user", "body": "b"}


def restarted(home: Home) -> None:
    """Have the daemon restart, and return once it has hung up."""
    with client(home) as connection:
        assert connection.call("restart") == {"restarting": True}
        with suppress(DaemonUnavailableError):
            for _ in connection.notifications(30):
                pass


@contextmanager
def rivals(home: Home) -> Iterator[list[str]]:
    """Try without a pause to become the one daemon; what succeeded is in the list."""
    over = threading.Event()
    took: list[str] = []

    def rival() -> None:
        while not over.wait(0.001):
            with suppress(AlreadyRunningError), Instance(home.places, seconds=0):
                took.append("the lock")

    thread = threading.Thread(target=rival)
    thread.start()
    try:
        yield took
    finally:
        over.set()
        thread.join()


def test_process_lock_and_socket_stay() -> None:
    """Nobody can take the lock in between; who connects meanwhile is served by the next one."""
    with throw_away_home() as home, daemon_process(home) as process, rivals(home) as took:
        cwd = home.project()
        with client(home) as connection:
            connection.call("memory.write", {"cwd": cwd, **NOTE})
        before = os.stat(home.places.socket)
        for _ in range(2):
            restarted(home)
            with client(home) as connection:  # it waits in the kernel: nobody has begun yet
                read = connection.call("memory.read", {"cwd": cwd, "path": "a.md"})
                assert read["content"].endswith("b\n")
                assert connection.call("hello")["pid"] == process.pid
        assert os.stat(home.places.socket) == before
        assert took == []
    assert not Path(home.places.socket).exists()


def test_the_watchdog_is_fed_before_the_next_version_is_ready() -> None:
    """A start that takes long behind a restart, for the state file say, is no loop that hangs."""
    with throw_away_home() as made, socket(AF_UNIX, SOCK_DGRAM) as supervisor:
        supervisor.bind(f"{made.path}/notify")
        own = {"NOTIFY_SOCKET": f"{made.path}/notify", "WATCHDOG_USEC": "3600000000"}
        home = replace(made, environ={**made.environ, **own})
        with daemon_process(home):
            restarted(home)
            with client(home) as connection:
                connection.call("hello")
            supervisor.settimeout(30)
            assert [supervisor.recv(99) for _ in range(4)] == [b"WATCHDOG=1", b"READY=1"] * 2


def test_a_program_that_was_removed_goes_on() -> None:
    """Where the interpreter is not there any more, the daemon that runs serves on and says so."""
    with throw_away_home() as made:
        python = Path(made.path, "python")
        python.symlink_to(sys.executable)
        home = replace(made, environ={**made.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
        with daemon_process(home, command=(str(python), "-m", "memd", "serve")) as process:
            python.unlink()
            restarted(home)
            with client(home) as connection:
                assert connection.call("status")["pid"] == process.pid
        assert "this version goes on" in Path(home.places.log).read_text()


def test_a_stop_wins_over_a_restart() -> None:
    """Who is told to end while it restarts ends, at whatever moment."""
    with throw_away_home() as home, daemon_process(home) as process:
        with Client(home.places.socket, environment={}) as connection:
            connection.call("restart")
            process.terminate()
        assert process.wait(30) in (0, -15)


def test_a_stop_while_the_last_files_are_closed_is_heard() -> None:
    """A SIGTERM that comes once nothing waits for signals any more is no signal lost."""
    code = (
        "import os, signal, sys\nfrom memd.__main__ import main\n"
        "from memd.state.database import Database\n"
        "close = Database.close\n"
        "Database.close = lambda self: (os.kill(os.getpid(), signal.SIGTERM), close(self))\n"
        "sys.exit(main(['serve']))\n"
    )
    with (
        throw_away_home() as home,
        daemon_process(home, command=(sys.executable, "-c", code)) as process,
    ):
        restarted(home)
        assert process.wait(30) == 0


@pytest.mark.parametrize("value", ["", "1:2", "{pid}:3", "{pid}:a:b", "{pid}:-1:-1", "1:5:6"])
def test_only_what_is_meant_for_this_process_is_taken(value: str) -> None:
    """A variable of another process, or one that makes no sense, hands over nothing."""
    environ = {VARIABLE: value.format(pid=os.getpid())}
    assert received(environ, os.getpid()) == Handover(-1, -1)
    assert received({VARIABLE: f"{os.getpid()}:5:6"}, os.getpid()) == Handover(5, 6)


@pytest.mark.parametrize("numbers", ["0:1", "200:201"])
def test_descriptors_that_are_none_of_ours_are_not_used(numbers: str) -> None:
    """A start with wrong numbers takes the lock and makes the socket as any other."""
    code = (
        "import os, sys\n"
        f"os.environ['{VARIABLE}'] = f'{{os.getpid()}}:{numbers}'\n"
        "os.execv(sys.executable, [sys.executable, '-m', 'memd', 'serve'])\n"
    )
    with (
        throw_away_home() as home,
        daemon_process(home, command=(sys.executable, "-c", code)) as process,
        client(home) as connection,
    ):
        assert connection.call("hello")["pid"] == process.pid
        second = subprocess.run(
            [sys.executable, "-m", "memd"], env=home.environ, capture_output=True, check=False
        )
        assert (second.returncode, b"serves already" in second.stderr) == (0, True)
