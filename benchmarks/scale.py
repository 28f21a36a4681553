"""Recall at any size: prefetch, scans, saves and memory from 200 to 100,000 memories.

Every size has a HOME and a daemon process of its own. All figures are seen by a client through the
socket, but for the scans of the catalogue, which are made by the store's own code in this process,
beside the floors of the same files.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from benchmarks import background, corpus, measures, peers
from benchmarks.background import Pressure
from benchmarks.corpus import Question
from benchmarks.measures import Line, RefusedError, Series, Size, each
from benchmarks.peers import Floors
from memd.daemon.clock import SystemClock
from memd.store.headers_file import HeadersFiles
from memd.store.reading import DirectoryReader
from tests.support.daemon import Home, daemon_process, throw_away_home

SIZES = (200, 1_000, 10_000, 100_000)
QUESTIONS = 420
SERIES_SECONDS = 40.0  # of one series of prompts
WRITES = 50
SAVES = 20
KNOWN = 8  # memories that must all be found before the index counts as whole
INDEXING_SECONDS = 240.0
SAVE_SECONDS = 5.0  # after this a save counts as never found


@dataclass(frozen=True, slots=True)
class Start:
    """Milliseconds from the start of the process to the first answer, and to a whole index."""

    answer: float
    whole: float
    note: str


@dataclass(frozen=True, slots=True)
class Prompts:
    """How long prompts took, and calls that do nothing; the share of hits among the five."""

    series: Series
    empty: Series
    results: float


@dataclass(frozen=True, slots=True)
class Found:
    """Figures of one size; times in milliseconds."""

    count: int
    floors: Floors
    first_scan: float
    warm_scan: float
    cold: Start
    warm: Start
    fresh: Size
    idle: Prompts
    loaded: Prompts
    pressure: Pressure
    writes: Series | None
    misses: int
    refusal: str
    saves: Series
    never: int
    size: Size
    scanner: Series
    full_text: Series


def run(sizes: Sequence[int]) -> None:
    """Measure each size and print the table."""
    results = []
    for size in sizes:
        begin = time.perf_counter()
        results.append(_measure(size))
        for name, figure, _ in _rows(results[-1:])[1:]:
            _say(f"    {name}: {figure}")
        _say(f"{size} memories: measured in {time.perf_counter() - begin:.0f} s")
    print(measures.table(_rows(results)))
    for one in results:
        if one.refusal:
            print(f"\nWrites at {one.count}: {one.refusal}")


def _measure(count: int) -> Found:
    with throw_away_home() as home:
        cwd = home.project()
        directory = background.folder(home, cwd)
        _say(f"{count} memories: writing files")
        corpus.write(directory, count)
        background.prepare(home)
        requested = tuple(corpus.questions(count, QUESTIONS))
        paths = [corpus.memory(number).path for number in range(count)]
        floors = peers.floors(directory, paths)
        first_scan, warm_scan = _scans(directory, f"{home.path}/headers")
        _say("starting")
        with _daemon(home, cwd, count) as (process, cold):
            fresh = measures.size(process)
            _say("asking")
            with Line(home.places.socket) as line:
                idle = _ask(line, cwd, requested, "idle")
            _say("asking beside other work")
            with background.pressure(home) as pressure, Line(home.places.socket) as line:
                loaded = _ask(line, cwd, requested, "loaded", pressure)
            _say("writing")
            writes, misses, refusal = _writes(home, cwd)
            saves, never = _saves(home, cwd, directory)
            size = measures.size(process)
        with _daemon(home, cwd, count) as (_, warm):
            pass
        _say("asking others")
        scanner = peers.scanned(directory, requested)
        _, full_text = peers.full_text(f"{home.path}/peer.db", count, requested)
    return Found(
        count, floors, first_scan, warm_scan, cold, warm, fresh, idle, loaded, pressure,
        writes, misses, refusal, saves, never, size, scanner, full_text,
    )  # fmt: skip


@contextmanager
def _daemon(home: Home, cwd: str, count: int) -> Iterator[tuple[int, Start]]:
    """Run a daemon whose index is whole: its process, and how long that took."""
    begin = time.perf_counter()
    with daemon_process(home) as process:
        known = [corpus.memory(number * (count - 1) // (KNOWN - 1)) for number in range(KNOWN)]
        requested = [
            (results.path, f"where is {results.identifier} set, and why?") for results in known
        ]
        answered, note = 0.0, ""
        with Line(home.places.socket) as line:
            number = 0
            while requested and time.perf_counter() - begin < INDEXING_SECONDS:
                path, query = requested[-1]
                answer = _prefetch(line, cwd, query, f"start-{number}")
                answered = answered or time.perf_counter() - begin
                note = note or answer.get("note") or ""
                number += 1
                if _brings(answer, path) and not answer.get("note"):
                    requested.pop()
                else:
                    time.sleep(0.005)
        whole = float("inf") if requested else time.perf_counter() - begin
        yield process.pid, Start(answered * 1000, whole * 1000, note)


def _scans(directory: str, folder: str) -> tuple[float, float]:
    """Return what the store takes to read all headers, and to see that none has changed since.

    The second look is that of another process: it has only what the first one wrote down.
    """
    times = []
    for _ in range(2):
        reading = DirectoryReader(SystemClock(), files=HeadersFiles(folder))
        times.append(each(lambda _, here=reading: here.catalogue(directory), 1).p50)  # type: ignore[misc]
        reading.tend()
    return times[0], times[1]


def _ask(
    line: Line, cwd: str, requested: Sequence[Question], name: str, pressure: Pressure | None = None
) -> Prompts:
    """Ask all questions, each in a session of its own."""
    times, empty, hits, met = [], [], 0, 0
    warming = 0 if pressure else 20
    for number in range(warming):
        _prefetch(line, cwd, requested[number].text, f"{name}-warm-{number}")
    until = time.perf_counter() + SERIES_SECONDS
    for number, question in enumerate(requested):
        answer = _prefetch(line, cwd, question.text, f"{name}-{number}")
        times.append(line.milliseconds)
        line.call("hello", {})
        empty.append(line.milliseconds)
        if question.path:
            hits, met = hits + 1, met + _brings(answer, question.path)
        if pressure and number % 10 == 0:
            pressure.inspect(line)
        if time.perf_counter() > until:
            break
    return Prompts(Series(tuple(times)), Series(tuple(empty)), met / hits)


def _writes(home: Home, cwd: str) -> tuple[Series | None, int, str]:
    """Return how long writes took, and how many another client did not find at once."""
    times, misses = [], 0
    with Line(home.places.socket) as writer, Line(home.places.socket) as reader:
        for number in range(WRITES):
            topic, other = corpus.made_up(2 * number), corpus.made_up(2 * number + 1)
            try:
                writer.call("memory.write", _memory(cwd, f"new/{topic}.md", topic, other))
            except RefusedError as error:
                return None, 0, str(error)
            times.append(writer.milliseconds)
            answer = _prefetch(reader, cwd, f"what about {topic} and {other}?", f"new-{number}")
            misses += not _brings(answer, f"new/{topic}.md")
    return Series(tuple(times)), misses, ""


def _saves(home: Home, cwd: str, directory: str) -> tuple[Series, int]:
    """Return how long saves of an editor took to be found, and how many never were."""
    times, never = [], 0
    with Line(home.places.socket) as line:
        for number in range(SAVES):
            path = f"saved-{number // 2}.md"
            topic, other = (corpus.made_up(1_000 + 2 * number + more) for more in range(2))
            _save(f"{directory}/{path}", topic, other, in_place=bool(number % 2))
            begin, passed, tries = time.perf_counter(), 0.0, 0
            while passed < SAVE_SECONDS:
                session = f"saved-{number}-{tries}"
                answer = _prefetch(line, cwd, f"what about {topic} and {other}?", session)
                passed = time.perf_counter() - begin
                if _brings(answer, path):
                    break
                tries += 1
            else:
                never += 1
            times.append(passed * 1000)
    return Series(tuple(times)), never


def _save(path: str, topic: str, other: str, *, in_place: bool) -> None:
    content = f"---\nname: {topic}\ndescription: {topic} needs {other}\n---\n\nAsk {other}.\n"
    corpus.put(path if in_place else f"{path}.new", content)
    if not in_place:
        os.replace(f"{path}.new", path)


def _memory(cwd: str, path: str, topic: str, other: str) -> dict[str, Any]:
    return {
        "cwd": cwd,
        "path": path,
        "name": topic,
        "description": f"{topic} needs {other}",
        "type": "project",
        "body": f"The {topic} waits for {other} before each release.",
    }


def _prefetch(line: Line, cwd: str, query: str, session: str) -> Any:
    return line.call("prefetch", {"cwd": cwd, "query": query, "session_id": session})


def _brings(answer: Any, path: str) -> bool:
    return any(memory["path"].endswith(f"/{path}") for memory in answer["memories"])


def _rows(results: Sequence[Found]) -> list[list[str]]:
    """Return the table: a line for each figure, a column for each size."""
    scanner, _ = peers.searcher()
    lines: list[tuple[str, str, Callable[[Found], str]]] = [
        ("prefetch p50 / p95 / p99, ms", "p50 2 at 10k, 4 at 100k; p99 10", _spread),
        ("the memory asked for is among the five", "", lambda one: f"{one.idle.results:.0%}"),
        ("… beside a dream and three extractions", "p99 at most 2x idle", _loaded),
        ("a call that does nothing, p50 / p99: idle; beside them", "", _empty),
        ("jobs meanwhile: running + waiting; ended", "4", _jobs),
        ("ripgrep, words of the prompt: p50, ms", "", lambda one: _peer(one, one.scanner)),
        ("SQLite FTS5: p50, ms", "", lambda one: _peer(one, one.full_text)),
        ("cold start to first answer / whole index, ms", "", lambda one: _start(one.cold)),
        ("warm start to first answer / whole index, ms", "", lambda one: _start(one.warm)),
        ("first scan, ms (floor: read all heads)", "3x", _first_scan),
        ("warm scan, ms (floor: stat all)", "3x", _warm_scan),
        ("RSS after start, MB (of it mapped files)", "150 at 100k", lambda one: _mb(one.fresh)),
        ("RSS after all of it, MB", "", lambda one: _mb(one.size)),
        ("write p50 / p99, ms", "", _written),
        ("… not found by another client's next prefetch", "0", _missed),
        ("editor's save found: p50 / longest, ms", "300", _saved),
    ]
    lines = [(name.replace("ripgrep", scanner), aim, show) for name, aim, show in lines]
    head = ["what", *(f"{one.count:,}" for one in results), "aim"]
    return [head, *([name, *(show(one) for one in results), aim] for name, aim, show in lines)]


def _spread(one: Found) -> str:
    series = one.idle.series
    fewer = "" if len(series.times) >= QUESTIONS else f" ({len(series.times)} prompts)"
    return f"{series.p50:.2f} / {series.at(0.95):.2f} / {series.p99:.2f}{fewer}"


def _loaded(one: Found) -> str:
    series = one.loaded.series
    ratio = series.p99 / one.idle.series.p99
    return f"{series.p50:.2f} / {series.at(0.95):.2f} / {series.p99:.2f}: {ratio:.1f}x"


def _jobs(one: Found) -> str:
    work = one.pressure
    ended = ", ".join(f"{times} {kind}" for kind, times in sorted(work.ended.items()))
    running, waiting = (sum(seen) / len(seen) for seen in (work.running, work.waiting))
    return f"{running:.1f} + {waiting:.1f}; {ended or 'none'}"


def _empty(one: Found) -> str:
    shown = (
        f"{requested.empty.p50:.2f} / {requested.empty.p99:.2f}"
        for requested in (one.idle, one.loaded)
    )
    return "; ".join(shown)


def _peer(one: Found, theirs: Series) -> str:
    return f"{theirs.p50:.1f} ({theirs.p50 / one.idle.series.p50:.1f}x ours)"


def _start(start: Start) -> str:
    return f"{start.answer:,.0f} / {start.whole:,.0f}"


def _first_scan(one: Found) -> str:
    return (
        f"{one.first_scan:.1f} ({one.floors.heads:.1f}: {one.first_scan / one.floors.heads:.1f}x)"
    )


def _warm_scan(one: Found) -> str:
    return f"{one.warm_scan:.1f} ({one.floors.stats:.1f}: {one.warm_scan / one.floors.stats:.1f}x)"


def _mb(size: Size) -> str:
    return f"{size.resident:.0f} ({size.mapped:.0f}), peak {size.peak:.0f}"


def _written(one: Found) -> str:
    return f"{one.writes.p50:.1f} / {one.writes.p99:.1f}" if one.writes else "refused"


def _missed(one: Found) -> str:
    return f"{one.misses} of {WRITES}" if one.writes else "-"


def _saved(one: Found) -> str:
    lost = f"; {one.never} of {SAVES} never" if one.never else ""
    return f"{one.saves.p50:.0f} / {max(one.saves.times):.0f}{lost}"


def _say(words: str) -> None:
    print(f"… {words}", file=sys.stderr, flush=True)
