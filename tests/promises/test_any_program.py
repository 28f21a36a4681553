"""Any program that can open a socket takes part: no library, no bridge, one line a request."""

import json
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.daemon import Home, daemon_process, throw_away_home

Exchange = Callable[[str, bytes], bytes]
NETCAT = shutil.which("nc") or ""


@pytest.fixture(name="home")
def _home() -> Iterator[Home]:
    with throw_away_home() as home, daemon_process(home):
        yield home


def _python(path: str, lines: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        connection.sendall(lines)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def _netcat(path: str, lines: bytes) -> bytes:
    command = [NETCAT, "-N", "-U", path]  # -N: hang up once all is sent, and read on
    return subprocess.run(command, input=lines, capture_output=True, check=True, timeout=60).stdout


_HAS_NETCAT = pytest.mark.skipif(not NETCAT, reason="nc is not on this machine")


@pytest.mark.parametrize("exchange", [_python, pytest.param(_netcat, marks=_HAS_NETCAT)])
def test_a_line_sends_and_a_line_receives(home: Home, exchange: Exchange) -> None:
    """Registered, sent, leased and acknowledged with nothing but lines of JSON on the socket."""

    def call(*requests: tuple[str, dict[str, Any]]) -> list[Any]:
        lines = [
            json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
            for number, (method, params) in enumerate(requests)
        ]
        answered = exchange(home.places.socket, "".join(f"{line}\n" for line in lines).encode())
        answers = [json.loads(line) for line in answered.splitlines()]
        return [each["result"] for each in sorted(answers, key=lambda each: int(each["id"]))]

    cwd = home.project()
    ann, ben = call(
        ("agent.register", {"cwd": cwd, "name": "ann"}),
        ("agent.register", {"cwd": cwd, "name": "ben"}),
    )
    (sent,) = call(("message.send", {"key": ann["key"], "to": "ben", "body": "hi\nben"}))
    (received,) = call(("message.receive", {"key": ben["key"]}))
    assert [each["body"] for each in received["messages"]] == ["hi\nben"]
    (again,) = call(("message.receive", {"key": ben["key"], "wait": 30}))
    assert [each["delivery"] for each in again["messages"]] == [2]  # its connection was gone
    (done,) = call(("message.ack", {"key": ben["key"], "ids": [sent["id"]]}))
    assert done == {"acked": 1}
    state, left = call(
        ("message.log", {"cwd": cwd, "id": sent["id"]}), ("message.receive", {"key": ben["key"]})
    )
    assert (state["messages"][0]["state"], left["messages"]) == ("read", [])
