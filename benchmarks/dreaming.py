"""What a dream costs the prompts beside it, and how fast one dies.

Blocks of prompts are asked in turns: while nothing else happens, beside the fixed pass, and beside
a dream by a model that calls tools without a pause; so the noise of the machine meets all of them.
Prompts go to one project, the dreams to another of the same size.
"""

import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from benchmarks import background, corpus, measures
from benchmarks.corpus import Question
from benchmarks.measures import Line, RefusedError, Series
from tests.support.daemon import Home, daemon_process, throw_away_home
from tests.support.messages import Hang, ReceivedMessage, messages_server, text, tools
from tests.support.messages_steps import Step

SIZES = (200, 1_000, 10_000)
PROMPTS = 2_000  # of each condition at least
BLOCKS = 4  # of each condition
CANCELS = 20  # of each kind
IDLE, FIXED, AGENT = "idle", "fixed pass", "agent"
_ASLEEP = "asleep"
_FIRST = 5_000_000  # the number of the first memory that is dreamt of
_TWINS = 20  # what each fixed pass finds to merge
_SOURCES = 1_500  # files of the project that an agent searches, of some 6 KB
_TURNS = 15  # of each agent's dream
_BLOCK_SECONDS = 45.0  # that a block waits for a dream to end, so that all its phases are met
_PAUSE_SECONDS = 0.02  # between two prompts at most: a dream goes on meanwhile
_SPREAD_SECONDS = 6.0  # of a longer dream, the part in which it is cancelled
_INDEXING_SECONDS = 60.0


@dataclass(slots=True)
class _Load:
    """Dreams one after the other until it is over: how many ended, and what failed."""

    over: threading.Event = field(default_factory=threading.Event)
    ended: int = 0
    failed: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Found:
    """Figures of one size: milliseconds of prompts by condition, of each block; jobs that ended."""

    count: int
    times: dict[str, list[Series]]
    ended: dict[str, int]
    cancels: dict[str, Series]

    def ratio(self, condition: str, share: float) -> float:
        """Return the quotient of a condition's time at a share of all prompts and the idle one."""
        return _all(self.times[condition]).at(share) / _all(self.times[IDLE]).at(share)


class Scene:
    """A daemon with a project that is asked and one that dreams, and the server of its model."""

    def __init__(self, home: Home, count: int) -> None:
        self.home = home
        self.count = count
        self.cwd = home.project()
        self.asleep = home.project(_ASLEEP)
        self.memories = background.folder(home, self.asleep)
        self.hangs = threading.Event()
        self._config = Path(home.places.config)
        self._url = ""

    def prepare(self, url: str) -> None:
        """Write both projects' memories, the sources and the settings; ``url`` is the model's."""
        corpus.write(background.folder(self.home, self.cwd), self.count)
        corpus.write(self.memories, self.count, first=_FIRST)
        for number in range(_SOURCES):
            path = f"{self.asleep}/src/part{number % 40}/module{number}.txt"
            os.makedirs(os.path.dirname(path), exist_ok=True)
            bodies = (corpus.memory(8_000_000 + 6 * number + more).body for more in range(6))
            corpus.put(path, "\n".join(bodies))
        self._config.parent.mkdir(parents=True, exist_ok=True)
        self._url = url
        self.engine(model=False)

    def engine(self, *, model: bool) -> None:
        """Have dreams done by a model or by the fixed pass, from the next one on."""
        use = str(model).lower()
        self._config.write_text(
            f'[model]\nbase_url = "{self._url}"\n'
            "[spend]\ndollars_per_day = 10000\ntokens_per_day = 100000000000\n"
            "dream_requests_per_day = 1000000\n"
            f"[dream]\nauto = false\nuse_model = {use}\nmax_load = 0\n"
            "free_memory_mb = 0\non_battery = true\n"
        )
        self._config.chmod(0o600)

    def untidy(self, turn: int) -> None:
        """Put twins beside some memories, so that a fixed pass has something to merge."""
        for number in range(min(_TWINS, self.count)):
            twin = corpus.memory(_FIRST + (turn * _TWINS + number) % self.count)
            corpus.put(f"{self.memories}/twin-{number}.md", twin.content)

    def dream(self, line: Line, *, wait: bool) -> dict[str, Any]:
        """Dream."""
        results: dict[str, Any] = line.call(
            "dream", {"cwd": self.asleep, "force": True, "wait": wait}
        )
        return results

    def answer(self, request: ReceivedMessage) -> Step:
        """Say what the model says: look around, search, write, again and again."""
        if not request.json.get("tools"):
            return text("nothing")
        turn = sum(message["role"] == "assistant" for message in request.json["messages"])
        if turn >= _TURNS:
            return text("Done.")
        step = tools(*_calls(self.asleep, turn))
        return Hang(step) if self.hangs.is_set() else step


def run(sizes: Sequence[int]) -> None:
    """Measure each size and print the tables."""
    results = []
    for size in sizes:
        begin = time.perf_counter()
        results.append(measure(size))
        print(f"… {size}: {time.perf_counter() - begin:.0f} s", file=sys.stderr, flush=True)
        print(measures.table(_rows(results[-1:])), file=sys.stderr, flush=True)
    print(measures.table(_rows(results)))


def measure(count: int) -> Found:
    """Return the figures of one size."""
    with throw_away_home() as home:
        scene = Scene(home, count)
        with messages_server(scene.answer) as server:
            scene.prepare(server.url)
            with daemon_process(home):
                requested = tuple(corpus.questions(count, 3 * PROMPTS))
                _ready(scene, requested)
                times, ended = _blocks(scene, requested)
                cancels = _cancels(scene)
    return Found(count, times, ended, cancels)


def _ready(scene: Scene, requested: Sequence[Question]) -> None:
    """Wait for the index, and load what a model needs."""
    until = time.perf_counter() + _INDEXING_SECONDS
    with Line(scene.home.places.socket) as line:
        for number in count():
            answer = _prompt(
                line, scene.cwd, requested[number % len(requested)].text, f"ready-{number}"
            )
            if not answer.get("note") or time.perf_counter() > until:
                break
            time.sleep(0.05)
        for engine in (False, True):
            scene.engine(model=engine)
            with suppress(RefusedError):
                scene.dream(line, wait=True)


def _blocks(
    scene: Scene, requested: Sequence[Question]
) -> tuple[dict[str, list[Series]], dict[str, int]]:
    """Ask in turns beside nothing, the fixed pass and an agent."""
    times: dict[str, list[Series]] = {IDLE: [], FIXED: [], AGENT: []}
    ended = dict.fromkeys(times, 0)
    draw = Random(1)  # noqa: S311 - the same pauses on every run
    number = 0
    for _ in range(BLOCKS):
        for condition, series in times.items():
            with _beside(scene, condition) as load, Line(scene.home.places.socket) as line:
                taken: list[float] = []
                until = time.perf_counter() + _BLOCK_SECONDS
                while len(taken) < PROMPTS // BLOCKS or (
                    condition != IDLE and not load.ended and time.perf_counter() < until
                ):
                    _prompt(line, scene.cwd, requested[number % len(requested)].text, f"s-{number}")
                    taken.append(line.milliseconds)
                    number += 1
                    time.sleep(draw.random() * _PAUSE_SECONDS)
            series.append(Series(tuple(taken)))
            ended[condition] += load.ended
            if load.failed:
                print(f"… {condition}: {load.failed[0]}", file=sys.stderr, flush=True)
    return times, ended


@contextmanager
def _beside(scene: Scene, condition: str) -> Iterator[_Load]:
    """Have dreams at work for the length of the block."""
    load = _Load()
    if condition == IDLE:
        yield load
        return
    model = condition == AGENT
    scene.engine(model=model)
    thread = threading.Thread(target=_repeat, args=(scene, load), kwargs={"model": model})
    thread.start()
    try:
        with Line(scene.home.places.socket) as line:
            _running(line)
            yield load
    finally:
        load.over.set()
        with Line(scene.home.places.socket) as line:
            while thread.is_alive():
                for job in _jobs(line):
                    line.call("job.cancel", {"job": job})
                thread.join(0.01)


def _repeat(scene: Scene, load: _Load, *, model: bool) -> None:
    """Dream again and again; what another engine did than the one meant counts as failed."""
    with Line(scene.home.places.socket) as line:
        for turn in count():
            if load.over.is_set():
                return
            if not model:
                scene.untidy(turn)
            with suppress(RefusedError):
                results = scene.dream(line, wait=True)
                if results["status"] == "completed" and (results["engine"] == "local") != model:
                    load.ended += 1
                elif not load.over.is_set():
                    load.failed.append(results["model_problem"] or results["reason"])


def _cancels(scene: Scene) -> dict[str, Series]:
    """Return how long dreams took to die, cancelled at moments spread over each kind."""
    results = {}
    with Line(scene.home.places.socket) as line:
        for kind in (FIXED, AGENT):
            seconds = _lasting(scene, line, model=kind == AGENT)
            results[kind] = _cancelled(scene, line, min(seconds, _SPREAD_SECONDS))
        scene.hangs.set()
        results["hanging server"] = _cancelled(scene, line, 1.0)
        results["waiting for the lane"] = _waiting(scene, line)
        scene.hangs.clear()
    return results


def _lasting(scene: Scene, line: Line, *, model: bool) -> float:
    """Return how many seconds a dream takes that nobody disturbs."""
    scene.engine(model=model)
    scene.untidy(1)
    begin = time.perf_counter()
    with suppress(RefusedError):
        scene.dream(line, wait=True)
    return time.perf_counter() - begin


def _cancelled(scene: Scene, line: Line, seconds: float) -> Series:
    """Cancel at moments spread over so many seconds."""
    times = []
    for number in range(CANCELS):
        job = scene.dream(line, wait=False)["job"]
        _running(line)
        time.sleep(seconds * number / CANCELS)
        line.call("job.cancel", {"job": job})
        times.append(line.milliseconds)
    return Series(tuple(times))


def _waiting(scene: Scene, line: Line) -> Series:
    """Cancel dreams that wait behind another one of the same directory."""
    first = scene.dream(line, wait=False)["job"]
    _running(line)
    times = []
    for number in range(CANCELS):
        params = {"cwd": scene.asleep, "session_id": f"lane-{number}", "messages": [_SAID]}
        job = line.call("extract", params)["job"]
        line.call("job.cancel", {"job": job})
        times.append(line.milliseconds)
    line.call("job.cancel", {"job": first})
    return Series(tuple(times))


_SAID = {"role": "user", "content": "Remember that the freeze begins on 2026-03-05."}


def _running(line: Line) -> None:
    """Wait until a job is at work, or a second has passed."""
    for _ in range(500):
        if any(job["state"] == "running" for job in line.call("job.list", {"limit": 5})["jobs"]):
            return
        time.sleep(0.002)


def _jobs(line: Line) -> list[str]:
    jobs = line.call("job.list", {"limit": 20})["jobs"]
    return [job["job"] for job in jobs if job["state"] in {"queued", "running"}]


def _prompt(line: Line, cwd: str, query: str, session: str) -> Any:
    params = {"cwd": cwd, "query": query, "session_id": session, "strategy": "local"}
    return line.call("prefetch", params)


def _calls(project: str, turn: int) -> list[tuple[str, dict[str, Any]]]:
    """Return what an agent calls in a turn: it reads, searches far and near, and writes."""
    topic = corpus.memory(_FIRST + turn).description.split()[0].lower()
    head = f"name: found-{turn}\ndescription: {topic} was found\ntype: project"
    content = f"---\n{head}\n---\n\nIt is {topic}.\n"
    return [
        ("Grep", {"pattern": f"{topic}.*release.*{turn}z", "path": project}),
        ("Grep", {"pattern": topic, "output_mode": "content", "head_limit": 10}),
        ("Glob", {"pattern": f"**/*{topic}*.md"}),
        ("Bash", {"command": f"grep -rc {topic} {project}/src/part{turn} | head -5"}),
        ("Read", {"file_path": corpus.memory(_FIRST + turn).path}),
        ("Write", {"file_path": f"found-{turn}.md", "content": content}),
    ]


def _all(blocks: Sequence[Series]) -> Series:
    return Series(tuple(taken for series in blocks for taken in series.times))


def _rows(results: Sequence[Found]) -> list[list[str]]:
    """Return the table: a line for each figure, a column for each size."""
    requested = [
        [f"`prefetch`, {condition}, p50 / p99, ms", *(_spread(one, condition) for one in results)]
        for condition in (IDLE, FIXED, AGENT)
    ]
    died = [
        [f"cancelled, {kind}: p50 / longest, ms", *(_ends(one.cancels[kind]) for one in results)]
        for kind in results[0].cancels
    ]
    return [["what", *(f"{one.count:,}" for one in results)], *requested, *died]


def _spread(one: Found, condition: str) -> str:
    series = _all(one.times[condition])
    shown = f"{series.p50:.1f} / {series.p99:.1f}"
    if condition == IDLE:
        return shown
    ratios = f"{one.ratio(condition, 0.5):.1f} / {one.ratio(condition, 0.99):.1f} times"
    return f"{shown}: {ratios}; {one.ended[condition]} ended"


def _ends(series: Series) -> str:
    return f"{series.p50:.0f} / {max(series.times):.0f}"
