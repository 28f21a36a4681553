"""The blocking client against a real server."""

import os
import socket
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import anyio
import pytest

from memd.client.blocking import (
    AnswerTimeoutError,
    Client,
    DaemonUnavailableError,
    RemoteError,
)
from memd.core.events import Event
from memd.rpc.connection import Call
from memd.rpc.errors import BusyError
from tests.wire_server import Serving, serving

T = TypeVar("T")


async def hello(_call: Call, params: dict[str, Any]) -> Any:
    """Return what the client said of itself."""
    return {"heard": params}


async def echo(_call: Call, params: dict[str, Any]) -> Any:
    """Return what came."""
    return params


async def busy(_call: Call, _params: dict[str, Any]) -> None:
    """Refuse."""
    raise BusyError(*BUSY)


async def steps(call: Call, _params: dict[str, Any]) -> str:
    """Report twice, then return."""
    await call.progress({"step": 1})
    await call.progress({"step": 2})
    return "done"


async def subscribe(call: Call, _params: dict[str, Any]) -> None:
    """Subscribe to everything that changes."""
    call.connection.subscribe(["memory.changed"])


async def never(_call: Call, _params: dict[str, Any]) -> None:
    """Wait for ever."""
    await anyio.sleep_forever()


BUSY = ("jobs", 2)
TABLE = {
    "hello": hello,
    "echo": echo,
    "busy": busy,
    "steps": steps,
    "subscribe": subscribe,
    "never": never,
}


@asynccontextmanager
async def server() -> AsyncIterator[Serving]:
    """Serve the handlers above."""
    async with serving(TABLE) as running:
        yield running


async def run(work: Callable[[], T]) -> T:
    """Run blocking work beside the loop."""
    return await anyio.to_thread.run_sync(work)


@pytest.mark.anyio
async def test_hello_travels_with_the_first_call() -> None:
    """The daemon hears who calls, with only the forwarded variables, before the first result."""
    environ = {"MEMD_DISABLE": "1", "SECRET": "x"}
    async with server() as running:

        def work() -> tuple[Any, Any]:
            with Client(running.path, name="t", version="1", environment=environ) as client:
                return client.call("echo", {"a": 1}), client.server

        result, heard = await run(work)
    assert result == {"a": 1}
    assert heard == {"heard": {"client": "t", "version": "1", "environment": {"MEMD_DISABLE": "1"}}}


@pytest.mark.anyio
async def test_errors_are_raised_with_what_the_daemon_said() -> None:
    """An error answer is a RemoteError and the connection goes on."""
    async with server() as running:

        def work() -> Any:
            with Client(running.path, environment={}) as client:
                with pytest.raises(RemoteError) as caught:
                    client.call("busy")
                with pytest.raises(RemoteError) as unknown:
                    client.call("none")
                with pytest.raises(TypeError):
                    client.call("echo", {"a": object()})
                return caught.value, unknown.value, client.call("echo")

        refused, unknown, echoed = await run(work)
    assert (refused.code, refused.exit_status, refused.data["limit"]) == (1004, 75, 2)
    assert (unknown.code, unknown.exit_status) == (-32601, 1)
    assert echoed == {}


@pytest.mark.anyio
async def test_a_late_answer_is_cancelled_and_the_client_goes_on() -> None:
    """After the timeout the request is cancelled and its answer is not taken for another's."""
    async with server() as running:

        def work() -> Any:
            with Client(running.path, environment={}) as client:
                with pytest.raises(AnswerTimeoutError, match="did not answer never"):
                    client.call("never", timeout=0.05)
                with pytest.raises(AnswerTimeoutError):
                    client.call("echo", timeout=0)
                return client.call("echo", {"b": 2})

        assert await run(work) == {"b": 2}


@pytest.mark.anyio
async def test_a_daemon_that_goes_away_is_told() -> None:
    """Calls and notifications raise DaemonUnavailableError when the server ends."""
    async with server() as running:
        client = await run(lambda: Client(running.path, environment={}))
        await run(lambda: client.call("echo"))
    with client:
        with pytest.raises(DaemonUnavailableError, match="hung up"):
            client.call("echo")
        with pytest.raises(DaemonUnavailableError):
            next(client.notifications(1))
    with pytest.raises(DaemonUnavailableError):
        client.call("echo")


@pytest.fixture
def scripted() -> Iterator[tuple[str, socket.socket]]:
    """Make a listener whose answers the test writes."""
    with (
        tempfile.TemporaryDirectory(prefix="memd-") as folder,
        socket.socket(socket.AF_UNIX) as listener,
    ):
        listener.bind(f"{folder}/s")
        os.chmod(f"{folder}/s", 0o600)
        listener.listen()
        yield f"{folder}/s", listener


def test_why_a_connection_is_refused_is_raised(scripted: tuple[str, socket.socket]) -> None:
    """An error without an id, as the 129th connection gets it, is the caller's error."""
    path, listener = scripted
    with Client(path, environment={}) as client:
        accepted, _ = listener.accept()
        accepted.sendall(b'{"jsonrpc":"2.0","id":null,"error":{"code":1004,"message":"full"}}\n')
        accepted.close()
        with pytest.raises(RemoteError, match="full"):
            client.call("echo")


def test_a_reset_is_an_absent_daemon(scripted: tuple[str, socket.socket]) -> None:
    """A connection that breaks while waiting raises DaemonUnavailableError."""
    path, listener = scripted
    with Client(path, environment={}) as client:
        accepted, _ = listener.accept()

        def break_it() -> None:
            accepted.recv(1)
            accepted.close()  # with unread bytes: the peer sees a reset

        breaker = threading.Thread(target=break_it)
        breaker.start()
        with pytest.raises(DaemonUnavailableError):
            client.call("echo")
        breaker.join()


def test_a_cancellation_that_cannot_be_sent_ends_the_client(
    scripted: tuple[str, socket.socket],
) -> None:
    """When a late request cannot be cancelled any more the client hangs up."""
    path, listener = scripted
    with Client(path, environment={}) as client:
        accepted, _ = listener.accept()
        with accepted, pytest.raises(AnswerTimeoutError):
            # Nobody reads: the socket's buffer fills, then neither request nor cancellation fits.
            client.call("echo", {"x": "y" * 4_000_000}, timeout=0.05)
        with pytest.raises(DaemonUnavailableError):
            client.call("echo")


@pytest.mark.anyio
async def test_notifications_come_in_order() -> None:
    """What came during a call is kept; the stream ends when nothing more comes in time."""
    async with server() as running:
        subscribed = threading.Event()
        published = threading.Event()

        def work() -> Any:
            with Client(running.path, environment={}) as client:
                client.call("subscribe")
                subscribed.set()
                published.wait(60)
                client.call("echo")
                return [note.params["n"] for note in client.notifications(timeout=0.05)]

        async def publish() -> None:
            await anyio.to_thread.run_sync(subscribed.wait)
            for number in range(3):
                running.hub.publish(Event("memory.changed", "/a", {"n": number}))
            published.set()

        async with anyio.create_task_group() as group:
            group.start_soon(publish)
            assert await run(work) == [0, 1, 2]


@pytest.mark.anyio
async def test_progress_is_handed_over() -> None:
    """Each progress value reaches the callback; without one it is dropped."""
    seen: list[Any] = []
    async with server() as running:

        def work() -> Any:
            with Client(running.path, environment={}) as client:
                return client.call("steps", progress=seen.append), client.call("steps")

        assert await run(work) == ("done", "done")
    assert seen == [{"step": 1}, {"step": 2}]
