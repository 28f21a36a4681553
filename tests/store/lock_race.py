"""Processes that race for the consolidation lock: daemons, and programs that know less.

Each begins a random part of a few milliseconds after it was told to, in a random order, so that
every step of one meets every step of the others.
"""

import os
import random
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

from tests.store import foreign_dream

STARTERS = 8
SPREAD_SECONDS = 0.008  # some takings long, so that they overlap and each kind may come first
MEMD = """
    import sys, time
    from memd.store import lock
    folder = sys.argv[1]
    def say(word):
        print(word, flush=True)
        sys.stdin.readline()
    while line := sys.stdin.readline():
        until = time.perf_counter() + float(line)
        while time.perf_counter() < until:
            pass
        held = lock.take(folder, time.time(), lambda *_: None, lock.is_alive)
        say("held" if held else "no")
        say("works" if held and held.is_ours() else "idle")
        if held:
            held.release(held.prior_ns)
        print("done", flush=True)
"""


@dataclass(frozen=True)
class Round:
    """How many got the lock, and how many were still to work when each looked before its commit.

    The foreign programs never look again.
    """

    daemons: int
    foreign: int
    working_daemons: int

    @property
    def met(self) -> bool:
        """Whether a daemon and a foreign program both believed to hold it after the read-back."""
        return self.daemons > 0 and self.foreign > 0

    @property
    def both(self) -> bool:
        """Whether both would have worked."""
        return self.working_daemons > 0 and self.foreign > 0


class Starter:
    """A process that tries to take the lock each time it is told to."""

    def __init__(self, foreign: bool, folder: Path) -> None:  # noqa: FBT001 - which of the two
        program = [foreign_dream.__file__] if foreign else ["-c", textwrap.dedent(MEMD)]
        self.process = subprocess.Popen(
            [sys.executable, *program, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
        )

    def tell(self, seconds: float) -> None:
        """Let it do its next step, after so many seconds."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()

    def answer(self) -> str:
        """Return what it says."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def end(self) -> int:
        """End it and return its status."""
        self.process.communicate(timeout=60)
        return self.process.returncode


def race(folder: Path, rounds: int, foreign: int = 1) -> list[Round]:
    """Let eight starters go at once, round after round, so many of them foreign programs."""
    starters = [Starter(n < foreign, folder) for n in range(STARTERS)]
    chance = random.Random(7)  # noqa: S311 - the same order each time

    def step() -> list[str]:
        for starter in chance.sample(starters, STARTERS):
            starter.tell(chance.random() * SPREAD_SECONDS)
        return [starter.answer() for starter in starters]

    results = []
    try:
        for _ in range(rounds):
            took, works, done = step(), step(), step()
            assert set(took) <= {"held", "no"}
            assert set(works) <= {"works", "idle"}
            assert set(done) == {"done"}
            memd, others = took[foreign:].count("held"), took[:foreign].count("held")
            results.append(Round(memd, others, works[foreign:].count("works")))
            assert memd + others > 0
    finally:
        assert [starter.end() for starter in starters] == [0] * STARTERS
    return results
