"""A program saves a memory in five ways while memd writes it, and is killed; nothing may be lost.

Usage: ``storming.py <folder> <seed> <rounds> storm|hold``. memd commits in a child of its own,
which ``storm`` ends with kill -9 in half of the rounds; with ``hold`` the program has the file open
for 2.5 s. Prints ``{"rounds": …, "kills": …, "acknowledged": …, "saves": …, "bad": […]}``.
"""

import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memd.base.errors import Conflict
from memd.base.values import Draft, FileEdit, Tree
from memd.daemon.app import SCHEMAS
from memd.daemon.clock import SystemClock
from memd.state.database import open_database
from memd.store.disk import real_disk
from memd.store.log import CONFLICT, ChangeLog
from memd.store.sync import Rows
from memd.store.watch import Watch
from memd.store.write import BeingWrittenError, ChangeRequest, Writer
from tests.store.bench import BY, topic

FILE = "a.md"
_HELD_SECONDS, _WAIT_SECONDS = 2.5, 2.0
_COMMITS = 12


def _wait(seconds: float) -> None:
    """Let time pass."""
    threading.Event().wait(seconds)


class Memd:
    """The store of one round, as a process of its own opens it."""

    def __init__(self, root: Path) -> None:
        self.directory = os.path.realpath(root / "memory")
        self.database = open_database(str(root / "state.db"), SCHEMAS)
        self.log = ChangeLog(self.database)
        clock = SystemClock()
        self.writer = Writer(Rows(self.log, clock, Watch()), real_disk(), clock)

    def add_line(self, line: str) -> None:
        """Add a line to the memory; wait for a program that is saving it."""

        def plan(tree: Tree) -> Draft:
            found = tree.read(FILE)
            text, base = (found.content, found.hash) if found else (topic("a"), "")
            return Draft((FileEdit(FILE, text.rstrip() + f"\n\n{line}\n".encode(), base),))

        until = time.monotonic() + _WAIT_SECONDS
        while True:
            wait = time.monotonic() < until
            with suppress(BeingWrittenError):
                self.writer.commit(ChangeRequest(self.directory, plan, BY, wait=wait))
                return
            _wait(0.02)

    def everything(self) -> bytes:
        """Return all that stands in the files and in the history."""
        changes = (*self.log.select(), *self.log.select(state=CONFLICT))
        hashes = {each for c in changes for step in c.steps for each in (step.before, step.after)}
        files = [file.read_bytes() for file in Path(self.directory).glob("*.md")]
        return b"\n".join([*files, *(self.log.body(each) or b"" for each in hashes)])


def in_place(path: Path, text: bytes) -> None:
    """Write over the old bytes, and cut what is left."""
    with path.open("r+b", buffering=0) as file:
        file.write(text)
        file.truncate()


def truncate(path: Path, text: bytes) -> None:
    """Empty the file first."""
    with path.open("wb", buffering=0) as file:
        file.write(text)


def rename(path: Path, text: bytes) -> None:
    """Write a new file and give it the name."""
    new = path.with_name("editor~")
    new.write_bytes(text)
    os.replace(new, path)


def create(path: Path, text: bytes) -> None:
    """Remove the file and make a new one."""
    path.unlink(missing_ok=True)
    with suppress(FileExistsError), path.open("xb", buffering=0) as file:
        file.write(text)
        return
    truncate(path, text)  # memd was faster


def append(path: Path, text: bytes) -> None:
    """Add the last line."""
    with path.open("ab", buffering=0) as file:
        file.write(b"\n" + text.rstrip().rpartition(b"\n")[2] + b"\n")


WAYS = (in_place, truncate, rename, create, append)


def play(
    root: Path,
    chance: random.Random,
    way: Callable[[Path, bytes], None],
    mode: str,
    *,
    kills: bool,
) -> str:
    """Play one round; return what is wrong, and count in ``COUNTS``."""
    path = root / "memory" / FILE
    path.parent.mkdir(parents=True)
    memd = Memd(root)
    memd.add_line("the first line")
    memd.database.close()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _commit(root, writer, 1 if mode == "hold" else _COMMITS)
    os.close(writer)
    if mode == "hold":
        saved = [_hold(path)]
    else:
        kill_at = time.monotonic() + chance.uniform(0.01, 0.25) if kills else 0.0
        saved = _storm(path, chance, way, child, kill_at)
    with open(reader, "rb") as pipe:
        acknowledged = pipe.read().decode().splitlines()
    os.waitpid(child, 0)
    COUNTS["acknowledged"] += len(acknowledged)
    COUNTS["saves"] += len(saved)
    return _wrong(root, acknowledged, saved)


COUNTS = {"kills": 0, "acknowledged": 0, "saves": 0}


def _commit(root: Path, writer: int, count: int) -> None:
    """Commit lines one after the other, and tell of each that is done; never return."""
    with suppress(BaseException):
        memd = Memd(root)
        memd.writer.recover()
        for number in range(count):
            line = f"a line of memd {number};"
            with suppress(Conflict):
                memd.add_line(line)
                os.write(writer, f"{line}\n".encode())
            memd.writer.scan(memd.directory)
        os._exit(0)
    os._exit(1)


def _storm(
    path: Path,
    chance: random.Random,
    way: Callable[[Path, bytes], None],
    child: int,
    kill_at: float,
) -> list[str]:
    """Save line after line while the child commits, and kill it when it is time."""
    saved: list[str] = []
    is_killed = False
    while len(saved) < _COMMITS or (kill_at and not is_killed):
        line = f"a line of the person {len(saved)};"
        text = path.read_bytes() if path.exists() else topic("a")
        with suppress(FileNotFoundError):  # the way needs a file, and there is none
            way(path, text.rstrip() + f"\n\n{line}\n".encode())
            saved.append(line)
        _wait(chance.uniform(0, 0.03))
        if kill_at and not is_killed and time.monotonic() > kill_at:
            os.kill(child, signal.SIGKILL)
            is_killed = True
            COUNTS["kills"] += 1
    return saved


def _hold(path: Path) -> str:
    """Empty the file, think, and write it again."""
    line = "a line of the person;"
    with path.open("r+b", buffering=0) as file:
        text = file.read()
        file.truncate(0)
        file.seek(0)
        _wait(_HELD_SECONDS)
        file.write(text.rstrip() + f"\n\n{line}\n".encode())
    return line


def _wrong(root: Path, acknowledged: list[str], saved: list[str]) -> str:
    """Start memd anew, let it look until nothing is hidden, and say what is missing."""
    memd = Memd(root)
    memd.writer.recover()
    until, again = time.monotonic() + 10, True
    while again and time.monotonic() < until:
        _, again = memd.writer.scan(memd.directory)
        names = os.listdir(memd.directory)
        again = again or any(name.startswith(".memd-") for name in names)
        _wait(0.03 if again else 0)
    text = memd.everything()
    files = [file.read_bytes() for file in Path(memd.directory).glob("*.md")]
    checks = {
        "acknowledged and lost": [each for each in acknowledged if each.encode() not in text],
        "saves lost": [each for each in saved if each.encode() not in text],
        "empty files": [True for each in files if not each.strip()],
        "left open": memd.log.open_changes(),
        "left over": [name for name in os.listdir(memd.directory) if name.startswith(".memd-")],
    }
    memd.database.close()
    return "; ".join(f"{words}: {found}" for words, found in checks.items() if found)


def main() -> None:
    """Play the rounds."""
    folder, seed, rounds, mode = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
    bad = []
    for number in range(rounds):
        chance = random.Random(f"{seed} {number}")  # noqa: S311 - repeatable
        way = WAYS[number % len(WAYS)]
        wrong = play(folder / f"{seed}-{number}", chance, way, mode, kills=number % 2 == 0)
        if wrong:
            bad.append(f"{way.__name__} {seed}-{number}: {wrong}")
    print(json.dumps({"rounds": rounds, **COUNTS, "bad": bad}))  # noqa: T201 - to the test


if __name__ == "__main__":
    main()
