"""What a daemon holds too much fails the test that started it."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.daemon import Home, client, daemon_here, throw_away_home
from tests.support.leaks import LeakError, no_leaks_here, no_leaks_of
from tests.support.waiting import wait_until_up

# A real daemon, which keeps something more with each request that concerns a project.
LEAKING = """
import asyncio, os, pathlib, socket, sys, threading
from memd.projects.projects import Projects
from memd.__main__ import main

kept, where = [], Projects.where

def leaking(self, cwd, *caller, **options):
    what = os.path.basename(cwd)
    if what == "descriptor":
        kept.append(os.open("/usr", os.O_RDONLY))
    elif what == "socket":
        kept.extend(socket.socketpair())
    elif what == "thread":
        for _ in range(100):
            threading.Thread(target=threading.Event().wait, daemon=True).start()
    elif what == "file":
        pathlib.Path(cwd, "left.tmp").touch()
    return where(self, cwd, *caller, **options)

Projects.where = leaking
sys.exit(main(["serve"]))
"""


@contextmanager
def leaking_daemon(home: Home) -> Iterator[int]:
    """Run a daemon that leaks and give its pid; it needs no drain."""
    command = [sys.executable, "-c", LEAKING]
    os.makedirs(home.places.state_dir, mode=0o700)
    with (
        open(home.places.log, "ab") as log,
        subprocess.Popen(command, env=dict(home.environ), stdout=log, stderr=log) as process,
    ):
        try:
            wait_until_up(home.places, 30)
            yield process.pid
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("what", "reported"),
    [
        ("descriptor", "1 x descriptor of /usr"),
        ("socket", "2 x descriptor of socket"),
        ("thread", " threads"),
        ("file", "/file/left.tmp"),
    ],
)
def test_a_process_that_leaks_is_caught(what: str, reported: str) -> None:
    """Each kind of leak of a real daemon is named; what its use takes is none."""
    with throw_away_home() as home, leaking_daemon(home) as pid:
        with no_leaks_of(pid, home.places), client(home) as caller:
            caller.call("load_prompt", {"cwd": home.project("harmless")})
        with (
            pytest.raises(LeakError, match=reported),
            no_leaks_of(pid, home.places, settling=0.2),
            client(home) as caller,
        ):
            caller.call("load_prompt", {"cwd": home.project(what)})


@pytest.mark.anyio
async def test_a_daemon_here_that_leaks_fails_its_test() -> None:
    """What is left after its end is named, each thing with its kind."""
    over = threading.Event()
    thread = threading.Thread(target=over.wait, name="forgotten")
    leaked = -1

    async def leak() -> None:
        nonlocal leaked
        async with daemon_here(home, settling=0.2):
            leaked = os.open(f"{home.path}/left.tmp", os.O_CREAT)
            thread.start()

    with throw_away_home() as home, pytest.raises(LeakError) as caught:
        await leak()
    over.set()
    thread.join()
    os.close(leaked)
    for kind in ("1 x descriptor of", "thread forgotten", "temporary file"):
        assert kind in str(caught.value)


def test_what_is_gone_at_the_end_is_no_leak() -> None:
    """What a block opened and closed again, and a process that has ended, pass."""
    with throw_away_home() as home:
        with no_leaks_here(home.path), open(f"{home.path}/x.tmp", "wb"):
            os.unlink(f"{home.path}/x.tmp")
        with leaking_daemon(home) as pid, no_leaks_of(pid, home.places):
            with client(home) as caller:
                caller.call("shutdown", {})
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
