"""Generations of clients of one daemon, each of which asks for everything, learns and dreams.

The bulk is ``tests.support.mixed_load``; beside it one client calls every method that leaves others
alone, and one has the scripted model learn and dream.
"""

import json
import os
import re
import socket
from collections.abc import Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from memd.base.errors import MemdError
from tests.fuzz import live
from tests.promises.learning import memory
from tests.support import mixed_load as level
from tests.support.daemon import Home, client
from tests.support.messages import structured, text, tools
from tests.support.steps import ReceivedMessage

CLIENTS = 4
_SAMPLE_SECONDS = 0.5
_LEFT_OUT = ("job.cancel", "pause", "resume")  # they would meet the work of others
_RULE = re.compile(r"Remember: always run the \w+ checks before you push to the \w+ branch\.")


def answers(request: ReceivedMessage) -> Any:
    """Answer what memd asks: a memory for what was said, nothing to merge, no memory chosen."""
    body = json.dumps(request.json)
    if "selected_memories" in body:
        return structured({"selected_memories": []})
    said = _RULE.findall(body)
    called = any(message["role"] == "assistant" for message in request.json["messages"])
    if not said or called or '"Write"' not in body:
        return text("nothing new")
    topic = said[-1].split()[6]
    written = memory(f"run-{topic}", said[-1].removesuffix("."), "feedback", quote=said[-1])
    return tools(("Write", {"file_path": f"run-{topic}.md", "content": written}))


@dataclass(slots=True)
class Life:
    """What one daemon went through: its size from time to time, and how much was done."""

    pid: int
    samples: list[level.Sample] = field(default_factory=list)
    generations: int = 0
    requests: int = 0
    learnt: int = 0
    dreams: int = 0

    def look(self, mixed: int = 0) -> level.Sample:
        """Note how big the daemon is now, ``mixed`` requests behind the last generation."""
        self.samples.append(level.sample(self.pid, 0.0, self.requests + mixed))
        return self.samples[-1]

    @property
    def zombies(self) -> int:
        """How many processes it has started and not waited for."""
        return len(psutil.Process(self.pid).children(recursive=True))


def generation(home: Home, life: Life, *, memories: int, most: int, cycles: int) -> None:
    """Let a generation of clients come, ask so many requests, and leave."""
    everything, learning = partial(ask_everything, home), partial(learn, home, life, cycles)
    with level.load(home, memories, CLIENTS, most) as mixed, ThreadPoolExecutor(2) as pool:
        other = (pool.submit(everything), pool.submit(learning))
        asking: set[Future[Any]] = {*mixed.asking, *other}
        while asking:
            done, asking = wait(asking, _SAMPLE_SECONDS, FIRST_EXCEPTION)
            for one in done:
                one.result()
            life.look(mixed.requests)
    life.generations += 1
    life.requests += mixed.requests + len(live.SEEDS)


def learn(home: Home, life: Life, cycles: int) -> None:
    """Have the model learn something, take that back, and have it dream, so many times."""
    places = {"cwd": home.project("learning")}
    with client(home) as line:
        for _ in range(cycles):
            topic = f"topic{life.pid}x{life.learnt}"
            said = f"Remember: always run the {topic} checks before you push to the x branch."
            messages = [
                {"role": role, "content": words, "uuid": f"{topic}-{role}"}
                for role, words in (("user", said), ("assistant", "I will."))
            ]
            given = places | {"session_id": topic, "messages": messages, "wait": True}
            done = line.call("extract", given)
            life.learnt += len(done["saved"])
            slept = line.call("dream", places | {"force": True, "wait": True})
            life.dreams += slept["status"] == "completed"
            assert done["change"], done
            line.call("memory.undo", places | {"change": done["change"]})


def ask_everything(home: Home) -> None:
    """Call each method once that leaves others alone, with parameters of which some make sense."""
    cwd = home.project("everything").encode()
    with client(home) as line:
        for given in (json.loads(seed.replace(b"$P", cwd)) for seed in live.SEEDS):
            if given["method"] not in _LEFT_OUT:
                with suppress(MemdError):
                    line.call(given["method"], given["params"])


@contextmanager
def leaving(home: Home) -> Iterator[None]:
    """Have clients that leave in every way once the block is over."""
    good = b'{"jsonrpc":"2.0","id":1,"method":"memory.list","params":{"cwd":"/"}}\n'
    yield
    for begin in (b"", good[:30], good, good * 30, b"GET / HTTP/1.1\r\n\r\n", b"{" * 10_000):
        with socket.socket(socket.AF_UNIX) as made, suppress(OSError):
            made.connect(home.places.socket)
            made.sendall(begin)


def leftovers(home: Home) -> list[str]:
    """Return temporary files of the daemon, in its home and in the folder of all."""
    own = [str(path) for path in Path(home.path).rglob("*.tmp")]
    return own + [name for name in os.listdir(home.places.state_dir) if name.startswith("tmp")]
