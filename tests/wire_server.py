"""A server on a real socket in this process, for tests of the wire with handlers of their own."""

import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from socket import socket
from typing import Any

import anyio
from anyio.abc import TaskStatus

from memd.base import limits
from memd.rpc.call import Handler
from memd.rpc.listener import make_listener
from memd.rpc.server import Hub, serve


@dataclass
class RecordingLog:
    """A server log that keeps what it is told."""

    notes: list[str] = field(default_factory=list)
    errors: list[BaseException] = field(default_factory=list)
    facts: list[dict[str, str]] = field(default_factory=list)

    def unexpected(self, error: BaseException, **facts: str) -> str:
        """Keep an exception with what was told of it; its id is its number."""
        self.errors.append(error)
        self.facts.append(facts)
        return f"error-{len(self.errors)}"

    def note(self, event: str, **_facts: str | float | bool | None) -> None:
        """Keep the name of what happened."""
        self.notes.append(event)


@dataclass
class Serving:
    """A running server: where it listens, its hub, its log, and the scope that stops it.

    Setting ``ending`` has it end in order; ``ended`` is set once it has. The listener stays.
    """

    path: str
    hub: Hub
    log: RecordingLog
    scope: anyio.CancelScope
    listener: socket
    ending: anyio.Event
    ended: anyio.Event


@asynccontextmanager
async def serving(
    handlers: Mapping[str, Handler],
    *,
    uid: int | None = None,
    answer_seconds: float = limits.ANSWER_SECONDS,
) -> AsyncIterator[Serving]:
    """Serve these handlers for the length of the block, on a short path of its own."""
    hub, log, ending, ended = Hub(), RecordingLog(), anyio.Event(), anyio.Event()
    with (
        tempfile.TemporaryDirectory(prefix="memd-") as folder,
        make_listener(f"{folder}/s/memd.sock") as listener,
    ):
        run = partial(serve, listener, handlers, hub, log, uid=uid)
        async with anyio.create_task_group() as group:
            run = partial(run, ending=ending, answer_seconds=answer_seconds)
            scope = await group.start(_until_cancelled, run, ended)
            yield Serving(f"{folder}/s/memd.sock", hub, log, scope, listener, ending, ended)
            scope.cancel()


async def _until_cancelled(
    run: Callable[..., Coroutine[Any, Any, None]],
    ended: anyio.Event,
    *,
    task_status: TaskStatus[anyio.CancelScope],
) -> None:
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            await group.start(run)
            task_status.started(scope)
    ended.set()


async def exchange(path: str, data: bytes) -> bytes:
    """Send bytes, end our side, and return everything that comes back until the other side ends."""
    received = bytearray()
    async with await anyio.connect_unix(path) as stream:
        with suppress(anyio.BrokenResourceError):
            await stream.send(data)
            await stream.send_eof()
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            while True:
                received += await stream.receive()
    return bytes(received)
