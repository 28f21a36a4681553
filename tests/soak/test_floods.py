"""G10: clients that are silent, flood or never read do not reach another client, nor the memory.

Measured are the calls of a second client while a flood lasts: on a connection that it has, and on
one that it makes anew for the call; and the resident memory of the daemon at its highest.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import cycle, islice
from pathlib import Path

import pytest

from memd.testing.daemon import Home, client, daemon_process, throw_away_home
from tests.soak.figures import FIGURE
from tests.soak.laid import lay

Record = Callable[[str, object], None]
MEMORIES = 1000  # a list of them is 300 kB
MEBIBYTE = 1024 * 1024
_SECONDS_P99 = 0.050
# Unread answers have 32 MiB; the rest is what the answers are made of, and caches that fill.
_GROWTH_BYTES = 48 * MEBIBYTE
_NEW_EVERY = 5  # calls on a new connection, among the others
FLOOD = r"""
import json, select, socket, sys
path, cwd, kind, count, method = sys.argv[1:]

def connect():
    made = socket.socket(socket.AF_UNIX)
    made.connect(path)
    made.setblocking(False)
    return made

def message(number):
    asked = {"jsonrpc": "2.0", "id": number, "method": method, "params": {}}
    if method.startswith("memory."):
        asked["params"] = {"cwd": cwd}
    if method == "memory.search":
        asked["params"]["query"] = "memory 5"
    if kind == "notify":
        del asked["id"]
    return json.dumps(asked).encode() + b"\n"

connected = [connect() for _ in range(int(count))]
if kind == "half":
    for each in connected:
        each.send(message(1)[:20])
print("ready", flush=True)
if kind in ("silent", "half"):
    sys.stdin.read()
    sys.exit()
rest = {each: b"" for each in connected}
number = 0
while True:
    readable, writable, _ = select.select([sys.stdin], list(rest), [])
    if readable:
        break
    for each in writable:
        if not rest[each]:
            rest[each] = b"".join(message(number + n) for n in range(50))
            number += 50
        try:
            rest[each] = rest[each][each.send(rest[each]):]
        except BlockingIOError:
            pass
        except OSError:  # dropped: come again
            del rest[each]
            each.close()
            rest[connect()] = b""
"""
FLOODS = {
    "240 silent connections of two processes": (2, "silent", 120, "hello"),
    "240 half frames of two processes": (2, "half", 120, "hello"),
    "110 clients that never read hello": (1, "read not", 110, "hello"),
    "110 clients that never read searches": (1, "read not", 110, "memory.search"),
    "110 clients that never read lists of 300 kB": (1, "read not", 110, "memory.list"),
    "notifications without end on one connection": (1, "notify", 1, "hello"),
    "searches as notifications without end": (1, "notify", 1, "memory.search"),
}


@pytest.fixture(scope="module")
def home() -> Iterator[tuple[Home, str, int]]:
    """Run one daemon with a project of memories for all floods."""
    with throw_away_home() as made, daemon_process(made) as process:
        cwd = made.project()
        with client(made) as first:
            lay(first.call("memory.list", {"cwd": cwd})["memory_dir"], MEMORIES)
            for _ in range(3):
                assert len(first.call("memory.list", {"cwd": cwd})["memories"]) == MEMORIES
        yield made, cwd, process.pid


@pytest.mark.parametrize("calls", [20, pytest.param(2000, marks=pytest.mark.soak)])
@pytest.mark.parametrize("flood", FLOODS)
def test_a_flood_does_not_reach_a_second_client(
    home: tuple[Home, str, int], flood: str, calls: int, record_property: Record
) -> None:
    """Old and new connections of others are answered as ever, and the memory is bounded."""
    made, cwd, pid = home
    quiet, _ = measured(made, cwd, pid, calls)
    before = resident(pid)
    with flooding(made, cwd, flood):
        times, highest = measured(made, cwd, pid, calls)
    record_property(
        FIGURE,
        f"G10 {flood}: {calls} calls of a second client p50 {at(times, 50):.1f} ms,"
        f" p99 {at(times, 99):.1f} ms (without the flood {at(quiet, 50):.1f} and"
        f" {at(quiet, 99):.1f}); RSS {before / MEBIBYTE:.0f} MiB, at most"
        f" {highest / MEBIBYTE:.0f}",
    )
    assert highest - before <= _GROWTH_BYTES
    assert at(times, 99) / 1000 <= _SECONDS_P99 or calls < len("a flood that is long enough")


@contextmanager
def flooding(home: Home, cwd: str, flood: str) -> Iterator[None]:
    """Run the hostile processes for the length of the block."""
    processes, kind, connections, method = FLOODS[flood]
    command = [sys.executable, "-c", FLOOD, home.places.socket, cwd, kind, str(connections), method]
    with ExitStack() as stack:
        for _ in range(processes):
            process = stack.enter_context(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            )
            assert process.stdout is not None
            assert process.stdin is not None
            assert process.stdout.readline() == b"ready\n"
            stack.callback(process.stdin.close)
        yield


def measured(home: Home, cwd: str, pid: int, calls: int) -> tuple[list[float], int]:
    """Call so many times; return the seconds that each took, in order, and the highest RSS."""
    requested: tuple[tuple[str, dict[str, str]], ...] = (
        ("hello", {}),
        ("memory.read", {"cwd": cwd, "path": "m1.md"}),
        ("memory.search", {"cwd": cwd, "query": "memory 7"}),
    )
    times, highest = [], 0
    with client(home) as kept:
        for number, (method, params) in enumerate(islice(cycle(requested), calls)):
            begun = time.perf_counter()
            if number % _NEW_EVERY:
                kept.call(method, params)
            else:
                with client(home) as new:
                    new.call(method, params)
            times.append(time.perf_counter() - begun)
            highest = max(highest, resident(pid))
    return sorted(times), highest


def resident(pid: int) -> int:
    """Return the resident memory of a process in bytes; 0 where the system does not tell."""
    status = Path(f"/proc/{pid}/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))


def at(times: list[float], percent: int) -> float:
    """Return a percentile of sorted seconds, in milliseconds."""
    return times[min(len(times) - 1, len(times) * percent // 100)] * 1000
