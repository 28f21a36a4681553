"""The asynchronous client against a real server."""

from typing import Any

import anyio
import pytest

from memd.base.events import Event
from memd.client.aio import AsyncClient
from memd.client.errors import DaemonUnavailableError
from memd.rpc.call import Call
from tests.wire_server import serving


class Handlers:
    """Handlers that the test can hold up."""

    def __init__(self) -> None:
        self.go = anyio.Event()
        self.started = anyio.Event()
        self.cancelled = anyio.Event()

    def table(self) -> dict[str, Any]:
        """Return them by name."""
        return {
            "hello": self.hello,
            "echo": self.echo,
            "wait": self.wait,
            "steps": self.steps,
            "subscribe": self.subscribe,
        }

    async def hello(self, _call: Call, params: dict[str, Any]) -> Any:
        """Return what the client said of itself."""
        return {"heard": params["client"]}

    async def echo(self, _call: Call, params: dict[str, Any]) -> Any:
        """Return what came."""
        return params

    async def wait(self, _call: Call, _params: dict[str, Any]) -> str:
        """Return once the test says so."""
        self.started.set()
        try:
            await self.go.wait()
        except anyio.get_cancelled_exc_class():
            self.cancelled.set()
            raise
        return "went"

    async def steps(self, call: Call, _params: dict[str, Any]) -> str:
        """Report twice, then return."""
        await call.progress({"step": 1})
        await call.progress({"step": 2})
        return "done"

    async def subscribe(self, call: Call, _params: dict[str, Any]) -> None:
        """Subscribe to everything that changes."""
        call.connection.subscribe(["memory.changed"])


@pytest.mark.anyio
async def test_calls_run_side_by_side() -> None:
    """A call that waits does not hold up others, and every answer finds its call."""
    handlers = Handlers()
    results: list[Any] = []
    async with (
        serving(handlers.table()) as server,
        AsyncClient(server.path, name="t", environment={}) as client,
    ):

        async def slow() -> None:
            results.append(await client.call("wait"))

        async with anyio.create_task_group() as group:
            group.start_soon(slow)
            await handlers.started.wait()
            assert await client.call("echo", {"a": 1}) == {"a": 1}
            assert results == []
            handlers.go.set()
        assert results == ["went"]
        assert client.server == {"heard": "t"}


@pytest.mark.anyio
async def test_a_cancelled_call_is_cancelled_at_the_daemon() -> None:
    """Leaving a call early tells the daemon, and the client goes on."""
    handlers = Handlers()
    async with (
        serving(handlers.table()) as server,
        AsyncClient(server.path, environment={}) as client,
    ):
        async with anyio.create_task_group() as group:
            group.start_soon(client.call, "wait")
            await handlers.started.wait()
            group.cancel_scope.cancel()
        await handlers.cancelled.wait()
        assert await client.call("echo") == {}


@pytest.mark.anyio
async def test_notifications_are_a_stream() -> None:
    """What the daemon tells comes in order; the stream ends with the connection."""
    async with serving(Handlers().table()) as server:
        async with AsyncClient(server.path, environment={}) as client:
            await client.call("subscribe")
            for number in range(2):
                server.hub.publish(Event("memory.changed", "/a", {"n": number}))
            reported = [await client.notifications.receive() for _ in range(2)]
            assert [(note.method, note.params["n"]) for note in reported] == [
                ("memory.changed", 0),
                ("memory.changed", 1),
            ]
        with pytest.raises(anyio.ClosedResourceError):
            await client.notifications.receive()


@pytest.mark.anyio
async def test_a_daemon_that_goes_away_is_told() -> None:
    """Running calls, later calls and the stream of notifications all learn that it is gone."""
    handlers = Handlers()
    failed: list[str] = []
    async with (
        serving(handlers.table()) as server,
        AsyncClient(server.path, environment={}) as client,
    ):

        async def ask() -> None:
            with pytest.raises(DaemonUnavailableError) as caught:
                await client.call("wait")
            failed.append(caught.value.sentence)

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await handlers.started.wait()
            server.scope.cancel()
        assert [note async for note in client.notifications] == []
        with pytest.raises(DaemonUnavailableError):
            await client.call("echo")
    assert "hung up" in failed[0]
