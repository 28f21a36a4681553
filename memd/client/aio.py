"""The asynchronous client: many calls at once over one connection, on anyio."""

import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from memd.base.errors import MemdError
from memd.base.places import forwarded
from memd.client import peer, wire
from memd.client.errors import DaemonUnavailableError

Progress = Callable[[dict[str, Any]], Awaitable[None]]
_HUNG_UP = "it hung up before it answered"
_NOTIFICATIONS = 1000  # queued for a slow reader; beyond that the newest are dropped
_CANCEL_SECONDS = 1.0
_CHUNK_BYTES = 256 * 1024


class AsyncClient:
    """A connection to the daemon; entering it connects, leaving it closes the connection.

    The parameters are those of ``blocking.Client``. ``notifications`` is a stream of the daemon's
    notifications; it ends when the connection ends. Entering raises DaemonUnavailableError and
    Refused.
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
        self.server: dict[str, Any] = {}  # the daemon's answer to ``hello``, once it came
        self._hello = {
            "client": name,
            "version": version,
            "environment": forwarded(os.environ if environment is None else environment),
        }
        self._is_greeted = False  # the daemon has answered ``hello``
        self._hello_lock = anyio.Lock()  # held until then by the call that sends it
        self._last_id = 0  # of a request
        self._pending_calls: dict[int, _PendingCall] = {}  # by the id of the request
        self._end_cause = ""  # why the connection ended, "" while it is open
        self._send_lock = anyio.Lock()  # held while a line is sent, so that lines do not mix
        self._group = anyio.create_task_group()  # runs ``_read``
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._queue: MemoryObjectSendStream[wire.Notification]  # the input of ``notifications``
        self.notifications: MemoryObjectReceiveStream[wire.Notification]

    async def __aenter__(self) -> Self:
        # A Unix socket connects at once or, with a full backlog, not at all: no waiting here.
        self._socket.settimeout(0)
        peer.connect(self._socket, self.socket_path)
        self._queue, self.notifications = anyio.create_memory_object_stream(_NOTIFICATIONS)
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

        Nothing is called before the daemon has answered ``hello``: it would use the variables of
        its own environment. Cancelling the call cancels the request at the daemon too. Raises
        what the daemon answers, DaemonUnavailableError, and TypeError or ValueError for params that
        are not JSON.
        """
        async with self._hello_lock:
            if not self._is_greeted:
                self.server = await self._request(wire.HELLO, self._hello)
                self._is_greeted = True
        return await self._request(method, params or {}, progress)

    async def _request(
        self, method: str, params: Mapping[str, Any], progress: Progress | None = None
    ) -> Any:
        """Send a request and return its result; cancel it at the daemon if the caller is."""
        self._last_id += 1  # no earlier request of this client had this id
        request_id = self._last_id
        request = dict(params)
        pending_call = _PendingCall(progress)
        if progress is not None:
            request["workDoneToken"] = request_id
        self._pending_calls[request_id] = pending_call
        try:
            await self._send(wire.request(request_id, method, request))
            return await self._wait(pending_call)
        except anyio.get_cancelled_exc_class():
            # Shielded: a cancelled task could not send the message otherwise.
            with anyio.move_on_after(_CANCEL_SECONDS, shield=True):
                await self._send(wire.notification(wire.CANCEL, {"id": request_id}))
            raise
        finally:
            del self._pending_calls[request_id]

    async def _wait(self, pending_call: "_PendingCall") -> Any:
        """Wait for a call's answer and return its result, after reporting its progress values."""
        while True:
            if not self._end_cause:
                await pending_call.changed.wait()
            while pending_call.values:
                value = pending_call.values.pop(0)
                if pending_call.progress is not None:
                    await pending_call.progress(value)
            if pending_call.answer is not None:
                return wire.result_of(pending_call.answer, self.socket_path)
            if self._end_cause:
                raise DaemonUnavailableError(self.socket_path, self._end_cause)
            pending_call.changed = anyio.Event()

    async def _send(self, data: bytes) -> None:
        """Send a whole line, also if the caller is cancelled meanwhile."""
        # A half-sent line would make every later one invalid: once begun it is sent to its end.
        async with self._send_lock:
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
        with self._queue:
            try:
                while data := await self._receive():
                    for line in lines.feed(data):
                        self._deliver(wire.read(line))
                self._end_cause = _HUNG_UP
            except (OSError, MemdError, ValueError) as error:
                self._end_cause = error.sentence if isinstance(error, MemdError) else _HUNG_UP
            for pending_call in self._pending_calls.values():
                pending_call.changed.set()

    async def _receive(self) -> bytes:
        """Return the next bytes from the daemon, empty at the end. Raises OSError."""
        # Not anyio's stream: when its receive is cancelled as bytes arrive, the loop logs an error.
        await anyio.lowlevel.checkpoint()
        while True:
            try:
                return self._socket.recv(_CHUNK_BYTES)
            except BlockingIOError:
                await anyio.wait_readable(self._socket)

    def _deliver(self, message: wire.RpcAnswer | wire.Notification) -> None:
        """Give a message of the daemon to the call that it belongs to, or to ``notifications``.

        An answer to a call that was cancelled is dropped. Raises an error that is about the
        connection as a whole.
        """
        if isinstance(message, wire.Notification):
            self._deliver_notification(message)
        elif message.id is None and message.error is not None:
            raise message.error
        elif message.id in self._pending_calls:
            self._pending_calls[message.id].answer = message
            self._pending_calls[message.id].changed.set()

    def _deliver_notification(self, message: wire.Notification) -> None:
        """Give a progress value to its call, and queue any other notification."""
        if message.method != wire.PROGRESS:
            with suppress(anyio.WouldBlock):  # the queue is full
                self._queue.send_nowait(message)
            return
        pending_call = self._pending_calls.get(message.params.get("token", 0))
        if pending_call is not None:
            pending_call.values.append(message.params.get("value") or {})
            pending_call.changed.set()


class _PendingCall:
    """A call that waits for its answer; ``progress`` gets the values of its progress."""

    def __init__(self, progress: Progress | None) -> None:
        self.progress = progress
        self.changed = anyio.Event()  # set for a new value, the answer, or the connection's end
        self.values: list[dict[str, Any]] = []  # progress values that ``progress`` has not got yet
        self.answer: wire.RpcAnswer | None = None
