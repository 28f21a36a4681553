"""Daemons that are started, used, left by dying clients and stopped: nothing is left open."""

import json
import random
import socket
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from memd.client.blocking import Client
from tests.soak.figures import FIGURE
from tests.support.daemon import Home, client, daemon_process, throw_away_home
from tests.support.leaks import LeakError

STEPS = 8
_AT_ONCE = 12  # most of them wait
_DEATHS = (  # of clients: before, within and behind a request, and with an answer unread
    b"",
    b"Content-Length: 400\r\n\r\n{",
    b'{"jsonrpc":"2.0","id":1,"method":"memory.list","params":{"cwd":"/"',
)


@pytest.mark.parametrize(
    ("rounds", "delay"), [(1, 0.01), pytest.param(200, 3.0, marks=pytest.mark.soak)]
)
def test_nothing_is_left_open(
    rounds: int, delay: float, record_property: Callable[[str, object], None]
) -> None:
    """After any requests, undos of the index and deaths of clients a daemon holds what it held."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        reported = list(pool.map(lambda seed: one_round(seed, delay), range(rounds)))
    done = sum((counts for counts, _ in reported), Counter[str]())
    leaks = [leak for _, leak in reported if leak]
    record_property(
        FIGURE,
        f"descriptors, threads, temporary files: {rounds} daemons, {done.total()} steps,"
        f" {done['undo']} undos of the index, {done['die']} dead clients, {len(leaks)} leaks",
    )
    assert leaks == []
    assert done["undo"] >= rounds


def one_round(seed: int, delay: float) -> tuple[Counter[str], str]:
    """Run a daemon through random steps; return how many of each, and what leaked."""
    dice = random.Random(seed)  # noqa: S311 - a seed that repeats
    pause = threading.Event()  # never set: it waits
    with throw_away_home() as home:
        person = Person(home, dice)
        try:
            with daemon_process(home), client(home) as memd:
                person.undo(memd)
                for _ in range(STEPS):
                    pause.wait(dice.uniform(0, delay))
                    dice.choice([person.write, person.undo, person.prompt, person.die])(memd)
        except LeakError as leak:
            return person.steps, str(leak)
    return person.steps, ""


class Person:
    """What one does with a daemon; ``steps`` counts it."""

    def __init__(self, home: Home, dice: random.Random) -> None:
        self._home = home
        self._dice = dice
        self._cwd = home.project()
        self.steps: Counter[str] = Counter()

    def write(self, memd: Client) -> str:
        """Save a memory, which gets a line in the index; return the change."""
        self.steps["write"] += 1
        name = f"fact-{self.steps.total()}"
        parts = {"name": name, "description": f"{name} of the build", "type": "project"}
        params = {"cwd": self._cwd, "path": f"{name}.md", "body": "text", **parts}
        return str(memd.call("memory.write", params)["change"])

    def undo(self, memd: Client) -> None:
        """Take a change back that touched the index."""
        change = self.write(memd)
        memd.call("memory.undo", {"cwd": self._cwd, "change": change})
        self.steps["undo"] += 1

    def prompt(self, memd: Client) -> None:
        """Ask for memories in a new session, and have its end learnt from."""
        self.steps["prompt"] += 1
        session = {"cwd": self._cwd, "session_id": f"s{self.steps['prompt']}"}
        memd.call("prefetch", {**session, "query": "what are the facts of the build?"})
        said = [{"role": "user", "content": "Remember: always use tabs in Makefiles."}]
        memd.call("extract", {**session, "messages": said})
        memd.call("session", {**session, "event": "end"})

    def die(self, _: Client) -> None:
        """Leave without a word, in the middle of whatever."""
        self.steps["die"] += 1
        listed = {"jsonrpc": "2.0", "id": 1, "method": "memory.list", "params": {"cwd": self._cwd}}
        with socket.socket(socket.AF_UNIX) as dying:
            dying.connect(self._home.places.socket)
            dying.sendall(self._dice.choice([*_DEATHS, json.dumps(listed).encode() + b"\n"]))
