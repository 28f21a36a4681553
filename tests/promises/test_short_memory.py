"""With memory short a request fails; the daemon and the other connections stay."""

import json
import resource
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon import Home, client, daemon_process, throw_away_home

HEADROOM = 32 * 1024 * 1024
# 4 MiB that are a hundred when they are objects, and 4 MiB that a connection has to hold at once.
BOMB = b"[" + b"[]," * 1_390_000 + b"[]]"
LONG = b'"' + b"x" * 4_100_000 + b'"'


def ask(home: Home, params: bytes) -> Any:
    """Return what kind of error a request with such parameters for no method is answered with."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(60)
        connection.connect(home.places.socket)
        connection.sendall(b'{"jsonrpc":"2.0","id":1,"method":"none","params":{"x":%b}}\n' % params)
        return json.loads(connection.makefile("rb").readline())["error"]["data"]["kind"]


@pytest.mark.skipif(sys.platform != "linux", reason="prlimit is Linux's")
def test_what_does_not_fit_into_memory_costs_its_request_alone() -> None:
    """Frames that cannot be read are answered as such while a second client goes on."""
    with throw_away_home() as home, daemon_process(home) as process, client(home) as other:
        cwd = home.project()
        memory = {"name": "a", "description": "d", "type": "user", "body": "x"}
        other.call("memory.write", {"cwd": cwd, "path": "a.md", **memory})
        other.call("memory.search", {"cwd": cwd, "query": "x"})
        status = Path(f"/proc/{process.pid}/status").read_text().split()
        size = int(status[status.index("VmSize:") + 1]) * 1024 + HEADROOM
        usual = resource.prlimit(process.pid, resource.RLIMIT_AS)
        resource.prlimit(process.pid, resource.RLIMIT_AS, (size, usual[1]))
        with ThreadPoolExecutor() as pool:
            answers = [pool.submit(ask, home, params) for params in (BOMB, LONG, BOMB, LONG)]
            while not all(answer.done() for answer in answers):
                assert other.call("memory.read", {"cwd": cwd, "path": "a.md"})["name"] == "a"
        kinds = {answer.result() for answer in answers}
        assert "busy" in kinds <= {"busy", "unknown_method"}
        resource.prlimit(process.pid, resource.RLIMIT_AS, usual)
        assert ask(home, BOMB) == "unknown_method"
        assert other.call("memory.read", {"cwd": cwd, "path": "a.md"})["name"] == "a"
