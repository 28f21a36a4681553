"""Kill -9 at any moment of a plan: what a conversation was sent as once, it is sent as for good."""

import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from memd.client.errors import DaemonUnavailableError
from memd.core.canonical import content_hash
from memd.testing.daemon import Home, client, daemon_process, throw_away_home

SAMPLE = (0.004, 0.012, 0.03)
EVERY = tuple(0.0015 * n for n in range(40))


def test_a_killed_daemon_thaws_no_decision() -> None:
    """Each result is sent as it was, and every stored one is whole."""
    _live(SAMPLE)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(4))
def test_every_moment_of_a_kill(part: int) -> None:
    """So at every moment from the request to the answer."""
    _live(EVERY[part::4])


class _Agent:
    """A program whose conversation grows by two results a turn; ``sent`` is what went out."""

    def __init__(self, cwd: str) -> None:
        self.about = {"cwd": cwd, "session_id": "s"}
        self.messages: list[Any] = [{"role": "user", "content": "Run everything."}]
        self.texts: dict[str, str] = {}
        self.sent: dict[str, str] = {}

    def work(self) -> None:
        """Make two parallel calls with large results."""
        names = [f"t{len(self.texts) + number}" for number in (1, 2)]
        calls = [{"type": "tool_use", "id": name, "name": "Bash", "input": {}} for name in names]
        self.texts |= {name: f"a line of {name}\n" * 4_000 for name in names}
        results = [
            {"type": "tool_result", "tool_use_id": name, "content": self.texts[name]}
            for name in names
        ]
        self.messages.append({"role": "assistant", "content": calls})
        self.messages.append({"role": "user", "content": results})

    def plan(self, home: Home) -> dict[str, str]:
        """Return what memd wants to be sent for each call, after saying what went out whole."""
        kept = [
            {"tool_use_id": name, "content_hash": content_hash(text), "action": "keep"}
            for name, text in self.sent.items()
            if text == self.texts[name]
        ]
        with client(home) as daemon:
            if kept:
                daemon.call("context.restore", {**self.about, "decisions": kept})
            request = {"messages": self.messages, "reader": "read_stored"}
            planned = daemon.call("context.plan", {**self.about, **request})
        edits = {edit["tool_use_id"]: edit["content"] for edit in planned["edits"]}
        return self.texts | edits


def _live(moments: tuple[float, ...]) -> None:
    with throw_away_home() as home:
        agent = _Agent(home.project())
        for moment in moments:
            agent.work()
            agent.sent = _killed(home, agent, moment)
        agent.work()
        with daemon_process(home):
            wanted = agent.plan(home)
        assert agent.sent.items() <= wanted.items()
        stored = {path.stem: path.read_text() for path in Path(home.path).rglob("tool-results/*")}
        spilled = [name for name, text in wanted.items() if text != agent.texts[name]]
        assert spilled[-2:] == list(agent.texts)[-2:]
        assert [name for name in spilled if stored[name] != agent.texts[name]] == []


def _killed(home: Home, agent: _Agent, seconds: float) -> dict[str, str]:
    """Plan, kill the daemon so many seconds later, and return what goes out then."""
    wanted = agent.texts | agent.sent  # a program without an answer sends what it has
    with daemon_process(home) as process:
        timer = threading.Timer(seconds, process.kill)
        timer.start()
        with suppress(DaemonUnavailableError):
            wanted = agent.plan(home)
        timer.join()
    assert agent.sent.items() <= wanted.items()
    return wanted
