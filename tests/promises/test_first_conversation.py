"""A conversation that no daemon heard: the first one, or one beside a daemon that hangs or died."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.promises.hooked import SECONDS, Hooked, hooked
from tests.support.daemon import daemon_process
from tests.timing import least_seconds

WORDS = "Remember: always run the integration tests against a real database."
EVENTS = ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd")
FAST_ENOUGH = 1.0  # beside the event's own bound: the machine is shared


@pytest.fixture(name="person")
def _person() -> Iterator[Hooked]:
    with hooked() as person:
        yield person


def test_the_very_first_conversation_is_learnt_from(person: Hooked) -> None:
    """From nothing: the hook starts the daemon, which learns the turn that ended meanwhile."""
    person.send("SessionStart")
    person.send("UserPromptSubmit", prompt=WORDS)
    person.say(WORDS)
    person.send("Stop", last_assistant_message="Noted.")
    person.send("SessionEnd", reason="other")
    assert len(person.learnt()) == 1


def test_a_daemon_that_hangs_costs_a_moment_and_no_memory(person: Hooked) -> None:
    """Each event ends at its bound while the daemon is stopped; then the turn is learnt."""
    with daemon_process(person.home) as process:
        alone = min(person.send(event, start=False) for event in EVENTS)
        person.say(WORDS)
        process.send_signal(signal.SIGSTOP)
        most = 4 * alone + 0.4 + 0.2 + 2 * 0.04 + FAST_ENOUGH

        def all_events() -> None:
            for event in EVENTS:
                person.send(event, prompt=WORDS, prompt_id="p")

        took = least_seconds(all_events, most)
        process.send_signal(signal.SIGCONT)
        assert len(person.learnt()) == 1
    assert took < most


def test_a_start_that_worked_holds_no_other_back(person: Hooked) -> None:
    """Five starts and ends within a minute: each event that finds no daemon brings one up."""
    pids = set()
    for number in range(5):
        person.send("UserPromptSubmit", f"s{number}", prompt=WORDS)
        with person.up() as asked:
            pids.add(asked.call("status")["pid"])
        _unmarked(person)
        person.end()
    assert len(pids) == 5


def _unmarked(person: Hooked) -> None:
    """Wait until whoever launched the daemon has seen that it is up."""
    until = time.monotonic() + SECONDS
    while os.path.exists(f"{person.home.places.state_dir}/hook-start"):
        assert time.monotonic() < until


@pytest.mark.parametrize("clients", [8, pytest.param(50, marks=pytest.mark.soak)])
def test_many_hooks_at_once_bring_up_one_daemon(person: Hooked, clients: int) -> None:
    """Of however many sessions begin at once, one daemon serves all, and no end is lost."""
    for number in range(clients):
        person.say(f"Remember: always use {number} spaces in file{number}.", f"s{number}")
    threads = [
        threading.Thread(target=person.send, args=("Stop", f"s{number}"))
        for number in range(clients)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    person.learnt()
    with person.up() as asked:
        jobs = asked.call("job.list", {"limit": 1000})["jobs"]
    assert {job["session"] for job in jobs} == {f"s{number}" for number in range(clients)}
    lines = Path(person.home.places.log).read_text().splitlines()
    assert sum('"event": "ready"' in line or '"event":"ready"' in line for line in lines) == 1


@pytest.mark.parametrize("rounds", [1, pytest.param(60, marks=pytest.mark.soak)])
def test_a_kill_loses_no_event_and_learns_none_twice(person: Hooked, rounds: int) -> None:
    """A daemon is killed at any moment of its work on the spool; the next one ends it."""
    chance = random.Random(20261122)  # noqa: S311 - a test's moments
    for number in range(rounds):
        person.say(f"Remember: always use {number} spaces in file{number}.", f"s{number}")
        person.send("Stop", f"s{number}", start=False)
        with (
            open(person.home.places.log, "ab") as log,
            subprocess.Popen(
                [sys.executable, "-m", "memd", "serve"],
                env=dict(person.home.environ),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            ) as process,
        ):
            person.up().close()
            try:
                process.wait(chance.uniform(0.0, 0.3))
            except subprocess.TimeoutExpired:
                process.kill()
        with daemon_process(person.home):
            learnt = person.learnt()
        assert len(learnt) == len(set(learnt)) == number + 1
