"""kill -9 of a daemon while a program answers for a model: the next start ends what is left.

The program hangs with children, two of them in sessions of their own. `make soak` kills at 50
moments, a sample at a few.
"""

import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.model.programs import Stub
from tests.support.daemon import Home, client, daemon_process, throw_away_home

ROUNDS = 50
_SAMPLE = 2
_CONFIG = """
[model]
provider = "command"
argv = {argv}
[spend]
runs_per_day = 1000
"""


@pytest.fixture
def home() -> Iterator[Home]:
    """Make a home."""
    with throw_away_home() as made:
        yield made


def configure(home: Home, *argv: str) -> None:
    """Name a program in the user's settings."""
    path = Path(home.places.config)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_CONFIG.format(argv=list(argv)))
    path.chmod(0o600)


def answers(home: Home) -> None:
    """Wait for a daemon's first answer; its socket is there before that."""
    with client(home) as caller:
        caller.call("status", {})


def learn(home: Home, session: str) -> None:
    """Ask for an extraction, and do not wait for it."""
    said = [
        {"role": "user", "content": "Remember: deploy on Fridays only."},
        {"role": "assistant", "content": [{"type": "text", "text": "I will."}]},
    ]
    with client(home) as caller:
        cwd = home.project()
        caller.call("extract", {"cwd": cwd, "session_id": session, "messages": said})


def killed(process: "subprocess.Popen[bytes]", seconds: float) -> None:
    """Kill a daemon after so many seconds, whatever it is at."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def test_a_killed_daemon_s_program_is_ended_in_a_sample(home: Home) -> None:
    """Of the programs of a killed daemon none is alive once the next one serves."""
    play(home, _SAMPLE)


@pytest.mark.soak
def test_a_killed_daemon_s_program_is_ended(home: Home) -> None:
    """The same at 50 moments."""
    play(home, ROUNDS)


def play(home: Home, rounds: int) -> None:
    """Kill so many daemons while a program runs, at moments spread over its life."""
    stub, chance = Stub(), random.Random(7)  # noqa: S311 - repeatable
    configure(home, *stub.argv("forks"))
    before: list[int] = []
    running = 0
    try:
        for number in range(rounds):
            with daemon_process(home) as process:
                answers(home)
                assert [pid for pid in before if is_of(stub, pid)] == []
                learn(home, f"s{number}")
                killed(process, chance.uniform(0.0, 1.5))
            before = stub.left()
            running += bool(before)
        configure(home, "echo", "[]")
        with daemon_process(home):
            answers(home)
            assert stub.left() == []
    finally:
        stub.end()
    assert running >= rounds // 2  # else it was killed where nothing could be left


def is_of(stub: Stub, pid: int) -> bool:
    """Return whether this process is one of the stub's, and no new one of that number."""
    try:
        return stub.mark in psutil.Process(pid).environ().values() and os.getpgid(pid) > 0
    except (psutil.Error, OSError):
        return False
