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
)
from memd.rpc.call import Call
from memd.rpc.errors import too_many
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
    raise too_many(*BUSY)


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
