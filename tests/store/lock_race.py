"""Processes that race for the consolidation lock: daemons, and a program that knows less."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

MEMD = """
    import sys, time
    from memd.store import locks
    folder = sys.argv[1]
    for _ in sys.stdin:
        held = locks.take(folder, time.time(), lambda *_: None)
        print("held" if held else "no", flush=True)
        sys.stdin.readline()
        if held:
            held.give_back()
        print("done", flush=True)
"""
FOREIGN = """
    import os, sys, time
    path = sys.argv[1] + "/.consolidate-lock"
    def holder():
        try:
            with open(path) as file:
                return int(file.read().split("\\n")[0])
        except (OSError, ValueError):
            return 0
    def lives(pid):
        try:
            os.kill(pid, 0)
        except OSError:
            return False
        return True
    def take():
        pid = holder()
        if pid and lives(pid) and time.time() - os.stat(path).st_mtime < 3600:
            return False
        with open(path, "w") as file:
            file.write(f"{os.getpid()}\\n{int(time.time() * 1000)}")
        return holder() == os.getpid()
    for _ in sys.stdin:
        held = take()
        print("held" if held else "no", flush=True)
        sys.stdin.readline()
        if held and holder() == os.getpid():
            open(path, "w").close()
        print("done", flush=True)
"""


class Starter:
    """A process that tries to take the lock each time it is told to."""

    def __init__(self, program: str, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(program), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
        )

    def tell(self) -> None:
        """Let it try, or let it give back what it got."""
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def answer(self) -> str:
        """Return what it says."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def end(self) -> int:
        """End it and return its status."""
        self.process.communicate(timeout=10)
        return self.process.returncode


def race(folder: Path, rounds: int) -> list[int]:
    """Let seven daemons and a foreign program start at once; return each round's daemons."""
    starters = [Starter(FOREIGN if n == 0 else MEMD, folder) for n in range(8)]
    winners = []
    try:
        for _ in range(rounds):
            for starter in starters:
                starter.tell()
            answers = [starter.answer() for starter in starters]
            assert set(answers) <= {"held", "no"}
            winners.append(answers[1:].count("held"))
            assert winners[-1] == 1 or answers[0] == "held"
            for starter in starters:
                starter.tell()
            assert [starter.answer() for starter in starters] == ["done"] * 8
    finally:
        assert [starter.end() for starter in starters] == [0] * 8
    return winners
