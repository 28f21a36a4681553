"""Work in other projects of the same daemon: one dream and three extractions, again and again."""

import json
import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any

from benchmarks import corpus
from benchmarks.measures import Line, RefusedError
from memd.projects.project import slug
from tests.support.daemon import Home

EXTRACTIONS = 3
_DREAMED = 1_000  # memories of the project that dreams
_MESSAGES = 15_000  # of each conversation: some seconds of reading
_REQUESTS = (
    "From now on always run {} before {}.",
    "Never mock the {} in tests, because the {} broke once.",
    "Remember that the {} freeze begins on 2026-03-05 for {}.",
    "I prefer {} over {}, please keep it so.",
)


@dataclass(slots=True)
class Pressure:
    """What ran: the jobs that ended, by kind, and how many were at work at each look.

    The daemon lets so many run at once as it sees fit; the others wait in its queue.
    """

    ended: Counter[str] = field(default_factory=Counter)
    running: list[int] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)

    def inspect(self, line: Line) -> None:
        """Count the jobs that are at work now, as the daemon tells it."""
        jobs = line.call("job.list", {"limit": 20})["jobs"]
        self.running.append(sum(job["state"] == "running" for job in jobs))
        self.waiting.append(sum(job["state"] == "queued" for job in jobs))


def prepare(home: Home) -> None:
    """Write the projects and conversations that the work is about."""
    for number in range(EXTRACTIONS):
        cwd = home.project(f"talk-{number}")
        path = _transcript(home, number)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        _converse(path, cwd, number)
    directory = folder(home, home.project("asleep"))
    corpus.write(directory, _DREAMED, first=5_000_000)
    for number in range(0, _DREAMED, 20):  # something to merge
        twin = corpus.memory(5_000_000 + number)
        corpus.put(f"{directory}/twin-{number}.md", twin.content)


def folder(home: Home, cwd: str) -> str:
    """Return where the memories of a project lie."""
    return f"{home.path}/.claude/projects/{slug(cwd)}/memory"


@contextmanager
def pressure(home: Home) -> Iterator[Pressure]:
    """Keep all four jobs running until the end of the block."""
    results, over = Pressure(), threading.Event()
    asleep = ("dream", {"cwd": f"{home.path}/asleep", "force": True})
    work: list[tuple[str, dict[str, Any]]] = [asleep]
    work += [
        (
            "extract",
            {"cwd": f"{home.path}/talk-{number}", "transcript_path": _transcript(home, number)},
        )
        for number in range(EXTRACTIONS)
    ]
    threads = [
        threading.Thread(target=_repeat, args=(home, method, params, results, over))
        for method, params in work
    ]
    for thread in threads:
        thread.start()
    try:
        with Line(home.places.socket) as line:
            for _ in range(200):
                results.inspect(line)
                if results.running[-1] + results.waiting[-1] == len(work) or over.wait(0.02):
                    break
        results.running.clear()
        results.waiting.clear()
        results.ended.clear()
        yield results
    finally:
        over.set()
        _cancel(home)
        for thread in threads:
            thread.join()


def _repeat(
    home: Home, method: str, params: dict[str, Any], results: Pressure, over: threading.Event
) -> None:
    with Line(home.places.socket) as line:
        for number in count():
            if over.is_set():
                return
            session = {"session_id": f"run-{number}"} if method == "extract" else {}
            with suppress(RefusedError):
                line.call(method, params | session | {"wait": True})
                results.ended[method] += 1


def _cancel(home: Home) -> None:
    with Line(home.places.socket) as line:
        for job in line.call("job.list", {"limit": 20})["jobs"]:
            if job["state"] in {"queued", "running"}:
                line.call("job.cancel", {"job": job["job"]})


def _transcript(home: Home, number: int) -> str:
    return f"{home.path}/.claude/projects/{slug(f'{home.path}/talk-{number}')}/long.jsonl"


def _converse(path: str, cwd: str, seed: int) -> None:
    draw = Random(seed)  # noqa: S311 - the same conversation on every run
    with open(path, "w", encoding="utf-8") as file:
        for number in range(_MESSAGES):
            said = corpus.memory(9_000_000 + seed * _MESSAGES + number).body
            role = ("user", "assistant")[number % 2]
            if role == "user" and draw.random() < 0.02:
                topics = corpus.memory(number).description.split() * 2
                said = draw.choice(_REQUESTS).format(topics[0], topics[1])
            line = {
                "type": role,
                "uuid": f"m-{seed}-{number}",
                "cwd": cwd,
                "timestamp": f"2026-03-03T09:{number // 60 % 60:02}:{number % 60:02}.000Z",
                "message": {"role": role, "content": said},
            }
            file.write(json.dumps(line) + "\n")
