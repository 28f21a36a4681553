"""The accept loop, under everything that comes at it."""

import gc
import json
import os
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from typing import Any

import anyio
import pytest

from memd.daemon.clock import SystemClock
from memd.rpc.connection import Call
from memd.rpc.hub import Hub
from memd.rpc.server import serve
from memd.rpc.session import PeerSession
from tests.rpc.answers import assert_answers
from tests.soak.malformed import envelopes
from tests.wire_server import RecordingLog, exchange, serving


async def echo(_call: Call, params: dict[str, Any]) -> Any:
    """Return what came."""
    return params


async def fail(_call: Call, _params: dict[str, Any]) -> None:
    """Fail unexpectedly."""
    raise KeyError


TABLE = {"echo": echo, "fail": fail}
GOOD = b'{"jsonrpc":"2.0","id":"good","method":"echo","params":{"a":1}}\n'
ANSWER = b'{"jsonrpc":"2.0","id":"good","result":{"a":1}}\n'
HOSTILE = {
    "nothing": b"",
    "truncated header": b"Content-Length: 10",
    "truncated body": b"Content-Length: 10\r\n\r\n{}",
    "header of 9 KiB": b"Content-Length: 10\r\nX: " + b"y" * 9000,
    "long flood": b'{"' + b"x" * 5_000_000,
    "body too long": b"Content-Length: 99999999\r\n\r\n" + b"x" * 100_000,
    "not UTF-8": b'{"jsonrpc":"2.0","id":1,"method":"\xff"}\n',
    "surrogate": b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}\n',
    "UTF-16": '{"jsonrpc":"2.0"}\n'.encode("utf-16"),
    "BOM": b"\xef\xbb\xbf" + GOOD,
    "large batch": b"[" + b",".join([GOOD.strip()] * 20_000) + b"]\n",
    "same id": GOOD * 5,
    "HTTP": b"GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "HTTP POST": b"POST / HTTP/1.1\r\nContent-Length: 62\r\n\r\n" + GOOD,
    "CONNECT": b"CONNECT a:1 HTTP/1.1\r\n\r\n",
    "TLS": b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03" + bytes(100),
    "gzip": b"\x1f\x8b\x08\x00" + bytes(50),
    "zeros": bytes(100_000),
    "deep": b"[" * 100_000 + b"\n",
    "deep params": b'{"jsonrpc":"2.0","id":1,"method":"echo","params":'
    + b"[" * 99
    + b"]" * 99
    + b"}",
    "a million items": b'{"jsonrpc":"2.0","id":1,"method":"echo","params":['
    + b"1," * 999_999
    + b"1]}",
    "huge number": b'{"jsonrpc":"2.0","id":1e400,"method":"echo"}\n',
    "NaN": b'{"jsonrpc":"2.0","id":NaN,"method":"echo"}\n',
    "key twice": b'{"jsonrpc":"2.0","id":1,"id":2,"method":"echo"}\n',
    "CR only": GOOD.replace(b"\n", b"\r") * 3,
    "failing": b'{"jsonrpc":"2.0","id":1,"method":"fail"}\n' * 10,
    "flood of requests": b"".join(
        b'{"jsonrpc":"2.0","id":%d,"method":"echo"}\n' % number for number in range(2000)
    ),
}


def open_descriptors() -> int:
    """Return how many descriptors this process has open, 0 where the system does not tell."""
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


@pytest.mark.anyio
@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_bytes_disturb_nobody_else(name: str) -> None:
    """What they send is answered properly or closed; another client is served meanwhile."""
    async with serving(TABLE) as server:
        answers: list[bytes] = []

        async def attack() -> None:
            answers.append(await exchange(server.path, HOSTILE[name]))

        async with anyio.create_task_group() as group:
            group.start_soon(attack)
            group.start_soon(attack)
            for _ in range(5):
                assert await exchange(server.path, GOOD) == ANSWER
        assert_answers(answers[0])
        assert await exchange(server.path, GOOD) == ANSWER
        assert server.hub.connections() == 0
        assert {type(error) for error in server.log.errors} <= {KeyError}


@pytest.mark.anyio
async def test_a_thousand_envelopes_are_each_answered() -> None:
    """Every mutation of the envelope is answered or rightly not, on one connection after all."""
    frames = [data for _, data in envelopes()][::7]
    assert len(frames) > 1000
    async with serving(TABLE) as server:
        for start in range(0, len(frames), 20):
            part = frames[start : start + 20]
            answers = assert_answers(await exchange(server.path, b"".join(part)))
            assert len(answers) <= len(part)
        assert await exchange(server.path, GOOD) == ANSWER
        assert server.log.errors == []


@pytest.mark.anyio
@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
async def test_a_process_of_another_user_is_refused() -> None:
    """A real process of user 65534 is closed without an answer, even where the modes let it in."""
    code = (
        "import os, socket, sys\n"
        "s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); os.setuid(65534)\n"
        "t = socket.socket(socket.AF_UNIX); t.connect(sys.argv[1])\n"
        "t.settimeout(60); print(t.recv(100))"
    )
    async with serving(TABLE) as server:
        for path in (os.path.dirname(server.path), os.path.dirname(os.path.dirname(server.path))):
            os.chmod(path, 0o755)  # noqa: S103 - the uid alone must refuse
        os.chmod(server.path, 0o666)  # noqa: S103 - the uid alone must refuse
        done = await anyio.run_process([sys.executable, "-c", code, server.path])
        assert done.stdout == b"b''\n"
        assert server.log.notes == ["peer_refused"]


@pytest.mark.anyio
async def test_clients_with_the_same_ids_get_their_own_answers() -> None:
    """Sixteen clients use the ids 1 to 50 with secrets of their own; none sees a foreign one."""
    async with serving(TABLE) as server:

        async def client(secret: str) -> None:
            for number in range(1, 51):
                message = {
                    "jsonrpc": "2.0",
                    "id": number,
                    "method": "echo",
                    "params": {"s": secret},
                }
                answer = json.loads(await exchange(server.path, json.dumps(message).encode()))
                assert (answer["id"], answer["result"]) == (number, {"s": secret})

        async with anyio.create_task_group() as group:
            for number in range(16):
                group.start_soon(client, f"secret {number}")


@pytest.mark.anyio
async def test_descriptors_that_a_peer_passes_are_not_kept() -> None:
    """A message with descriptors is read as its bytes and leaks nothing."""
    async with serving(TABLE) as server:
        before = open_descriptors()

        def pass_descriptors() -> bytes:
            with socket.socket(socket.AF_UNIX) as client, open(os.devnull, "rb") as null:
                client.connect(server.path)
                socket.send_fds(client, [GOOD], [null.fileno()] * 10)
                client.shutdown(socket.SHUT_WR)
                return client.recv(1000)

        assert await anyio.to_thread.run_sync(pass_descriptors) == ANSWER
        while server.hub.connections():
            await anyio.lowlevel.checkpoint()
        assert open_descriptors() == before


@pytest.mark.anyio
@pytest.mark.parametrize("says", [b"", GOOD, GOOD[:20], GOOD * 3 + b"{", b"GET / HTTP/1.1\r\n\r\n"])
@pytest.mark.parametrize("ends", [True, False])
async def test_a_connection_that_ended_is_gone(says: bytes, *, ends: bool) -> None:
    """Nothing of it is left to the collector, which comes by rarely, however it ended."""
    async with serving(TABLE) as server:
        gc.collect()
        gc.disable()
        try:
            if ends:
                await exchange(server.path, says)
            else:
                async with await anyio.connect_unix(server.path) as stream:
                    await stream.send(says)
                    while not server.hub.connections():
                        await anyio.lowlevel.checkpoint()
            while server.hub.connections():
                await anyio.lowlevel.checkpoint()
            for _ in range(20):
                await anyio.lowlevel.checkpoint()
            assert [each for each in gc.get_objects() if type(each) is PeerSession] == []
        finally:
            gc.enable()


STARVING = """
import os, resource, socket, sys, anyio
from contextlib import suppress
from functools import partial
from memd.daemon.clock import SystemClock
from memd.rpc.hub import Hub
from memd.rpc.listener import make_listener
from memd.rpc.server import serve
from tests.wire_server import RecordingLog
from tests.corpora import PLACE

async def echo(call, params):
    return params

async def main():
    log = RecordingLog()
    with make_listener(sys.argv[1]) as listener:
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
        async with anyio.create_task_group() as group:
            await group.start(partial(
                serve, listener, {"echo": echo}, Hub(), log, clock=SystemClock(),
                uid=int(sys.argv[2])))
            with suppress(OSError):
                while sys.argv[3:]:
                    os.open(os.devnull, os.O_RDONLY)
            print("ready", flush=True)
            await anyio.to_thread.run_sync(sys.stdin.readline)
            group.cancel_scope.cancel()
    print(*sorted(set(log.notes)), len(log.errors))

anyio.run(main)
"""


def test_a_server_without_descriptors_lives_on() -> None:
    """With 40 descriptors and 60 clients some are told, none kills it, and it serves afterwards."""
    folder = tempfile.mkdtemp(prefix="memd-")
    path = f"{folder}/memd.sock"
    server = subprocess.Popen(
        [sys.executable, "-c", STARVING, path, str(os.getuid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    assert server.stdout.readline() == "ready\n"
    clients = []
    for _ in range(60):
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(60)
        client.connect(path)
        clients.append(client)
    reported = clients[-1].recv(1000)
    assert json.loads(reported)["error"]["code"] == 1004
    for client in clients:
        client.close()
    answer = b""
    while answer != ANSWER:
        with socket.socket(socket.AF_UNIX) as client, suppress(ConnectionError):
            client.settimeout(60)
            client.connect(path)
            client.sendall(GOOD)
            answer = client.recv(1000)
    said, _ = server.communicate("\n", timeout=60)
    os.unlink(path)
    os.rmdir(folder)
    assert (said, server.returncode) == ("accept_failed 0\n", 0)


def test_another_user_has_no_answer_of_the_descriptor_in_reserve() -> None:
    """Where no descriptor is left, a peer of another user is closed without a word as well."""
    with tempfile.TemporaryDirectory(prefix="memd-") as folder:
        path = f"{folder}/memd.sock"
        with (
            subprocess.Popen(
                [sys.executable, "-c", STARVING, path, str(os.getuid() + 1), "full"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            ) as server,
            socket.socket(socket.AF_UNIX) as client,
        ):
            assert server.stdout is not None
            assert server.stdout.readline() == "ready\n"
            client.settimeout(60)
            client.connect(path)
            assert client.recv(1000) == b""
            reported, _ = server.communicate("\n", timeout=60)
    assert reported == "accept_failed peer_refused 0\n"


@pytest.mark.anyio
async def test_a_socket_that_does_not_listen_is_the_callers_failure() -> None:
    """A broken listener ends the server with the system's error instead of spinning."""
    with socket.socket(socket.AF_UNIX) as deaf, pytest.RaisesGroup(OSError):
        await serve(deaf, TABLE, Hub(), RecordingLog(), clock=SystemClock())
