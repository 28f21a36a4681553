"""Clients of one process that ask one after another, each on a connection of its own.

``python -m benchmarks.load_client SOCKET CWD SECONDS FIRST COUNT [echo]``: says ``ready``, begins
when a line comes, and prints the times in ms and the errors of its clients as JSON. With ``echo``
the same bytes go to the one method of a plain server.
"""

import json
import selectors
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from benchmarks import corpus

MEMORIES = 1_000
_BODY = "What was decided stands here, with the reason and the day. " * 8


@dataclass(slots=True)
class Client:
    """One client: what it has asked, when, and how long its answers took."""

    number: int
    line: socket.socket
    draw: Random
    asked: float = 0.0
    kind: str = ""
    rest: bytearray = field(default_factory=bytearray)
    times: list[tuple[str, float]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def _calls(client: Client, cwd: str) -> tuple[str, dict[str, Any]]:
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
        lambda: ("session.start", {"session_id": session}): 5,
        lambda: ("job.list", {}): 5,
        lambda: ("memory.write", _written(client)): 10,
    }
    method, params = client.draw.choices(list(kinds), list(kinds.values()))[0]()
    return method, {"cwd": cwd, **params}


def _written(client: Client) -> dict[str, Any]:
    name = f"load-{client.number}-{client.draw.randrange(4)}"
    about = {"name": name, "description": f"{name} of the load", "type": "project"}
    return {"path": f"{name}.md", "body": f"{_BODY}{len(client.times)}", **about}


def _ask(client: Client, cwd: str, *, echo: bool) -> None:
    client.kind, params = _calls(client, cwd)
    method = "echo" if echo else client.kind
    frame = {"jsonrpc": "2.0", "id": len(client.times), "method": method, "params": params}
    data = json.dumps(frame).encode() + b"\n"
    client.asked = time.perf_counter()
    client.line.sendall(data)


def _take(client: Client) -> bool:
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


def main() -> None:
    """Ask for so long, and tell what came of it."""
    path, cwd, seconds, first, count, *more = sys.argv[1:]
    echo, clients = bool(more), []
    with selectors.DefaultSelector() as waiting:
        for number in range(int(first), int(first) + int(count)):
            line = socket.socket(socket.AF_UNIX)
            line.connect(path)
            clients.append(Client(number, line, Random(number)))  # noqa: S311 - the same each run
            waiting.register(line, selectors.EVENT_READ, clients[-1])
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        until = time.perf_counter() + float(seconds)
        for client in clients:
            _ask(client, cwd, echo=echo)
        under_way = len(clients)
        while under_way:
            for key, _ in waiting.select():
                client = key.data
                if _take(client):
                    if time.perf_counter() < until:
                        _ask(client, cwd, echo=echo)
                    else:
                        under_way -= 1
    told = [{"times": client.times, "errors": client.errors} for client in clients]
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main()
