"""The first prompt after a start: a daemon that the hook itself started is asked as it comes up.

Cold has nothing of an earlier daemon but the state file; warm has all that one left behind.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import corpus
from benchmarks.background import folder
from benchmarks.measures import Line, table
from memd.cli.setup.hooks import Hooks
from memd.client import hook_file
from memd.client.launch import wait_until_up
from tests.support.daemon import Home, throw_away_home

SIZES = (200, 1_000, 10_000)
STARTS = 7  # of each kind
HOOK_MS = 200  # what the hook gives a prompt
_CACHES = ("index", "headers", "vectors")  # what is made anew when it is missing


def run(sizes: Sequence[int]) -> None:
    """Measure each size and print the table."""
    rows = [["memories", "cold, ms", "warm, ms", "the next one, ms", "brought, cold / warm"]]
    for size in sizes:
        with throw_away_home() as home:
            cwd = home.project()
            corpus.write(folder(home, cwd), size)
            _finish(home, cwd)
            cold = [_first(home, cwd, size, number, cold=True) for number in range(STARTS)]
            _finish(home, cwd)
            warm = [_first(home, cwd, size, number, cold=False) for number in range(STARTS)]
        results = [sum(each[2] for each in kind) for kind in (cold, warm)]
        rows.append(
            [
                f"{size:,}",
                _figure([each[0] for each in cold]),
                _figure([each[0] for each in warm]),
                _figure([each[1] for each in cold + warm]),
                f"{results[0]} / {results[1]} of {STARTS}",
            ]
        )
        print(rows[-1], file=sys.stderr)
    print(table(rows))


def _figure(times: Sequence[float]) -> str:
    return f"{statistics.median(times):.0f} (at most {max(times):.0f})"


def _first(
    home: Home, cwd: str, size: int, number: int, *, cold: bool
) -> tuple[float, float, bool]:
    """Return how long the first prompt and the next one took, and whether the first brought it."""
    if cold:
        for name in _CACHES:
            shutil.rmtree(f"{home.places.state_dir}/{name}", ignore_errors=True)
    _start(home, cwd)
    about = corpus.memory(number * (size - 1) // STARTS)
    with Line(home.places.socket) as line:
        line.call("status", {})  # answered once it serves; before, it listens
        answer = _ask(line, cwd, about, f"first-{time.time()}")
        first = line.milliseconds
        _ask(line, cwd, about, f"next-{time.time()}")
        following = line.milliseconds
        brought = any(memory["path"].endswith(f"/{about.path}") for memory in answer["memories"])
        _end(line)
    return first, following, brought


def _finish(home: Home, cwd: str) -> None:
    """Let one daemon see and index everything, and end."""
    _start(home, cwd)
    with Line(home.places.socket) as line:
        line.call("memory.search", {"cwd": cwd, "query": "anything"})  # waits for the whole index
        _ask(line, cwd, corpus.memory(0), "settle")  # has it brought to disk in the background
        line.call("session.end", {"cwd": cwd, "session_id": "starter"})
        while not list(Path(home.places.state_dir, "index").glob("*/seal")):
            time.sleep(0.05)
        _end(line)


def _ask(line: Line, cwd: str, about: corpus.Memory, session: str) -> dict[str, Any]:
    params = {"cwd": cwd, "session_id": session, "query": f"what about {about.identifier}?"}
    answer: dict[str, Any] = line.call("prefetch", params | {"deadline_ms": HOOK_MS})
    return answer


def _start(home: Home, cwd: str) -> None:
    """Let the hook start a daemon, and wait until it can be reached."""
    Path(home.places.state_dir, "hook-start").unlink(missing_ok=True)
    payload = {"session_id": "starter", "cwd": cwd, "prompt": "what was decided?"}
    hook_file.write(home.places)
    hooks = Hooks("claude-code", hook_file.hook_path(home.places), {"UserPromptSubmit": None})
    (entry,) = hooks.group("UserPromptSubmit")["hooks"]
    subprocess.run(
        ["/bin/sh", "-c", entry["command"]],
        input=json.dumps(payload | {"hook_event_name": "UserPromptSubmit"}).encode(),
        env=dict(home.environ),
        check=True,
    )
    wait_until_up(home.places, 30)


def _end(line: Line) -> None:
    """End the daemon and wait until it is gone."""
    pid = line.call("status", {})["pid"]
    line.call("shutdown", {})
    while os.path.exists(f"/proc/{pid}"):
        time.sleep(0.01)
