"""``make bench-load``: 64 clients with mixed calls on one daemon, beside a plain server.

The plain server (``rpc_echo``) gets the same bytes from the same clients and does nothing with
them, so the ratio says what memd's work, limits and fairness cost together. Both are asked in
turns, since machines are noisy. No starvation: the share of the client that is served least is
told, and Jain's index (1 is equal shares, 1/64 is one client alone).
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import corpus
from benchmarks.background import folder
from benchmarks.load_client import MEMORIES
from benchmarks.measures import Series
from tests.support.daemon import Home, client, daemon_process, throw_away_home

CLIENTS, PROCESSES = 64, 8
SECONDS = 60.0
_TURNS = 4  # of each server
_LEAST_SHARE = 0.5  # of the mean, that a client gets
_ROOT = Path(__file__).parents[1]


@dataclass(slots=True)
class Told:
    """What clients of one server counted: times by method, calls by client, errors."""

    pid: int
    seconds: float = 0.0
    processor: float = 0.0
    times: dict[str, list[float]] = field(default_factory=dict)
    calls: list[int] = field(default_factory=lambda: [0] * CLIENTS)
    errors: list[str] = field(default_factory=list)

    @property
    def every(self) -> Series:
        """All times."""
        return Series(tuple(time for times in self.times.values() for time in times))

    @property
    def rate(self) -> float:
        """Calls in a second."""
        return sum(self.calls) / self.seconds

    @property
    def cost(self) -> float:
        """Milliseconds of the processor that a call took the server."""
        return 1000 * self.processor / sum(self.calls)

    @property
    def least(self) -> float:
        """The share of the client that was served least, of the mean."""
        return min(self.calls) * CLIENTS / sum(self.calls)

    @property
    def fairness(self) -> float:
        """Jain's index of the clients' calls."""
        return sum(self.calls) ** 2 / (CLIENTS * sum(count**2 for count in self.calls))


def main() -> int:
    """Measure and print; 1 where a call failed or a client was starved."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each server")
    seconds = parser.parse_args().seconds / _TURNS
    with throw_away_home() as home:
        cwd = home.project()
        corpus.write(folder(home, cwd), MEMORIES)
        with daemon_process(home) as process, _plain_server(home) as (path, pid):
            ours, plain = Told(process.pid), Told(pid)
            with client(home) as first:
                first.call("memory.search", {"cwd": cwd, "query": "warm"})
            for _ in range(_TURNS):
                _load(ours, home.places.socket, cwd, seconds)
                _load(plain, path, cwd, seconds, "echo")
            resident = _resident(process.pid)
    for name, told in (("memd", ours), ("anyio and jsonrpcserver, echo", plain)):
        print(
            f"{name}: {CLIENTS} clients, {told.seconds:.0f} s: {told.rate:,.0f} calls/s, p50"
            f" {told.every.p50:.1f} ms, p99 {told.every.p99:.1f} ms, {told.cost:.2f} ms of the"
            f" processor a call, {len(told.errors)} errors;"
            f" the least served client has {told.least:.2f} of the mean, Jain's index"
            f" {told.fairness:.4f}"
        )
    print(
        f"memd has {ours.rate / plain.rate:.2f} of the plain server's calls/s, its p99 is"
        f" {ours.every.p99 / plain.every.p99:.1f} times as long; RSS {resident:.0f} MiB"
    )
    for method, times in sorted(ours.times.items()):
        series = Series(tuple(times))
        print(f"  {method}: {len(times):,} calls, p50 {series.p50:.1f}, p99 {series.p99:.1f} ms")
    for error in ours.errors[:3]:
        print(f"  error: {error}")
    return 0 if not ours.errors and ours.least >= _LEAST_SHARE else 1


@contextmanager
def _plain_server(home: Home) -> Iterator[tuple[str, int]]:
    path = f"{home.path}/echo.sock"
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.rpc_echo", path], cwd=_ROOT)
    try:
        while not os.path.exists(path):
            time.sleep(0.01)
        yield path, process.pid
    finally:
        process.kill()
        process.wait()


def _load(told: Told, path: str, cwd: str, seconds: float, *more: str) -> None:
    """Let all clients ask one server for so long, and add up what they tell."""
    share = CLIENTS // PROCESSES
    pipe = subprocess.PIPE
    with ExitStack() as stack:
        processes: list[subprocess.Popen[bytes]] = []
        for number in range(0, CLIENTS, share):
            command = [sys.executable, "-m", "benchmarks.load_client", path, cwd, str(seconds)]
            command += [str(number), str(share), *more]
            started = subprocess.Popen(command, cwd=_ROOT, stdin=pipe, stdout=pipe)
            processes.append(stack.enter_context(started))
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
        before = _processor(told.pid)
        for process in processes:
            assert process.stdin is not None
            process.stdin.write(b"\n")
            process.stdin.flush()
        results = [json.loads(process.communicate()[0]) for process in processes]
    _count(told, [one for result in results for one in result])
    told.seconds += seconds
    told.processor += _processor(told.pid) - before


def _count(told: Told, clients: Sequence[dict[str, Any]]) -> None:
    for number, one in enumerate(clients):
        told.calls[number] += len(one["times"])
        told.errors += one["errors"]
        for method, milliseconds in one["times"]:
            told.times.setdefault(method, []).append(milliseconds)


def _processor(pid: int) -> float:
    """Return how many seconds of the processor a process has taken."""
    words = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def _resident(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS:"))


if __name__ == "__main__":
    sys.exit(main())
