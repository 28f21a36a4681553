"""Who gives way when connections or memory for answers run out."""

import json
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from functools import partial
from typing import Any

import anyio
import pytest

from memd.core import limits
from memd.rpc.connection import Call
from tests.wire_server import exchange, serving

GOOD = b'{"jsonrpc":"2.0","id":"good","method":"echo","params":{"a":1}}\n'
ANSWER = b'{"jsonrpc":"2.0","id":"good","result":{"a":1}}\n'
SUBSCRIBE = b'{"jsonrpc":"2.0","id":1,"method":"subscribe"}\n'
WAIT = b'{"jsonrpc":"2.0","id":1,"method":"wait"}\n'
CROWD = """
import socket, sys
connected = []
for _ in range(int(sys.argv[2])):
    connected.append(socket.socket(socket.AF_UNIX))
    connected[-1].connect(sys.argv[1])
    connected[-1].sendall(sys.argv[3].encode())
    if sys.argv[3].endswith("\\n"):
        connected[-1].recv(1000)
print("ready", flush=True)
sys.stdin.read()
for each in connected:
    each.setblocking(False)
    try:
        print("told" if b"connections" in each.recv(1000) else "ended")
    except BlockingIOError:
        print("connected")
"""


@asynccontextmanager
async def crowd(path: str, size: int, says: bytes) -> AsyncIterator[Callable[[], list[str]]]:
    """Run a process with so many connections; asked at its end it says what became of each."""
    command = [sys.executable, "-c", CROWD, path, str(size), says.decode()]
    pipe = subprocess.PIPE
    start = partial(subprocess.Popen, command, stdin=pipe, stdout=pipe, text=True)
    process = await anyio.to_thread.run_sync(start)
    try:
        ready = process.stdout.readline  # type: ignore[union-attr] # it is a pipe
        assert await anyio.to_thread.run_sync(ready) == "ready\n"
        yield lambda: str(process.communicate()[0]).split()
    finally:
        process.communicate()


async def echo(_call: Call, params: dict[str, Any]) -> Any:
    """Return what came."""
    return params


async def subscribe(call: Call, _params: dict[str, Any]) -> None:
    """Subscribe the connection to something."""
    call.connection.subscribe(["something"])


async def wait(_call: Call, _params: dict[str, Any]) -> None:
    """Never answer."""
    await anyio.sleep_forever()


TABLE = {"echo": echo, "subscribe": subscribe, "wait": wait}


@pytest.mark.anyio
async def test_of_one_process_the_longest_idle_gives_way() -> None:
    """One process has a bound; beyond it its oldest idle connection goes, and none that waits."""
    async with serving(TABLE) as server, AsyncExitStack() as stack:
        peers = [
            await stack.enter_async_context(await anyio.connect_unix(server.path))
            for _ in range(limits.CONNECTIONS_PER_PROCESS)
        ]
        await peers[0].send(SUBSCRIBE)
        await peers[0].receive()
        await peers[1].send(WAIT)
        await peers[2].send(GOOD)
        await peers[2].receive()
        await peers[3].send(GOOD[:20])  # half a frame asks for nothing
        for gone in (3, 4):
            assert await exchange(server.path, GOOD) == ANSWER
            reported = json.loads(await peers[gone].receive())
            assert (reported["error"]["code"], reported["error"]["data"]["limit"]) == (1004, 120)
            await peers[gone].aclose()
            peers[gone] = await stack.enter_async_context(await anyio.connect_unix(server.path))
        await peers[2].send(GOOD)
        assert await peers[2].receive() == ANSWER
        assert server.log.notes == ["connections_exhausted"] * 2


@pytest.mark.anyio
@pytest.mark.skipif(sys.platform != "linux", reason="other systems cap the backlog at 128")
async def test_hundreds_that_come_at_once_are_all_taken() -> None:
    """While the loop does not run 300 connect: the system refuses none, and the last is served."""
    async with serving(TABLE) as server:
        with ExitStack() as stack:
            for _ in range(300):
                each = stack.enter_context(socket.socket(socket.AF_UNIX))
                each.settimeout(0)
                each.connect(server.path)
            assert await exchange(server.path, GOOD) == ANSWER


@pytest.mark.anyio
async def test_a_process_that_waits_with_all_it_may_have_gets_no_more() -> None:
    """Where none of its own is idle the new one is told why; another process is served."""
    async with serving(TABLE) as server, AsyncExitStack() as stack:
        for _ in range(limits.CONNECTIONS_PER_PROCESS):
            each = await stack.enter_async_context(await anyio.connect_unix(server.path))
            await each.send(SUBSCRIBE)
            await each.receive()
        answer = json.loads(await exchange(server.path, GOOD))
        assert (answer["id"], answer["error"]["data"]["limit"]) == (None, 120)
        async with crowd(server.path, 1, GOOD) as others:
            assert await anyio.to_thread.run_sync(others) == ["connected"]


@pytest.mark.anyio
@pytest.mark.parametrize("says", [b"", GOOD[:20], GOOD, SUBSCRIBE], ids=lambda says: f"{says!r:.9}")
async def test_processes_that_hold_all_connections_let_a_new_client_in(says: bytes) -> None:
    """Whether they are silent, half through a frame or subscribed: one of theirs gives way."""
    half = limits.CONNECTIONS // 2
    async with serving(TABLE) as server:
        async with crowd(server.path, half, says) as some, crowd(server.path, half, says) as rest:
            for _ in range(3):
                assert await exchange(server.path, GOOD) == ANSWER
            ends = [*await anyio.to_thread.run_sync(some), *await anyio.to_thread.run_sync(rest)]
        assert (ends.count("told"), ends.count("connected")) == (1, 2 * half - 1)


@pytest.mark.anyio
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a hang-up cannot be told")
async def test_what_a_peer_that_left_had_asked_for_is_not_begun() -> None:
    """Its frames wait for a turn; when it comes nobody is there, and somebody else has it."""
    begun: list[int] = []
    going_on = anyio.Event()

    async def work(call: Call, _params: dict[str, Any]) -> None:
        begun.append(call.connection.caller.connection)
        await going_on.wait()

    async with serving({"work": work}) as server, AsyncExitStack() as stack:
        ask = b'{"jsonrpc":"2.0","method":"work"}\n'
        for _ in range(limits.TURNS):
            each = await stack.enter_async_context(await anyio.connect_unix(server.path))
            await each.send(ask)
        while len(begun) < limits.TURNS:
            await anyio.lowlevel.checkpoint()
        for _ in range(limits.CONNECTIONS_PER_PROCESS):
            with socket.socket(socket.AF_UNIX) as gone:
                await anyio.to_thread.run_sync(gone.connect, server.path)
                gone.sendall(ask * 30)
        going_on.set()
        while len(server.hub._connections) > limits.TURNS:
            await anyio.lowlevel.checkpoint()
        assert len(begun) <= limits.TURNS + limits.CONNECTIONS_PER_PROCESS


@pytest.mark.anyio
async def test_all_unread_answers_together_are_bounded() -> None:
    """Of a hundred clients that do not read some are dropped; one that reads is served."""
    held: list[int] = []

    async def big(_call: Call, params: dict[str, Any]) -> str:
        held.append(sum(each.outbox.bytes for each in server.hub._connections))
        return "x" * int(params["size"])

    def asking(size: int) -> bytes:
        return b'{"jsonrpc":"2.0","id":1,"method":"big","params":{"size":%d}}\n' % size

    async with serving({"big": big}) as server, AsyncExitStack() as stack:
        for _ in range(100):
            each = await stack.enter_async_context(await anyio.connect_unix(server.path))
            await each.send(asking(1_000_000))
            assert len(await exchange(server.path, asking(3_000_000))) > 3_000_000
        assert limits.UNREAD_BYTES // 2 < max(held) <= limits.UNREAD_BYTES
        assert server.hub.unread.bytes <= limits.UNREAD_BYTES
