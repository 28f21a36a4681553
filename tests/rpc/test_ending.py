"""The end of a server: what was asked is answered, what was not is not begun."""

import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import pytest

from memd.daemon.clock import SystemClock
from memd.rpc.connection import Call
from memd.rpc.hub import Hub
from memd.rpc.server import serve
from tests.rpc.test_session import Handlers, call, peer
from tests.wire_server import RecordingLog, Serving, serving

pytestmark = pytest.mark.anyio
SECONDS = 20
HEADER = b"Content-Length: %d\r\n\r\n"


@asynccontextmanager
async def ending(
    handlers: Handlers | None = None, answer_seconds: float = SECONDS
) -> AsyncIterator[Serving]:
    """Serve, and fail where the server has not ended in order at the end of the block."""
    table = (handlers or Handlers()).table()
    async with serving(table, answer_seconds=answer_seconds) as server:
        with anyio.fail_after(SECONDS):
            yield server
            await server.ended.wait()
        assert server.hub.connections() == 0
        assert server.log.errors == []


async def test_requests_under_way_are_answered() -> None:
    """Those that run and those that were only sent get their answers, then the connection ends."""
    handlers = Handlers()
    async with ending(handlers) as server, peer(server) as client:
        await client.send(call("wait", 1))
        await handlers.until(handlers.started, 1)
        # All of it lies in the kernel, or waits for its turn, when the end begins.
        await client.send(*[call("echo", number) for number in range(2, 30)])
        server.ending.set()
        answers = [(await client.line())["id"] for _ in range(2, 30)]
        assert sorted(answers) == list(range(2, 30))
        assert not server.ended.is_set()
        handlers.go.set()
        assert (await client.line())["result"] == "went"
        assert await client.at_end()


async def test_idle_connections_and_subscriptions_end_at_once() -> None:
    """Who asks nothing keeps no end waiting."""
    async with ending() as server, peer(server) as client, peer(server) as silent:
        await client.send(call("echo", 1))
        await client.line()
        server.ending.set()
        assert await client.at_end()
        assert await silent.at_end()


@pytest.mark.parametrize(
    ("sent", "answers"),
    [
        (json.dumps(call("echo", 1)).encode(), 1),  # its newline alone was not there yet
        (json.dumps(call("echo", 1)).encode()[:-3], 0),
        (b'{"jsonrpc":"2.0","id":1,"method":"ec', 0),
        (b"Content-Len", 0),
        (HEADER % 100 + b'{"jsonrpc":"2.0",', 0),
        (b"", 0),
    ],
)
async def test_half_a_request_is_no_request(sent: bytes, answers: int) -> None:
    """What the end cuts off is not begun, and not called malformed: its sender asks again."""
    async with ending() as server, peer(server) as client:
        await client.send(call("echo", 0) if sent[:1] == b"{" else b"")
        await client.send(sent)
        await anyio.lowlevel.checkpoint()
        server.ending.set()
        received = b""
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            while True:
                received += await client.stream.receive()
        lines = [json.loads(line) for line in received.splitlines()]
        assert [line["id"] for line in lines if line["id"]] == [1] * answers
        assert all("result" in line for line in lines)


async def test_what_does_not_end_in_time_is_told_to_ask_again() -> None:
    """A request that only waits is answered with an error that says so; a batch for each item."""
    handlers = Handlers()
    async with ending(handlers, 0.05) as server, peer(server) as client:
        await client.send(call("wait", 1), [call("wait", 2), call("wait", 3)])
        await handlers.until(handlers.started, 2)
        server.ending.set()
        answers: dict[int, Any] = {}
        for _ in range(2):
            line = await client.line()
            for each in line if isinstance(line, list) else [line]:
                answers[each["id"]] = each["error"]["data"]
        assert await client.at_end()
        assert {(data["kind"], data["retryable"]) for data in answers.values()} == {
            ("ending", True)
        }
        assert sorted(answers) == [1, 2, 3]


async def test_a_peer_that_reads_nothing_keeps_no_end_waiting() -> None:
    """Answers that nobody takes are dropped at the end."""
    async with ending(answer_seconds=0.05) as server, peer(server) as deaf:
        await deaf.send(*[call("big", number) for number in range(3)])
        await deaf.stream.receive(1)
        server.ending.set()
        await server.ended.wait()


async def test_who_comes_later_is_served_by_the_next_one() -> None:
    """A connection that nobody accepted any more waits with its request for the next server."""
    async with ending() as server:
        server.ending.set()
        await server.ended.wait()
        with socket.socket(socket.AF_UNIX) as late:
            late.connect(server.path)
            late.sendall(json.dumps(call("echo", 7)).encode() + b"\n")
            log, hub, stop = RecordingLog(), Hub(), anyio.Event()
            table, clock = Handlers().table(), SystemClock()
            async with anyio.create_task_group() as group:

                async def next_one() -> None:
                    await serve(server.listener, table, hub, log, clock=clock, ending=stop)

                group.start_soon(next_one)
                await anyio.wait_readable(late)
                assert json.loads(late.recv(1000))["id"] == 7
                stop.set()


async def test_whatever_was_done_was_answered() -> None:
    """Clients that ask without a pause lose no answer: what they did not hear of was not begun."""
    done: list[Any] = []
    heard: list[Any] = []

    async def count(_call: Call, params: dict[str, Any]) -> str:
        await anyio.lowlevel.checkpoint()
        done.append(params["n"])
        return "done"

    async def ask(path: str, name: int) -> None:
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            async with await anyio.connect_unix(path) as stream:
                for number in range(100_000):
                    n = f"{name}.{number}"
                    await stream.send(json.dumps(call("count", number, n=n)).encode() + b"\n")
                    answer = json.loads(await stream.receive())
                    assert answer["id"] == number
                    heard.append(n)

    async with serving({"count": count}) as server, anyio.create_task_group() as group:
        for name in range(8):
            group.start_soon(ask, server.path, name)
        while len(heard) < 200:
            await anyio.lowlevel.checkpoint()
        server.ending.set()
        with anyio.fail_after(SECONDS):
            await server.ended.wait()
    assert sorted(heard) == sorted(done)
