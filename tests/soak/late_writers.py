"""Programs that write a memory at the moment at which memd replaces it, and what became of it.

Each way of saving is one that editors, shells and scripts have. ``person`` is the text of the
program, ``memd`` is what memd was asked to write and acknowledged.
"""

import contextlib
import os
import random
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memd.client.errors import DaemonUnavailableError
from memd.client.launch import connect
from tests.support.daemon import Home

INDEX = "MEMORY.md"
_SECONDS = 20.0  # for a late save to be seen
_LINES = 12


@dataclass(slots=True)
class Round:
    """One save beside one write: where, with what pauses, and what was acknowledged."""

    home: Home
    cwd: str
    number: int
    chance: random.Random
    longest: float
    folder: Path = field(default_factory=Path)
    written: list[str] = field(default_factory=list)

    def call(self, method: str, **params: Any) -> Any:
        """Return the daemon's answer; starts a daemon where none is."""
        with connect(self.home.places, self.home.environ, name="round", deadline=60) as client:
            return client.call(method, {"cwd": self.cwd, **params})

    def daemon(self) -> int:
        """Return the process that serves; starts one where none is."""
        with connect(self.home.places, self.home.environ, name="round", deadline=60) as client:
            return int(client.call("status", {})["pid"])

    def pause(self) -> None:
        """Let up to the longest pause pass."""
        threading.Event().wait(self.chance.random() * self.longest)

    @property
    def person(self) -> str:
        """The line that the program writes."""
        return f"a line of the person {self.number}"

    def text(self, *changes: tuple[int, str]) -> str:
        """Return the memory's body with some lines changed."""
        lines = [f"line {n}" for n in range(_LINES)]
        for number, line in changes:
            lines[number] = line
        return "\n\n".join(lines)

    def write(self, path: str = "topic.md") -> None:
        """Have memd write a memory, and note what it acknowledged."""
        line = f"a line of memd {self.number} {len(self.written)}"
        name = path.removesuffix(".md")
        parts = {"name": name, "description": f"about {name}", "type": "project"}
        self.call("memory.write", path=path, body=self.text((2, line)), **parts)
        self.written.append(line)

    def file(self, path: str) -> bytes:
        """Return a memory as it was before, with the person's line."""
        content = (self.folder / path).read_bytes().decode()
        if path == INDEX:
            return f"{content.rstrip()}\n\n{self.person}\n".encode()
        return content.replace(f"line {_LINES - 2}\n", f"{self.person}\n").encode()


def truncate_and_fill(round_: Round, path: str = "topic.md") -> None:
    """``(sleep; cat new) > file``: empty while the program thinks."""
    new = round_.file(path)
    with (round_.folder / path).open("wb") as file:
        with beside(round_, path):
            round_.pause()
        file.write(new)


def fill_the_index(round_: Round) -> None:
    """Do the same with the index, while memd writes any memory."""
    truncate_and_fill(round_, INDEX)


def open_and_truncate_later(round_: Round) -> None:
    """Open for reading and writing, wait, truncate, wait, write."""
    new = round_.file("topic.md")
    with (round_.folder / "topic.md").open("r+b", buffering=0) as file:
        with beside(round_):
            round_.pause()
        file.truncate(0)
        round_.pause()
        file.write(new)


def two_parts(round_: Round) -> None:
    """Write the first half, wait, write the second."""
    new = round_.file("topic.md")
    half = len(new) // 2
    with (round_.folder / "topic.md").open("wb", buffering=0) as file:
        file.write(new[:half])
        with beside(round_):
            round_.pause()
        file.write(new[half:])


def append(round_: Round) -> None:
    """``tee -a``: lines one after the other, across an edit of memd."""
    with (round_.folder / "topic.md").open("ab", buffering=0) as file:
        file.write(b"\nfirst\n")
        with beside(round_):
            round_.pause()
        file.write(b"second\n")
        round_.pause()
        file.write(f"{round_.person}\n".encode())


def killed_after_the_answer(round_: Round) -> None:
    """Kill the daemon as soon as it has answered, and save after that."""
    new = round_.file("topic.md")
    with (round_.folder / "topic.md").open("r+b", buffering=0) as file:
        round_.write()
        os.kill(round_.daemon(), signal.SIGKILL)
        if round_.chance.random() < 1 / 2:
            with suppress(DaemonUnavailableError):
                round_.daemon()  # a new daemon is there before the save
        round_.pause()
        file.truncate(0)
        round_.pause()
        file.write(new)


WAYS: dict[str, Callable[[Round], None]] = {
    "truncate, fill": truncate_and_fill,
    "the same, index": fill_the_index,
    "open r+, truncate late": open_and_truncate_later,
    "two parts": two_parts,
    "tee -a": append,
    "kill -9, then save": killed_after_the_answer,
}


@contextlib.contextmanager
def beside(round_: Round, path: str = "topic.md") -> Any:
    """Have memd write at some moment of the block, or a little later."""

    def work() -> None:
        round_.pause()
        round_.write("topic.md" if path != INDEX else "other.md")

    thread = threading.Thread(target=work)
    thread.start()
    yield
    if round_.chance.random() < 1 / 2:
        thread.join()  # the program goes on only when memd has answered
        return
    _LATER.setdefault(id(round_), []).append(thread)


_LATER: dict[int, list[threading.Thread]] = {}


@dataclass(frozen=True, slots=True)
class Result:
    """What was lost in one round: texts, an empty file, files of memd's own left over."""

    lost: int
    empty: int
    leftovers: int


def run(round_: Round, way: Callable[[Round], None]) -> Result:
    """Make the memories, save and write at once, and look for every text afterwards."""
    for path in ("topic.md", "other.md"):
        name = path.removesuffix(".md")
        parts = {"name": name, "description": f"about {name}", "type": "project"}
        round_.call("memory.write", path=path, body=round_.text(), **parts)
    round_.folder = Path(round_.call("memory.list")["memory_dir"])
    way(round_)
    for thread in _LATER.pop(id(round_), []):
        thread.join()
    return check(round_)


def check(round_: Round) -> Result:
    """Wait until every text is in the tree or in the history; say what is not."""
    texts = [round_.person, *round_.written]
    ended = threading.Event()
    timer = threading.Timer(_SECONDS, ended.set)
    timer.start()
    lost = leftovers = 1
    while (lost or leftovers) and not ended.is_set():
        results = everything(round_)
        lost = sum(text not in results for text in texts)
        leftovers = sum(1 for _ in round_.folder.glob(".memd-*"))
        ended.wait(0.05)
    timer.cancel()
    files = [path for path in round_.folder.glob("*.md") if not path.read_bytes().strip()]
    return Result(lost, len(files), leftovers)


def everything(round_: Round) -> str:
    """Return all that stands in the tree and in the history."""
    parts = [path.read_text() for path in round_.folder.glob("*.md")]
    for change in round_.call("memory.history", limit=100)["changes"]:
        diffs = round_.call("memory.diff", change=change["id"])["files"]
        parts += [file["diff"] for file in diffs]
    return "\n".join(parts)
