"""``make bench``: the figures of the main job, each beside its floor in the same run.

``python -m benchmarks [PART...] [--sizes N,N...]`` measures some of it: ``latency`` (start, writes,
round trips), ``hook`` (each event of a client, with memd at rest, beside a dream, hung and absent),
``extract`` (until an extraction is accepted), ``damage`` (what a dream does to planted facts),
``dream`` (prompts beside dreams, and how fast one dies; 200 to 10,000 memories), ``first`` (the
first prompt after a start; 200 to 10,000 memories), ``commands`` (memctl without a daemon) and
``scale`` (200 to 100,000 memories). ``dream``, ``first`` and ``scale`` take minutes. ``level`` (20
minutes of mixed load) and ``rules`` (what rules cost a tool's call) run only where they are
named.

Machines are noisy: the ratios mean more than the milliseconds. Nothing here fails but ``damage``,
whose bars hold on any machine; the aims stand beside the figures.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import commands, damage, dreaming, first, hooks, level, rules, scale
from tests.support import samples
from tests.support.daemon import Home, client, daemon_process, throw_away_home

PARTS = ("latency", "hook", "extract", "damage", "dream", "first", "commands", "scale")
LONG = ("level", "rules")  # only where they are named
MEMORIES = 200
ROUNDS = 400
EXTRACT_ROUNDS = 100
TYPES = ("user", "feedback", "project", "reference")
PROMPT = "what was decided about the release rule in week 11?"
SUBJECTS = ("database", "release", "review", "editor", "tracker", "pipeline", "budget", "design")


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    words = f"{', '.join(PARTS)}: all of them unless named; {', '.join(LONG)}"
    parser.add_argument("part", nargs="*", metavar="PART", help=words)
    sizes = ",".join(map(str, scale.SIZES))
    parser.add_argument(
        "--sizes", default=sizes, help=f"memories, for dream, first and scale: {sizes}"
    )
    parser.add_argument("--minutes", type=float, default=level.MINUTES, help="of the part level")
    parser.add_argument("--memctl", default="", help="of the part commands: an installed memctl")
    parser.add_argument("--plot", default="", help="the SVG that the part level draws")
    options = parser.parse_args()
    parts = options.part or PARTS
    chosen = [int(size) for size in options.sizes.split(",")]
    if unknown := set(parts) - {*PARTS, *LONG}:
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    whole = "damage" not in parts or damage.run()
    if set(parts) - {"damage", "dream", "first", "hook", "scale", "commands", *LONG}:
        _small(parts)
    if "hook" in parts:
        hooks.run()
    if "rules" in parts:
        rules.run()
    if "dream" in parts:
        dreaming.run([size for size in chosen if size <= max(dreaming.SIZES)])
    if "first" in parts:
        first.run([size for size in chosen if size <= max(first.SIZES)])
    if "commands" in parts:
        commands.run(options.memctl)
    if "scale" in parts:
        scale.run(chosen)
    if "level" in parts:
        level.run(options.minutes, options.plot)
    return 0 if whole else 1


def _small(parts: Sequence[str]) -> None:
    """Measure a store of usual size."""
    with throw_away_home() as home:
        started = time.perf_counter()
        with daemon_process(home) as process:
            ready = time.perf_counter() - started
            idle = _rss(process.pid)
            print(f"start to first answer {ready * 1000:.0f} ms (process start included)")
            print(f"RSS idle {idle:.1f} MB (aim: at most 45)")
            cwd = home.project()
            _writes(home, cwd)
            if "latency" in parts:
                _round_trips(home, cwd)
            if "extract" in parts:
                _accepted(home, cwd)
            print(f"RSS after all of it {_rss(process.pid):.1f} MB")


def _writes(home: Home, cwd: str) -> None:
    def write(number: int) -> None:
        subject = SUBJECTS[number % len(SUBJECTS)]
        connection.call(
            "memory.write",
            {
                "cwd": cwd,
                "path": f"{subject}_{number}.md",
                "name": f"{subject}-{number}",
                "description": f"What was decided about the {subject} in week {number}",
                "type": TYPES[number % 4],
                "body": f"The {subject} rule number {number} holds for every service. " * 8,
            },
        )

    with client(home, "bench") as connection:
        times = _each(write, MEMORIES)
    floor = _each(lambda number: _durable_file(Path(home.path) / f"floor-{number}"), MEMORIES)
    _print("durable write", times, "one file written and synced", floor)


def _round_trips(home: Home, cwd: str) -> None:
    path = f"{home.path}/echo.sock"
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.echo", path], cwd=Path(__file__).parents[1]
    )
    try:
        while not os.path.exists(path):
            time.sleep(0.01)
        question = {
            "load_prompt": {"cwd": cwd},
            "prefetch": {
                "cwd": cwd,
                "session_id": "",
                "query": PROMPT,
            },
        }
        for method, params in question.items():
            frame = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            times = _lines(home.places.socket, frame)
            echo = _lines(path, frame)
            _print(f"{method}, {MEMORIES} memories", times, "anyio echo", echo)
    finally:
        process.kill()
        process.wait()


def _lines(path: str, frame: dict[str, object]) -> list[float]:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        reader = connection.makefile("rb")

        def ask(number: int) -> None:
            params = frame["params"]
            if isinstance(params, dict) and "session_id" in params:
                params["session_id"] = f"s{number}"
            connection.sendall(json.dumps(frame).encode() + b"\n")
            assert reader.readline().endswith(b"\n")

        for number in range(20):
            ask(-number - 1)
        return _each(ask, ROUNDS)


def _accepted(home: Home, cwd: str) -> None:
    """Measure until an extraction is accepted; each is awaited before the next one is asked for."""
    floor: list[float] = []
    with client(home, "bench") as connection:

        def accept(number: int) -> str:
            transcript = samples.place(home.path, cwd, f"e{number}")
            params = {"cwd": cwd, "session_id": f"e{number}", "transcript_path": transcript}
            return str(connection.call("extract", params)["job"])

        jobs: list[str] = []
        times: list[float] = []
        for number in range(EXTRACT_ROUNDS):
            transcript = samples.place(home.path, cwd, f"e{number}")
            samples.write(samples.NAMES[0], transcript, cwd=cwd, session=f"e{number}")
            times += _each(lambda _, n=number: jobs.append(accept(n)), 1)  # type: ignore[misc]
            connection.call("job.wait", {"job": jobs[-1]})
            path = Path(home.path) / f"job-{number}"
            floor += _each(lambda _, path=path: _durable_file(path), 1)  # type: ignore[misc]
    _print("extract accepted", times, "one file written and synced", floor)
    print("   (aim: below 5 ms)")


def _durable_file(path: Path) -> None:
    with open(path, "wb") as file:
        file.write(b"x" * 600)
        file.flush()
        os.fsync(file.fileno())


def _each(act: Callable[[int], None], count: int) -> list[float]:
    times = []
    for number in range(count):
        begin = time.perf_counter()
        act(number)
        times.append((time.perf_counter() - begin) * 1000)
    return times


def _print(what: str, times: list[float], floor_name: str, floor: list[float]) -> None:
    ours, theirs = statistics.median(times), statistics.median(floor)
    print(
        f"{what}: p50 {ours:.2f} ms, p99 {_p99(times):.2f} ms; {floor_name}: p50 {theirs:.2f} ms, "
        f"p99 {_p99(floor):.2f} ms; ratio of the medians {ours / theirs:.1f}"
    )


def _p99(times: list[float]) -> float:
    return sorted(times)[min(len(times) - 1, int(len(times) * 0.99))]


def _rss(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    sys.exit(main())
