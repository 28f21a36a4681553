"""A store with memories, and a model that makes calls for one night."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memd.base.values import MemoryType
from memd.daemon.app import SCHEMAS
from memd.dream.values import DreamReport
from memd.model.port import Ask, Reply
from memd.state.database import open_database
from memd.store.memory import new as new_memory
from tests.dream.bench import DAY, NOW, Bench
from tests.scripted_model import Answer, calls, says

USER, FEEDBACK, PROJECT, REFERENCE = MemoryType
THINGS = "atlas badge cedar delta ember fjord grove haven inlet jetty kiosk latch"
SAME = says(json.dumps({"differences": []}))
Call = tuple[str, Mapping[str, Any]]


def memory(kind: MemoryType, body: str, description: str = "How it is", name: str = "a") -> str:
    """Return the text of a memory."""
    stamp = "2026-02-20T10:00:00Z"
    return new_memory(name, description, kind, body, session="s", modified=stamp).decode()


def project(body: str, description: str = "How it is") -> str:
    """Return a project memory."""
    return memory(PROJECT, body, description)


def reference(body: str, description: str = "Where it is") -> str:
    """Return a reference memory."""
    return memory(REFERENCE, body, description)


def rule(body: str, description: str = "A rule") -> str:
    """Return a rule of the person's."""
    return memory(FEEDBACK, body, description)


@contextmanager
def bench_in(folder: Path) -> Iterator[Bench]:
    """Set up an empty store for the length of the block."""
    database = open_database(str(folder / "state.db"), SCHEMAS)
    made = Bench(folder, database)
    try:
        yield made
    finally:
        database.close()


def fill(bench: Bench, files: Mapping[str, str]) -> None:
    """Put files there, a day old, among others that have nothing to do with them."""
    for number, thing in enumerate(THINGS.split()):
        put(bench, f"{thing}.md", reference(f"Desk {number} owns the {thing}."), 9)
    for name, text in files.items():
        put(bench, name, text, 1)


def put(bench: Bench, name: str, text: str, age: int) -> None:
    """Write a file that is so many days old."""
    path = bench.memory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (NOW - age * DAY, NOW - age * DAY))


async def night(bench: Bench, *wanted: Call, reader: Reply = SAME) -> DreamReport:
    """Let a model make these calls, of which each is accepted; ``reader`` answers the second."""
    bodies: list[Answer] = [calls(*wanted), says("Done."), says("I leave it at that.")]

    def answer(ask: Ask) -> Reply:
        """Return the next reply of the model, or the second reader's."""
        reply = bodies.pop(0) if ask.tools else reader
        assert isinstance(reply, Reply)
        return reply

    dreaming, model = bench.taught(answer)
    report = await bench.run(dreaming)
    results = [
        block["content"]
        for message in model.requested[min(1, len(model.requested) - 1)].messages
        for block in message["content"]
        if isinstance(block, Mapping) and block.get("is_error")
    ]
    assert not results, results
    return report


def texts(bench: Bench) -> dict[str, str]:
    """Return each file of the memory directory."""
    return {path.name: path.read_text() for path in sorted(bench.memory.glob("*.md"))}
