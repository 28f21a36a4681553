"""One connection's life, on a real socket."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import pytest
from anyio.abc import UNIXSocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from memd.core import limits
from memd.rpc.connection import Call
from memd.testing.clock import FakeClock
from tests.wire_server import Serving, exchange, serving


class Handlers:
    """Handlers whose progress the test decides."""

    def __init__(self) -> None:
        self.started: list[Any] = []
        self.cancelled: list[Any] = []
        self.go = anyio.Event()
        self.changed = anyio.Event()

    def table(self) -> dict[str, Any]:
        """Return them by name."""
        return {"echo": self.echo, "wait": self.wait, "big": self.big, "tell": self.tell}

    async def echo(self, _call: Call, params: dict[str, Any]) -> Any:
        """Return what came."""
        return params

    async def big(self, _call: Call, params: dict[str, Any]) -> str:
        """Return a megabyte."""
        del params
        return "x" * 1_000_000

    async def tell(self, call: Call, params: dict[str, Any]) -> str:
        """Report progress, then return."""
        await call.progress(params)
        return "done"

    async def wait(self, call: Call, params: dict[str, Any]) -> str:
        """Return once the test says so, as much as was asked for."""
        self.note(self.started, call.request_id)
        try:
            await self.go.wait()
        except anyio.get_cancelled_exc_class():
            self.note(self.cancelled, call.request_id)
            raise
        return "x" * params.get("size", 0) or "went"

    def note(self, where: list[Any], what: Any) -> None:
        """Keep something and wake who waits for it."""
        where.append(what)
        self.changed.set()

    async def until(self, where: list[Any], size: int) -> None:
        """Return once a list has so many entries."""
        while len(where) < size:
            self.changed = anyio.Event()
            await self.changed.wait()


class Peer:
    """A raw client: bytes out, lines in."""

    def __init__(self, stream: UNIXSocketStream) -> None:
        self.stream = stream
        self._lines = BufferedByteReceiveStream(stream)

    async def send(self, *messages: Any) -> None:
        """Send messages as lines, bytes as they are."""
        for message in messages:
            raw = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
            await self.stream.send(raw)

    async def line(self) -> Any:
        """Return the next message."""
        return json.loads(await self._lines.receive_until(b"\n", 5_000_000))

    async def at_end(self) -> bool:
        """Return whether the other side ended without another byte."""
        with suppress(anyio.IncompleteRead, anyio.ClosedResourceError):
            await self._lines.receive_until(b"\n", 5_000_000)
            return False
        return True


@asynccontextmanager
async def peer(server: Serving) -> AsyncIterator[Peer]:
    """Connect a raw client."""
    async with await anyio.connect_unix(server.path) as stream:
        yield Peer(stream)


def call(method: str, request_id: Any = 1, **params: Any) -> dict[str, Any]:
    """Return a request."""
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


@pytest.mark.anyio
@pytest.mark.parametrize("batch", [False, True])
async def test_a_request_can_be_cancelled(*, batch: bool) -> None:
    """It is answered with -32800, alone or in a batch; cancelling an unknown id is nothing."""
    handlers = Handlers()
    cancel = {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "a"}}
    async with serving(handlers.table()) as server, peer(server) as client:
        await client.send({**cancel, "params": {"id": "other"}})
        await client.send([call("wait", "a")] if batch else call("wait", "a"))
        await handlers.until(handlers.started, 1)
        await client.send(cancel)
        answer = await client.line()
        error = (answer[0] if batch else answer)["error"]
        assert (error["code"], error["data"]["kind"]) == (-32800, "cancelled")
        assert handlers.cancelled == ["a"]
        await client.send(cancel, call("echo", "a"))
        assert (await client.line())["result"] == {}


@pytest.mark.anyio
async def test_a_half_closed_peer_that_leaves_later_is_noticed() -> None:
    """Its requests run on while it listens and are cancelled when it goes."""
    handlers, clock = Handlers(), FakeClock()
    async with serving(handlers.table(), clock=clock) as server:
        async with peer(server) as client:
            await client.send(call("wait", 1))
            await client.stream.send_eof()
            await handlers.until(handlers.started, 1)
            for _ in range(20):
                clock.advance(1)
                await anyio.lowlevel.checkpoint()
            assert handlers.cancelled == []
        while not handlers.cancelled:
            clock.advance(1)
            await anyio.lowlevel.checkpoint()


@pytest.mark.anyio
async def test_a_half_closed_peer_gets_slow_answers_too() -> None:
    """Its last requests are answered, then the connection closes; notifications run as well."""
    handlers = Handlers()
    async with serving(handlers.table()) as server, peer(server) as client:
        await client.send(call("wait", 1), {"jsonrpc": "2.0", "method": "wait"})
        await client.stream.send_eof()
        await handlers.until(handlers.started, 2)
        handlers.go.set()
        assert (await client.line())["result"] == "went"
        assert await client.at_end()


@pytest.mark.anyio
async def test_a_frame_must_be_whole_in_time() -> None:
    """Ten seconds after its first byte an unfinished frame ends the connection with an error."""
    clock = FakeClock()
    async with serving(Handlers().table(), clock=clock) as server, peer(server) as client:
        await client.send(call("echo", 1))
        await client.line()
        clock.advance(100)
        await client.send(b'{"jsonrpc"')
        answer: list[Any] = []

        async def read() -> None:
            answer.append(await client.line())

        async with anyio.create_task_group() as group:
            group.start_soon(read)
            while not answer:
                clock.advance(limits.FRAME_SECONDS / 4)
                await anyio.lowlevel.checkpoint()
        assert answer[0]["error"]["data"]["kind"] == "too_slow"
        assert await client.at_end()


@pytest.mark.anyio
async def test_a_patient_peer_is_left_alone() -> None:
    """A connection without a begun frame may be silent for ever; each frame has its own time."""
    clock = FakeClock()
    async with serving(Handlers().table(), clock=clock) as server, peer(server) as client:
        message = json.dumps(call("echo", 1)).encode() + b"\n"
        for _ in range(5):
            clock.advance(1000)
            await client.send(message[:10])
            for _ in range(5):
                await anyio.lowlevel.checkpoint()
            clock.advance(limits.FRAME_SECONDS * 0.9)
            await client.send(message[10:])
            assert (await client.line())["id"] == 1


@pytest.mark.anyio
async def test_a_peer_that_does_not_read_is_not_read_from() -> None:
    """Of thirty megabytes that it asks for little waits; it gets all of them when it reads."""
    async with serving(Handlers().table()) as server, peer(server) as client:
        await client.send(*[call("big", number) for number in range(30)])
        most = 0
        while server.hub.unread.bytes > most:
            most = server.hub.unread.bytes
            assert b'"result":{}' in await exchange(server.path, json.dumps(call("echo")).encode())
        assert most <= limits.REPLY_QUEUE_BYTES
        assert sorted([(await client.line())["id"] for _ in range(30)]) == list(range(30))


@pytest.mark.anyio
async def test_a_peer_whose_answers_do_not_fit_is_dropped() -> None:
    """When requests that run fill the reply queue the connection ends; its bytes count no more."""
    handlers = Handlers()
    async with serving(handlers.table()) as server, peer(server) as client:
        await client.send(*[call("wait", number, size=1_000_000) for number in range(8)])
        await handlers.until(handlers.started, 8)
        handlers.go.set()
        answers = 0
        with suppress(anyio.IncompleteRead, anyio.BrokenResourceError):
            while True:
                await client.line()
                answers += 1
        assert answers < 8
        assert server.hub.unread.bytes == 0
        assert b'"result":{}' in await exchange(server.path, json.dumps(call("echo")).encode())


@pytest.mark.anyio
async def test_a_flood_of_notifications_loses_none_and_lets_others_between() -> None:
    """A thousand in one piece all run, and a second client is answered among the first of them."""
    order: list[str] = []

    async def note(_call: Call, params: dict[str, Any]) -> None:
        await anyio.lowlevel.checkpoint()
        order.append(params["by"])

    flood = json.dumps({"jsonrpc": "2.0", "method": "note", "params": {"by": "flood"}}) + "\n"
    async with serving({"note": note}) as server, peer(server) as client:
        await client.send(flood.encode() * 1000, call("note", 1, by="flood"))
        async with peer(server) as other:
            await other.send(call("note", 1, by="other"))
            await other.line()
        await client.line()
        assert order.count("flood") == 1001
        assert order.index("other") < 500


@pytest.mark.anyio
async def test_progress_comes_before_the_answer() -> None:
    """Progress goes to the token of the request, in its client's dialect."""
    async with serving(Handlers().table()) as server, peer(server) as client:
        await client.send(call("tell", 1, done=1, workDoneToken="t"))
        assert (await client.line())["params"] == {"token": "t", "value": {"done": 1}}
        assert (await client.line())["result"] == "done"
        await client.send(call("tell", 2, progress=1, _meta={"progressToken": 9}))
        assert (await client.line())["params"] == {"progressToken": 9, "progress": 1}


@pytest.mark.anyio
async def test_a_stopping_server_sends_what_was_answered() -> None:
    """An answer that was queued before the end still arrives."""
    servers: list[Serving] = []

    async def shutdown(_call: Call, _params: dict[str, Any]) -> str:
        servers[0].scope.cancel()
        return "stopping"

    async with serving({"shutdown": shutdown}) as server, peer(server) as client:
        servers.append(server)
        await client.send(call("shutdown"))
        assert (await client.line())["result"] == "stopping"
        assert await client.at_end()


@pytest.mark.anyio
@pytest.mark.parametrize("method", ["echo", "big"])
async def test_a_peer_that_leaves_its_answers_unread_is_forgotten(method: str) -> None:
    """Closing with answers unread or half sent ends that connection and nothing else."""
    async with serving(Handlers().table()) as server:
        for _ in range(3):
            async with peer(server) as client:
                await client.send(*[call(method, number) for number in range(4)])
                await client.stream.receive(1)
        while server.hub.connections():
            await anyio.lowlevel.checkpoint()
        assert b'"result":{}' in await exchange(server.path, json.dumps(call("echo")).encode())
        assert server.log.errors == []
