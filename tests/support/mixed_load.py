"""Mixed load on one daemon, and its memory, descriptors and threads meanwhile.

Four clients ask at once, each with a seed of its own: writes, undos, prompts of new sessions,
reads, extractions, dreams, and connections that are cut at any moment. What a client adds it takes
back, so that the daemon has as much to remember at the end as at the beginning.
"""

import json
import math
import os
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from tests.support import corpus
from tests.support.corpus import folder
from tests.support.daemon import Home, client

CLIENTS = 4
_ASLEEP = 60  # memories of the project that dreams, every third with a twin
_FIXED = 40  # memories that a client changes again and again
_CUT_SECONDS = 0.01  # until a connection is cut


@dataclass(frozen=True, slots=True)
class Sample:
    """A daemon's size at one moment; ``resident`` is in MiB."""

    minute: float
    requests: int
    resident: float
    descriptors: int
    threads: int


@dataclass(slots=True)
class Load:
    """Clients of one daemon while they ask, ``most`` requests at most."""

    home: Home
    cwd: str
    asleep: str
    memories: int
    most: float = math.inf
    requests: int = 0
    asking: list[Future[None]] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self) -> None:
        """Count one request."""
        with self.lock:
            self.requests += 1


class _Client:
    """One client that asks until the load is over."""

    def __init__(self, load: Load, number: int) -> None:
        self._load = load
        self._draw = Random(number)  # noqa: S311 - the same load on every run
        self._name = f"c{number}"
        self._steps = 0
        self._places = {"cwd": load.cwd}
        self._kinds = {
            self._prompt: 30, self._change: 25, self._add: 15, self._read: 15,
            self._cut: 10, self._learn: 4, self._dream: 0 if number else 1,
        }  # fmt: skip

    def run(self) -> None:
        """Ask until the end."""
        kinds, weights = list(self._kinds), list(self._kinds.values())
        with client(self._load.home) as line:
            self._line = line
            while not self._load.over.is_set() and self._load.requests < self._load.most:
                self._steps += 1
                self._draw.choices(kinds, weights)[0]()

    def _ask(self, method: str, **params: Any) -> Any:
        self._load.count()
        return self._line.call(method, self._places | params)

    def _write(self, name: str) -> str:
        memory = corpus.memory(self._draw.randrange(10**6))
        about = {"description": memory.description, "type": memory.type, "body": memory.body}
        written = self._ask("memory.write", path=f"{name}.md", name=name, **about)
        return str(written["change"])

    def _prompt(self) -> None:
        session = {"session_id": f"{self._name}-{self._steps}"}
        self._ask("session", event="start", **session)
        for _ in range(2):
            memory = corpus.memory(self._draw.randrange(self._load.memories))
            self._ask("prefetch", query=f"what about the {memory.description}?", **session)
        if self._draw.random() < 0.5:
            self._ask("session", event="end", **session)

    def _change(self) -> None:
        self._write(f"{self._name}-{self._draw.randrange(_FIXED)}")

    def _add(self) -> None:
        """Add a memory, with its line in the index, and take both back."""
        change = self._write(f"{self._name}-new-{self._steps}")
        self._ask("memory.undo", change=change)

    def _read(self) -> None:
        path = corpus.memory(self._draw.randrange(self._load.memories)).path
        method, params = self._draw.choice(
            (
                ("load_prompt", {}),
                ("memory.read", {"path": path}),
                ("memory.search", {"query": path.replace("-", " ")}),
                ("memory.history", {"limit": 20}),
                ("memory.list", {}),
            )
        )
        self._ask(method, **params)

    def _learn(self) -> None:
        topic = f"{self._name}{self._steps}"
        text = f"Remember: always run the {topic} checks before you push to the {topic} branch."
        session = f"{self._name}-talk-{self._steps}"
        messages = [
            {"role": role, "content": said, "uuid": f"{session}-{role}"}
            for role, said in (("user", text), ("assistant", "I will."))
        ]
        done = self._ask("extract", session_id=session, messages=messages, wait=True)
        if done.get("change"):
            self._ask("memory.undo", change=done["change"])

    def _dream(self) -> None:
        done = self._ask("dream", cwd=self._load.asleep, force=True, wait=True)
        if done.get("change"):
            self._ask("memory.undo", cwd=self._load.asleep, change=done["change"])

    def _cut(self) -> None:
        """Hang up in the middle of a request, or before its answer was read."""
        query = {"query": "what was decided?", "session_id": f"{self._name}-{self._steps}-cut"}
        frame = {"jsonrpc": "2.0", "id": 1, "method": "prefetch", "params": self._places | query}
        data = json.dumps(frame).encode() + b"\n"
        self._load.count()
        with socket.socket(socket.AF_UNIX) as cut, suppress(OSError):
            cut.connect(self._load.home.places.socket)
            cut.sendall(data[: self._draw.choice((len(data) // 2, len(data)))])
            self._load.over.wait(self._draw.random() * _CUT_SECONDS)


@contextmanager
def load(
    home: Home, memories: int, clients: int = CLIENTS, most: float = math.inf
) -> Iterator[Load]:
    """Keep clients asking until the end of the block; raises what ended one of them."""
    mixed = Load(home, home.project(), home.project("asleep"), memories, most)
    with ThreadPoolExecutor(clients) as pool:
        mixed.asking = [pool.submit(_Client(mixed, number).run) for number in range(clients)]
        try:
            yield mixed
        finally:
            mixed.over.set()
    for asking in mixed.asking:
        asking.result()


def prepare(home: Home, memories: int) -> None:
    """Write the memories of both projects as files, as other programs may."""
    corpus.write(folder(home, home.project()), memories)
    asleep = folder(home, home.project("asleep"))
    corpus.write(asleep, _ASLEEP, first=5_000_000)
    for number in range(0, _ASLEEP, 3):
        corpus.put(f"{asleep}/twin-{number}.md", corpus.memory(5_000_000 + number).content)


def sample(pid: int, begun: float, requests: int) -> Sample:
    """Return how big a process is now."""
    said = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return Sample(
        minute=(time.monotonic() - begun) / 60,
        requests=requests,
        resident=int(said["VmRSS"].split()[0]) / 1024,
        descriptors=len(os.listdir(f"/proc/{pid}/fd")),
        threads=int(said["Threads"]),
    )


def slope(samples: Sequence[Sample]) -> float:
    """Return the growth of resident memory in MiB per 10,000 requests (least squares)."""
    count = len(samples)
    middle = sum(one.requests for one in samples) / count
    level = sum(one.resident for one in samples) / count
    above = sum((one.requests - middle) * (one.resident - level) for one in samples)
    return 10_000 * above / sum((one.requests - middle) ** 2 for one in samples)
