"""``make bench-load``: 64 clients with mixed calls on one daemon, beside a plain server.

The plain server (anyio's own loop and jsonrpcserver, one method, no work, none of memd's limits,
turns and checks) gets the same bytes from the same clients and sends the parameters back, so the
ratio says what memd's work, limits and fairness cost together. Both are asked in turns, since
machines are noisy. No starvation: the share of the client that is served least is told, and Jain's
index (1 is equal shares, 1/64 is one client only).

This file is also the processes that it starts: ``echo SOCKET`` is the plain server, ``ask SOCKET
CWD SECONDS FIRST COUNT METHOD`` some of the clients, which begin when a line comes and print what
they counted as JSON. ``METHOD`` is the one that all calls name, "" for their own.
"""

import argparse
import json
import os
import selectors
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import anyio
from anyio.abc import SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream
from jsonrpcserver import Result, Success, async_dispatch, method

from tests.support import corpus
from tests.support.daemon import Home, client, daemon_process, throw_away_home

CLIENTS, PROCESSES = 64, 8
MEMORIES = 1_000
SECONDS = 60.0
_TURNS = 4  # of each server
_LEAST_SHARE = 0.5  # of the mean, that a client gets
_MOST_BYTES = 4 * 1024 * 1024
_BODY = "What was decided stands here, with the reason and the day. " * 8
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
    def every(self) -> list[float]:
        """All times."""
        return [time for times in self.times.values() for time in times]

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


def measure(arguments: Sequence[str]) -> int:
    """Measure and print; 1 where a call failed or a client was starved."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each server")
    seconds = parser.parse_args(arguments).seconds / _TURNS
    with throw_away_home() as home:
        cwd = home.project()
        corpus.write(corpus.folder(home, cwd), MEMORIES)
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
            f" {statistics.median(told.every):.1f} ms, p99 {_p99(told.every):.1f} ms,"
            f" {told.cost:.2f} ms of the processor a call, {len(told.errors)} errors;"
            f" the least served client has {told.least:.2f} of the mean, Jain's index"
            f" {told.fairness:.4f}"
        )
    print(
        f"memd has {ours.rate / plain.rate:.2f} of the plain server's calls/s, its p99 is"
        f" {_p99(ours.every) / _p99(plain.every):.1f} times as long; RSS {resident:.0f} MiB"
    )
    for name, times in sorted(ours.times.items()):
        middle = statistics.median(times)
        print(f"  {name}: {len(times):,} calls, p50 {middle:.1f}, p99 {_p99(times):.1f} ms")
    for error in ours.errors[:3]:
        print(f"  error: {error}")
    return 0 if not ours.errors and ours.least >= _LEAST_SHARE else 1


@contextmanager
def _plain_server(home: Home) -> Iterator[tuple[str, int]]:
    path = f"{home.path}/echo.sock"
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.load", "echo", path], cwd=_ROOT)
    try:
        while not os.path.exists(path):
            time.sleep(0.01)
        yield path, process.pid
    finally:
        process.kill()
        process.wait()


def _load(told: Told, path: str, cwd: str, seconds: float, only: str = "") -> None:
    """Let all clients ask one server for so long, and add up what they tell."""
    share = CLIENTS // PROCESSES
    pipe = subprocess.PIPE
    with ExitStack() as stack:
        processes: list[subprocess.Popen[bytes]] = []
        for number in range(0, CLIENTS, share):
            command = [sys.executable, "-m", "benchmarks.load", "ask", path, cwd, str(seconds)]
            command += [str(number), str(share), only]
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
        for name, milliseconds in one["times"]:
            told.times.setdefault(name, []).append(milliseconds)


def _processor(pid: int) -> float:
    """Return how many seconds of the processor a process has taken."""
    words = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def _resident(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS:"))


@dataclass(slots=True)
class Asking:
    """One client: what it has asked, when, and how long its answers took."""

    number: int
    line: socket.socket
    draw: Random
    asked: float = 0.0
    kind: str = ""
    rest: bytearray = field(default_factory=bytearray)
    times: list[tuple[str, float]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def _calls(client: Asking, cwd: str) -> tuple[str, dict[str, Any]]:
    """Return the next call of a client, as its dice have it."""
    memory = corpus.memory(client.draw.randrange(MEMORIES))
    session = f"l{client.number}-{len(client.times) // 20}"
    kinds: dict[Callable[[], tuple[str, dict[str, Any]]], int] = {
        lambda: ("memory.read", {"path": memory.path}): 20,
        lambda: ("prefetch", {"session_id": session, "query": f"what of {memory.name}?"}): 20,
        lambda: ("memory.search", {"query": memory.description}): 15,
        lambda: ("load_prompt", {"session_id": session}): 10,
        lambda: ("memory.list", {"limit": 20}): 10,
        lambda: ("memory.history", {"limit": 20}): 5,
        lambda: ("session", {"session_id": session, "event": "start"}): 5,
        lambda: ("job.list", {}): 5,
        lambda: ("memory.write", _written(client)): 10,
    }
    name, params = client.draw.choices(list(kinds), list(kinds.values()))[0]()
    return name, {"cwd": cwd, **params}


def _written(client: Asking) -> dict[str, Any]:
    name = f"load-{client.number}-{client.draw.randrange(4)}"
    about = {"name": name, "description": f"{name} of the load", "type": "project"}
    return {"path": f"{name}.md", "body": f"{_BODY}{len(client.times)}", **about}


def _ask(client: Asking, cwd: str, only: str) -> None:
    client.kind, params = _calls(client, cwd)
    frame = {
        "jsonrpc": "2.0",
        "id": len(client.times),
        "method": only or client.kind,
        "params": params,
    }
    data = json.dumps(frame).encode() + b"\n"
    client.asked = time.perf_counter()
    client.line.sendall(data)


def _take(client: Asking) -> bool:
    """Take what came, and return whether the answer is whole. Raises ConnectionError."""
    part = client.line.recv(1 << 18)
    if not part:
        raise ConnectionError
    client.rest += part
    if not client.rest.endswith(b"\n"):
        return False
    client.times.append((client.kind, (time.perf_counter() - client.asked) * 1000))
    if b'"error":{' in client.rest[:200]:
        client.errors.append(client.rest[:300].decode())
    client.rest.clear()
    return True


def ask(path: str, cwd: str, seconds: float, numbers: range, only: str) -> None:
    """Ask for so long, and tell what came of it."""
    clients: list[Asking] = []
    with selectors.DefaultSelector() as waiting:
        for number in numbers:
            line = socket.socket(socket.AF_UNIX)
            line.connect(path)
            clients.append(Asking(number, line, Random(number)))  # noqa: S311 - the same each run
            waiting.register(line, selectors.EVENT_READ, clients[-1])
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        until = time.perf_counter() + seconds
        for client in clients:
            _ask(client, cwd, only)
        under_way = len(clients)
        while under_way:
            for key, _ in waiting.select():
                client = key.data
                if _take(client):
                    if time.perf_counter() < until:
                        _ask(client, cwd, only)
                    else:
                        under_way -= 1
    told = [{"times": client.times, "errors": client.errors} for client in clients]
    json.dump(told, sys.stdout)


@method(name="echo")
async def _echo(**params: Any) -> Result:
    """Return what came."""
    return Success(params)


async def serve(path: str) -> None:
    """Serve lines on a Unix socket until killed."""
    listener = await anyio.create_unix_listener(path)
    await listener.serve(_answer)


async def _answer(stream: SocketStream) -> None:
    async with stream:
        lines = BufferedByteReceiveStream(stream)
        while True:
            try:
                line = await lines.receive_until(b"\n", _MOST_BYTES)
            except anyio.IncompleteRead:
                return
            await stream.send((await async_dispatch(line.decode())).encode() + b"\n")


def _p99(times: Sequence[float]) -> float:
    return sorted(times)[min(len(times) - 1, int(len(times) * 0.99))]


def main() -> int:
    """Measure, or be one of the processes."""
    match sys.argv[1:]:
        case ["echo", path]:
            anyio.run(serve, path)
        case ["ask", path, cwd, seconds, first, share, only]:
            ask(path, cwd, float(seconds), range(int(first), int(first) + int(share)), only)
        case arguments:
            return measure(arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
