"""Events to subscribers, and the bounds that connections share, on a real socket."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import pytest
from anyio.abc import SocketAttribute, UNIXSocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from memd.base import limits
from memd.base.events import Event
from memd.base.values import Caller
from memd.base.waiting import waits_outside
from memd.rpc.call import Call, Connection
from tests.wire_server import Serving, serving

pytestmark = pytest.mark.anyio
EVENT = Event("memory.changed", "/a", {"change": "c1"})


class Peer:
    """A client that sends requests and reads answers when it likes."""

    def __init__(self, stream: UNIXSocketStream) -> None:
        self.stream = stream
        self._lines = BufferedByteReceiveStream(stream)

    async def ask(self, method: str, request_id: int | None = None, **params: Any) -> None:
        """Send a request, without an id a notification."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        if request_id is not None:
            message["id"] = request_id
        await self.stream.send(json.dumps(message).encode() + b"\n")

    async def line(self) -> Any:
        """Return the next answer or event."""
        with anyio.fail_after(30):
            return json.loads(await self._lines.receive_until(b"\n", 2 * limits.REPLY_QUEUE_BYTES))


@asynccontextmanager
async def peer(server: Serving) -> AsyncIterator[Peer]:
    """Connect to a server for the length of the block."""
    async with await anyio.connect_unix(server.path) as stream:
        yield Peer(stream)


class Work:
    """Methods that wait until the test lets them go."""

    def __init__(self) -> None:
        self.running = 0
        self.go = anyio.Event()

    def table(self) -> dict[str, Any]:
        """Return them by name."""
        return {"work": self.work, "wait": self.wait, "big": self.big, "subscribe": self.subscribe}

    async def work(self, _call: Call, _params: dict[str, Any]) -> str:
        """Work inside memd."""
        self.running += 1
        await self.go.wait()
        return "done"

    async def wait(self, _call: Call, _params: dict[str, Any]) -> str:
        """Wait for something outside."""
        self.running += 1
        waits_outside()
        await self.go.wait()
        return "came"

    async def big(self, _call: Call, params: dict[str, Any]) -> str:
        """Return a text of this size."""
        return "x" * int(params["size"])

    async def subscribe(self, call: Call, params: dict[str, Any]) -> str:
        """Subscribe to topics."""
        call.connection.subscribe(params["topics"], params.get("directory"))
        return "subscribed"


async def ready(condition: Any) -> None:
    """Let other tasks run until something holds."""
    with anyio.fail_after(30):
        while not condition():
            await anyio.lowlevel.checkpoint()


async def test_of_one_process_so_many_requests_work_at_once() -> None:
    """What is more waits for a turn, in whatever connections; each gets it when one ends."""
    work = Work()
    async with serving(work.table()) as server, peer(server) as first, peer(server) as second:
        for number in range(4):
            await first.ask("work", number)
            await second.ask("work", number)
        await ready(lambda: work.running == limits.TURNS_PER_PROCESS)
        for _ in range(50):
            await anyio.lowlevel.checkpoint()
        assert work.running == limits.TURNS_PER_PROCESS
        work.go.set()
        for client in (first, second):
            assert sorted([(await client.line())["id"] for _ in range(4)]) == [0, 1, 2, 3]


async def test_a_request_that_lasts_holds_up_no_other() -> None:
    """While a request hangs, others of the same process are begun and answered one by one."""
    work = Work()
    async with serving(work.table()) as server, peer(server) as first, peer(server) as second:
        await first.ask("work", 1)
        await ready(lambda: work.running == 1)
        for number in range(20):
            await second.ask("big", number, size=1)
            assert (await second.line())["id"] == number
        work.go.set()
        assert (await first.line())["id"] == 1


async def test_who_waits_is_not_held_up_by_who_waited_before() -> None:
    """Where two frames of a process wait and the first then hangs, the second still begins."""
    work = Work()
    async with serving(work.table()) as server, AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(peer(server)) for _ in range(3)]
        for client in clients:
            await client.ask("big", 0, size=1)
            await client.line()
        # All are there before the server looks, so that two wait for the turn of the first.
        for client, method in zip(clients, ("big", "work", "big"), strict=True):
            asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"size": 1}}
            connected = client.stream.extra_attributes[SocketAttribute.raw_socket]()
            connected.send(json.dumps(asked).encode() + b"\n")
        assert (await clients[0].line())["id"] == 1
        assert (await clients[2].line())["id"] == 1
        assert work.running == 1
        work.go.set()
        assert (await clients[1].line())["id"] == 1


async def test_who_waits_outside_keeps_no_turn() -> None:
    """Requests that wait for a message or a model let others begin, as many as may be in flight."""
    work = Work()
    async with serving(work.table()) as server, peer(server) as client:
        for number in range(limits.REQUESTS_IN_FLIGHT):
            await client.ask("wait", number)
        await ready(lambda: work.running == limits.REQUESTS_IN_FLIGHT)
        await client.ask("work", 100)
        assert (await client.line())["error"]["data"]["limit"] == limits.REQUESTS_IN_FLIGHT


async def test_a_cancellation_needs_no_turn() -> None:
    """Where all turns of a process are taken, its requests can still be cancelled."""
    work = Work()
    async with serving(work.table()) as server, peer(server) as client:
        for number in range(limits.TURNS_PER_PROCESS):
            await client.ask("work", number)
        await ready(lambda: work.running == limits.TURNS_PER_PROCESS)
        await client.ask("$/cancelRequest", id=1)
        answer = await client.line()
        assert (answer["id"], answer["error"]["code"]) == (1, -32800)


async def test_unread_answers_of_all_are_bounded() -> None:
    """When all together leave too much unread the most silent goes, and who reads is served."""
    async with serving(Work().table()) as server, anyio.create_task_group() as group:

        async def be_silent(*, task_status: Any) -> None:
            async with peer(server) as silent:
                await silent.ask("big", size=0)
                for number in range(3):
                    await silent.ask("big", number, size=limits.REPLY_QUEUE_BYTES // 4)
                task_status.started()
                await anyio.sleep_forever()

        async with peer(server) as reader:
            for _ in range(20):
                await group.start(be_silent)
                await reader.ask("big", 1, size=limits.REPLY_QUEUE_BYTES // 2)
                assert len((await reader.line())["result"]) == limits.REPLY_QUEUE_BYTES // 2
                assert server.hub.unread <= limits.UNREAD_BYTES
        group.cancel_scope.cancel()


async def test_who_left_hears_nothing() -> None:
    """A connection that closed gets no more events and is no listener."""
    async with serving(Work().table()) as server:
        async with peer(server) as client:
            await client.ask("subscribe", 1, topics=["memory.changed"])
            await client.line()
            assert server.hub.listening("memory.changed")
            assert not server.hub.listening("job.done")
        await ready(lambda: not server.hub.connections())
        server.hub.publish(EVENT)
        assert not server.hub.listening("memory.changed")


async def test_a_subscription_names_topics_and_directories() -> None:
    """Events of a topic come for one directory, for several, or for all."""
    connection = Connection(Caller(connection=1, uid=0, pid=0))
    connection.subscribe(["memory.changed", "job.done"], "/a")
    connection.subscribe(["memory.changed"], "/b")
    connection.subscribe(["job.done"])
    assert connection.wants(EVENT)
    assert connection.wants(Event("memory.changed", "/b", {}))
    assert not connection.wants(Event("memory.changed", "/c", {}))
    assert connection.wants(Event("job.done", "/anywhere", {}))


async def test_publishing_never_fails_and_never_waits() -> None:
    """Params that are no JSON are left out; a full subscriber is dropped, the others hear."""
    async with serving(Work().table()) as server, peer(server) as slow, peer(server) as quick:
        for client in (slow, quick):
            await client.ask("subscribe", 1, topics=["memory.changed"])
            await client.line()
        server.hub.publish(Event("memory.changed", "/a", {"x": object()}))
        server.hub.publish(Event("memory.changed", "/a", {"x": "\ud800"}))
        text = "x" * (limits.REPLY_QUEUE_BYTES // 4)
        for number in range(6):
            server.hub.publish(Event("memory.changed", "/a", {"text": text, "number": number}))
            assert (await quick.line())["params"]["number"] == number
        assert server.hub.connections() == 1
