"""No key and no token of a client's session reaches a daemon, whichever client starts it.

Each round is a home without a daemon; two clients of random kinds, with keys in their environment,
come at random times and one of them starts it.
"""

import random
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from memd.cli import hook
from memd.client.launch import connect
from memd.client.memory_tool import MemoryTool
from tests.promises.installed_hook import run_with_launch
from tests.soak.figures import FIGURE
from tests.soak.rounds import delay, play
from tests.support.daemon import Home, throw_away_home

SEED = 20261124
CANARY = "canary-4711"
NAMES = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_MODEL",
    "ANTHROPIC_CUSTOM_HEADERS",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_SESSION_ID",
    "AWS_SECRET_ACCESS_KEY",
    "GITHUB_TOKEN",
    "HTTPS_PROXY",
    "PYTHONUSERBASE",
)
SECONDS = 60.0


@pytest.mark.parametrize("count", [1, pytest.param(200, marks=pytest.mark.soak)])
def test_no_key_is_inherited(count: int, record_property: Callable[[str, object], None]) -> None:
    """The daemon names no model, and nothing of the clients' sessions is in its environment."""
    inherited = play(count, SEED, partial(one_round, count))
    reported = f"{count} rounds, {inherited} keys inherited"
    record_property(FIGURE, f"10.12 a daemon started by a client with keys: {reported}")
    assert inherited == 0


def one_round(count: int, chance: random.Random) -> int:
    """Return how many keys a daemon has that two clients may have started."""
    with throw_away_home() as made:
        session = {name: CANARY for name in NAMES if chance.random() < 0.7}
        address = {"ANTHROPIC_BASE_URL": f"http://127.0.0.1:9/{CANARY}"}
        environ = {**made.environ, **session, **(address if chance.random() < 0.5 else {})}
        home = replace(made, environ=environ)
        clients = [
            threading.Timer(delay(chance, count), chance.choice(STARTING), args=(home,))
            for _ in range(2)
        ]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        return keys_of_daemon(home)


def keys_of_daemon(home: Home) -> int:
    """Return how many keys the home's daemon has, after ending it."""
    with connect(home.places, home.environ, name="t", deadline=SECONDS) as client:
        results = client.call("status")
        process = Path(f"/proc/{results['pid']}/environ")
        kept = process.read_bytes().count(CANARY.encode()) if process.exists() else 0
        client.call("shutdown")
    subprocess.run(["flock", home.places.lock, "true"], check=True, timeout=SECONDS)
    return kept + bool(results["model"]["configured"]) + (CANARY in str(results["model"]))


def by_memctl(home: Home) -> None:
    """Start a daemon as a person's command does."""
    command = [sys.executable, "-c", "from memd.cli.main import main; main(['status'])"]
    subprocess.run(command, env=dict(home.environ), capture_output=True, check=True)


def by_hook(home: Home) -> None:
    """Start one as a client's hook does."""
    command = [sys.executable, "-I", "-S", hook.__file__, "claude-code", "SessionStart"]
    assert run_with_launch(command, env=dict(home.environ), input=b"{}").returncode == 0


def by_tool(home: Home) -> None:
    """Start one as the SDK's memory tool does."""
    tool = MemoryTool(home.project(), environ=home.environ)
    tool.call({"command": "view", "path": "/memories"})


def by_library(home: Home) -> None:
    """Start one as a program of Python does."""
    connect(home.places, home.environ, name="t", deadline=SECONDS).close()


STARTING = (by_memctl, by_hook, by_tool, by_library)
