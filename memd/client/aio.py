"""The asynchronous client: many calls at once over one connection, on anyio."""

import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from memd.client import peer, wire
from memd.client.errors import DaemonUnavailableError, RemoteError
from memd.core.places import forwarded

Progress = Callable[[dict[str, Any]], Awaitable[None]]
_HUNG_UP = "it hung up before it answered"
_NOTIFICATIONS = 1000  # queued for a slow reader; beyond that the newest are dropped
_CANCEL_SECONDS = 1.0
_CHUNK = 256 * 1024


class AsyncClient:
    """A connection to the daemon; entering it connects, leaving it closes the connection.

    The parameters are those of ``blocking.Client``. ``notifications`` is a stream of the daemon's
    notifications; it ends when the connection ends. Entering raises DaemonUnavailableError and
    ServerRefusedError.
    """

    def __init__(
        self,
        socket_path: str,
        *,
        name: str = "python",
        version: str = "",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.socket_path = socket_path
        self.server: dict[str, Any] = {}
        self._hello = {
            "client": name,
            "version": version,
            "environment": forwarded(os.environ if environment is None else environment),
        }
        self._last_id = 0
        self._calls: dict[int, _Pending] = {}
        self._closed: str = ""
        self._sending = anyio.Lock()
        self._group = anyio.create_task_group()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._reported: MemoryObjectSendStream[wire.Notification]
        self.notifications: MemoryObjectReceiveStream[wire.Notification]

    async def __aenter__(self) -> Self:
        # A Unix socket connects at once or, with a full backlog, not at all: no waiting here.
        self._socket.settimeout(0)
        peer.connect(self._socket, self.socket_path)
        self._reported, self.notifications = anyio.create_memory_object_stream(_NOTIFICATIONS)
        await self._group.__aenter__()
        self._group.start_soon(self._read)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        self._group.cancel_scope.cancel()
        try:
            return await self._group.__aexit__(kind, error, trace)
        finally:
            self.notifications.close()
            self._socket.close()

    async def call(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        progress: Progress | None = None,
    ) -> Any:
        """Call a method and return its result; any number of calls may run at once.

        Cancelling the call cancels the request at the daemon too. Raises RemoteError,
        DaemonUnavailableError, and TypeError or ValueError for params that are not JSON.
        """
        greeting = b""
        if self._last_id == 0:
            greeting = wire.request(self._next_id(), wire.HELLO, self._hello)
        request_id = self._next_id()
        request = dict(params or {})
        pending = _Pending(progress)
        if progress is not None:
            request["workDoneToken"] = request_id
        self._calls[request_id] = pending
        try:
            await self._send(greeting + wire.request(request_id, method, request))
            return await self._wait(pending)
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(_CANCEL_SECONDS, shield=True):
                await self._send(wire.notification(wire.CANCEL, {"id": request_id}))
            raise
        finally:
            del self._calls[request_id]

    async def _wait(self, pending: "_Pending") -> Any:
        """Wait for a call's answer and return its result, after reporting its progress values."""
        while True:
            if not self._closed:
                await pending.changed.wait()
            while pending.values:
                value = pending.values.pop(0)
                if pending.progress is not None:
                    await pending.progress(value)
            if pending.answer is not None:
                return wire.result_of(pending.answer, self.socket_path)
            if self._closed:
                raise DaemonUnavailableError(self.socket_path, self._closed)
            pending.changed = anyio.Event()

    def _next_id(self) -> int:
        """Return an id that no earlier request of this client had."""
        self._last_id += 1
        return self._last_id

    async def _send(self, data: bytes) -> None:
        """Send a whole line, also if the caller is cancelled meanwhile."""
        # A half-sent line would make every later one invalid: once begun it is sent to its end.
        async with self._sending:
            # An error is ignored: ``_read`` meets it too, and gets the daemon's last answer first.
            with suppress(OSError), anyio.CancelScope(shield=True):
                unsent = memoryview(data)
                while unsent:
                    try:
                        unsent = unsent[self._socket.send(unsent) :]
                    except BlockingIOError:
                        await anyio.wait_writable(self._socket)

    async def _read(self) -> None:
        """Handle messages until the connection ends; then note why, and wake all open calls."""
        lines = wire.LineBuffer()
        with self._reported:
            try:
                while data := await self._receive():
                    for line in lines.feed(data):
                        self._take(wire.read(line))
                self._closed = _HUNG_UP
            except (OSError, RemoteError, ValueError) as error:
                self._closed = error.sentence if isinstance(error, RemoteError) else _HUNG_UP
            for pending in self._calls.values():
                pending.changed.set()

    async def _receive(self) -> bytes:
        """Return the next bytes from the daemon, empty at the end. Raises OSError."""
        # Not anyio's stream: when its receive is cancelled as bytes arrive, the loop logs an error.
        await anyio.lowlevel.checkpoint()
        while True:
            try:
                return self._socket.recv(_CHUNK)
            except BlockingIOError:
                await anyio.wait_readable(self._socket)

    def _take(self, message: wire.RpcAnswer | wire.Notification) -> None:
        """Give a message to its call or to ``notifications``; others are dropped.

        Raises an error that is about the connection as a whole.
        """
        if isinstance(message, wire.Notification):
            pending = self._calls.get(message.params.get("token", 0))
            if message.method != wire.PROGRESS:
                with suppress(anyio.WouldBlock):
                    self._reported.send_nowait(message)
            elif pending is not None:
                pending.values.append(message.params.get("value") or {})
                pending.changed.set()
        elif message.id is None and message.error is not None:
            raise message.error
        elif message.id in self._calls:
            self._calls[message.id].answer = message
            self._calls[message.id].changed.set()
        elif message.id == 1 and isinstance(message.result, dict):
            self.server = message.result


class _Pending:
    """An open call: its progress values that are not reported yet, and its answer."""

    def __init__(self, progress: Progress | None) -> None:
        self.progress = progress
        self.changed = anyio.Event()
        self.values: list[dict[str, Any]] = []
        self.answer: wire.RpcAnswer | None = None
