"""The gates of dreams: for each combination the documented answer, at the documented cost.

The table is clock × transcripts × lock × settings, on real files. What the gates look at goes
through counting wrappers of the real functions; only who lives is told, since a test cannot make
a process that began yesterday. tests/crash/test_gate_cost.py counts system calls.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from memd.core.settings import DreamSettings, Settings
from memd.core.values import Project
from memd.dream import gates
from memd.dream.gates import Gatekeeper, Sources
from memd.projects.project import slug
from memd.transcripts.sessions import sessions_of
from memd.watch import locks
from tests.support.clock import FakeClock

NOW = FakeClock().now()
MINUTE, HOUR = 60.0, 3600.0
WANTED = 3  # sessions
ME = "the-caller"
LIVING, DEAD = 4242, 4243

# When the lock says that memories were last consolidated; None: there is no lock.
CLOCKS: dict[str, float | None] = {
    "never": None,
    "now": NOW,
    "younger": NOW - 24 * HOUR + 1,
    "exactly": NOW - 24 * HOUR,
    "older": NOW - 25 * HOUR,
    "under an hour": NOW - 59 * MINUTE,
    "an hour": NOW - 60 * MINUTE,
    "a little ahead": NOW + 30.0,
    "future": NOW + 24 * HOUR,
    "far future": NOW * 3,
    "1970": 0.0,
}
# How old the transcripts are, and of whom; the clock's "older" lies between old and new.
NEW, OLD, AHEAD = NOW - 5.0, NOW - 26 * HOUR, NOW + 2 * HOUR
TRANSCRIPTS: dict[str, dict[str, float]] = {
    "none": {},
    "n-1": {f"s{number}": NEW for number in range(WANTED - 1)},
    "n": {f"s{number}": NEW for number in range(WANTED)},
    "n with the caller": {"s0": NEW, "s1": NEW, ME: NEW},
    "n and the caller": {"s0": NEW, "s1": NEW, "s2": NEW, ME: NEW},
    "old": {f"s{number}": OLD for number in range(WANTED)},
    "future": {f"s{number}": AHEAD for number in range(WANTED)},
}
LOCKS: dict[str, bytes] = {
    "nobody": b"",
    "dead": b"%d\n" % DEAD,
    "living": b"%d\n" % LIVING,
    "living, newer program": b"%d\n1760000000000\n" % LIVING,
    "garbage": b"\x00\xffnot a pid" * 9,
}


class Choice(NamedTuple):
    """What a user set, and whether a person insists."""

    enabled: bool = True
    dreams: bool = True
    auto: bool = True
    hours: float = 24.0
    sessions: int = WANTED
    force: bool = False

    @property
    def settings(self) -> Settings:
        """The settings that say so."""
        dream = DreamSettings(
            enabled=self.dreams, auto=self.auto, min_hours=self.hours, min_sessions=self.sessions
        )
        return Settings(enabled=self.enabled, dream=dream)

    def project(self, place: "Place") -> Project:
        """Return the project of a place, with memory on or off as chosen."""
        return replace(place.project, enabled=self.enabled)


CHOICES = {
    "plain": Choice(),
    "not by themselves": Choice(auto=False),  # for triggers; a person may still ask
    "memory off": Choice(enabled=False),
    "dreams off": Choice(dreams=False),
    "memory off, forced": Choice(enabled=False, force=True),
    "dreams off, forced": Choice(dreams=False, force=True),
    "no hours": Choice(hours=0.0),
    "no sessions": Choice(sessions=0),
    "neither": Choice(hours=0.0, sessions=0),
    "forced": Choice(force=True),
}

# The documented costs: looks at the lock's time, scans of the two folders, looks at the lock.
FREE, STAT, SCANS, ALL, ONLY_LOCK = (0, 0, 0), (1, 0, 0), (1, 2, 0), (1, 2, 1), (0, 0, 1)


def documented(
    at: float | None, transcripts: dict[str, float], body: bytes, choice: Choice
) -> tuple[str, tuple[int, int, int]]:
    """Return the answer and the cost as the specification has them."""
    if not choice.enabled:
        return "memory_off", FREE
    if not choice.dreams:
        return "dream_off", FREE
    held = at is not None and body.startswith(b"%d\n" % LIVING) and abs(NOW - at) < 60 * MINUTE
    if choice.force:
        return ("lock" if held else ""), ONLY_LOCK
    never = at is None or at > NOW + MINUTE
    if not never and at is not None and choice.hours and NOW - at < choice.hours * HOUR:
        return "time", STAT
    since = -1e12 if never or at is None else at
    fresh = [name for name, mtime in transcripts.items() if since < mtime <= NOW + MINUTE]
    if len([name for name in fresh if name != ME]) < choice.sessions:
        return "sessions", SCANS
    return ("lock" if held else ""), ALL


class Place:
    """A project on the disk whose lock and transcripts can be set up."""

    def __init__(self, folder: Path) -> None:
        self.memory = folder / "memory"
        self.memory.mkdir()
        self.project = Project(
            str(folder / "p" / "sub"),
            str(folder / "p"),
            str(self.memory),
            "test",
            str(folder / "projects"),
            enabled=True,
        )
        self.folders = [folder / "projects" / slug(str(folder / name)) for name in ("p", "p/sub")]
        for made in self.folders:
            made.mkdir(parents=True)

    def lock(self, at: float | None, body: bytes) -> None:
        """Put a lock with a time there, or none."""
        path = self.memory / locks.LOCK
        path.unlink(missing_ok=True)
        if at is not None:
            path.write_bytes(body)
            os.utime(path, (at, at))

    def sessions(self, transcripts: dict[str, float]) -> None:
        """Put these transcripts there, in turn into the folders of the project."""
        for folder in self.folders:
            for left in folder.iterdir():
                left.unlink()
        for number, (name, mtime) in enumerate(transcripts.items()):
            file = self.folders[number % 2] / f"{name}.jsonl"
            file.write_text("")
            os.utime(file, (mtime, mtime))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Make a project."""
    return Place(tmp_path)


def counting(counted: Counter[str]) -> Sources:
    """Return the real sources, each counted."""

    def count(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def inspect(*args: Any) -> Any:
            counted[name] += 1
            return real(*args)

        return inspect

    return Sources(
        consolidated_at=count("time", locks.consolidated_at),
        sessions=count("scan", sessions_of),
        busy=count("lock", locks.busy),
        is_alive=lambda pid, _since: pid == LIVING,
    )


def combinations() -> Iterator[tuple[float | None, bytes]]:
    """Yield each time of the lock with each body; without a file there is no body."""
    for at, body in product(CLOCKS.values(), LOCKS.values()):
        if at is not None or not body:
            yield at, body


@pytest.mark.parametrize("transcripts", TRANSCRIPTS.values(), ids=TRANSCRIPTS)
@pytest.mark.parametrize("choice", CHOICES.values(), ids=CHOICES)
def test_each_combination_has_its_answer_and_its_cost(
    place: Place, choice: Choice, transcripts: dict[str, float]
) -> None:
    """The gate that closes and what it cost to know are what the documents say."""
    place.sessions(transcripts)
    wrong = []
    for at, body in combinations():
        place.lock(at, body)
        counted: Counter[str] = Counter()
        keeper = Gatekeeper(FakeClock(NOW), counting(counted))
        gate = keeper.first_closed_gate(
            choice.project(place), choice.settings, force=choice.force, session=ME
        )
        cost = (counted["time"], counted["scan"], counted["lock"])
        if (gate, cost) != documented(at, transcripts, body, choice):
            wrong.append((at, body, gate, cost))
    assert wrong == []


@pytest.mark.parametrize("choice", [c for c in CHOICES.values() if not c.force])
def test_the_status_agrees_with_the_gates(place: Place, choice: Choice) -> None:
    """What ``dream.status`` calls the first closed gate is what a dream would be skipped for."""
    for transcripts in TRANSCRIPTS.values():
        place.sessions(transcripts)
        for at, body in combinations():
            place.lock(at, body)
            counted: Counter[str] = Counter()
            keeper = Gatekeeper(FakeClock(NOW), counting(counted))
            reported = keeper.outlook(choice.project(place), choice.settings)
            assert counted == {"time": 1, "scan": 2, "lock": 1}
            requested = keeper.first_closed_gate(
                choice.project(place), choice.settings, force=False, session=""
            )
            assert reported.gate == requested
            assert counted["scan"] == 2
            assert (reported.due is None) == all(gate.open for gate in reported.gates[1:2])


@pytest.mark.parametrize("what", ["link", "directory", "pipe"])
def test_a_lock_that_cannot_be_used_closes_its_gate(place: Place, what: str) -> None:
    """A link, a directory or a pipe in the lock's place is a closed gate, never a dream."""
    path = place.memory / locks.LOCK
    if what == "link":
        path.symlink_to("/nowhere")
    elif what == "directory":
        path.mkdir()
    else:
        os.mkfifo(path)
    keeper = Gatekeeper(FakeClock(NOW + 50 * HOUR))
    settings = Choice(hours=0.0, sessions=0).settings
    assert keeper.first_closed_gate(place.project, settings, force=False, session="") == gates.LOCK
    with pytest.raises(locks.LockUnusableError):
        keeper.first_closed_gate(place.project, settings, force=True, session="")
