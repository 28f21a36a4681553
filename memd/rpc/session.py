"""The life of one connection: bytes in, requests run, answers out.

Rules of this file
- One task group per connection owns everything it started. A peer that is gone, or reads too
  slowly, ends the group: its requests are cancelled, its accepted jobs are not (they have rows).
- Reading never waits for a request or for the peer to read answers, so a cancellation always
  arrives; what cannot be queued any more ends the connection (``limits.REPLY_QUEUE_BYTES``).
- The end of the peer's bytes is no reason to drop answers: what it asked is answered, then the
  connection closes. Requests start in the order they came and run side by side.
- A frame must be whole ``limits.FRAME_SECONDS`` after its first byte.
- After a fatal error the answer is followed by the end of our side, and what the peer still sends
  is thrown away for a moment, so that it reads the error instead of a reset.
"""

import socket
from contextlib import suppress

import anyio

from memd.core import limits
from memd.core.clock import Clock
from memd.core.errors import MemdError
from memd.core.values import Caller
from memd.rpc.connection import Call, Connection
from memd.rpc.conversation import Conversation, Refusal, Request, RequestId, Work
from memd.rpc.dispatch import Dispatcher, refusal
from memd.rpc.errors import RequestCancelledError
from memd.rpc.framing import FrameReader
from memd.rpc.hub import Hub
from memd.rpc.peer import is_gone
from memd.rpc.stream import Stream

LINGER_SECONDS = 1.0
HANGUP_SECONDS = 0.25  # how often a half-closed connection is looked at
_CHUNK = 64 * 1024


class FrameTooSlowError(MemdError):
    """A frame was begun and not finished in time."""

    code = 1007
    kind = "too_slow"
    retryable = True
    hint = "send a whole frame at once"

    def __init__(self) -> None:
        super().__init__(
            f"a frame must be whole {limits.FRAME_SECONDS:g} s after its first byte",
            seconds=limits.FRAME_SECONDS,
        )


class Session:
    """One connection from its first byte to its last. ``run`` returns when it is over."""

    def __init__(self, dispatcher: Dispatcher, hub: Hub, clock: Clock, caller: Caller) -> None:
        self._dispatcher = dispatcher
        self._hub = hub
        self._clock = clock
        self._reader = FrameReader()
        self._conversation = Conversation()
        self._failure: MemdError | None = None
        self._frame_since: float | None = None
        self._frame_begun = anyio.Event()
        self._scopes: dict[RequestId, anyio.CancelScope] = {}
        self._reading = anyio.CancelScope()
        self._wake = anyio.Event()
        self._sending = False
        self._idle = anyio.Event()
        self._finishing = False
        self._flushed = anyio.Event()
        self._group = anyio.create_task_group()
        self.connection = Connection(caller, self._wake_writer, self._drop)

    async def run(self, connected: socket.socket) -> None:
        """Serve until the peer leaves or must; closes the socket."""
        stream = Stream(connected)
        self._hub.add(self.connection)
        try:
            async with self._group as group:
                group.start_soon(self._write, stream)
                group.start_soon(self._watch_frame)
                await self._read(stream)
                group.start_soon(self._watch_hangup, connected)
                await self._finish(stream)
                group.cancel_scope.cancel()
        finally:
            self._hub.discard(self.connection)
            with anyio.move_on_after(LINGER_SECONDS, shield=True):
                await self._send_rest(stream)
            stream.close()

    def _wake_writer(self) -> None:
        self._wake.set()

    def _drop(self) -> None:
        self._group.cancel_scope.cancel()

    # Reading

    async def _read(self, stream: Stream) -> None:
        """Take bytes until the peer's end, its disappearance, or a fatal error."""
        with self._reading:
            while self._failure is None:
                try:
                    data = await stream.receive(_CHUNK)
                except OSError:
                    self._drop()
                    return
                if not data:
                    break
                self._take(self._reader.feed(data))
                self._failure = self._reader.failed
        if self._failure is None:
            self._take(self._reader.end())
        else:
            self.connection.send(refusal(None, self._failure))

    def _take(self, frames: list[bytes]) -> None:
        self.connection.framing = self._reader.framing
        for frame in frames:
            for event in self._conversation.receive(frame):
                if isinstance(event, Work):
                    self._begin(event)
                elif event.id in self._scopes:
                    self._scopes[event.id].cancel()
        if not self._reader.pending:
            self._frame_since = None
        elif frames or self._frame_since is None:
            self._frame_since = self._clock.monotonic()
            self._frame_begun.set()

    async def _watch_frame(self) -> None:
        """End the reading when a frame that began is not whole in time."""
        while True:
            if self._frame_since is None:
                self._frame_begun = anyio.Event()
                await self._frame_begun.wait()
                continue
            left = self._frame_since + limits.FRAME_SECONDS - self._clock.monotonic()
            if left <= 0:
                self._failure = FrameTooSlowError()
                self._reading.cancel()
                return
            await self._clock.sleep(left)

    # Running

    def _begin(self, work: Work) -> None:
        requests = [item for item in work.items if isinstance(item, Request)]
        if not requests:
            self._answer(work, [refusal(item.id, item.error) for item in _refusals(work)])
            return
        for request in requests:
            if request.id is not None:
                self._scopes[request.id] = anyio.CancelScope()
        self._group.start_soon(self._perform, work)

    async def _perform(self, work: Work) -> None:
        answers = []
        for item in work.items:
            if isinstance(item, Refusal):
                answers.append(refusal(item.id, item.error))
            else:
                answers.append(await self._run(item))
            if work.batch:
                await anyio.lowlevel.checkpoint()
        self._conversation.finish(work)
        self._answer(work, answers)
        if self._finishing and not self._conversation.in_flight:
            self._idle.set()

    async def _run(self, request: Request) -> bytes:
        call = Call(self.connection, request.id, request.token)
        if request.id is None:
            return await self._dispatcher.answer(request, call)
        try:
            with self._scopes[request.id]:
                return await self._dispatcher.answer(request, call)
        finally:
            del self._scopes[request.id]
        return refusal(request.id, RequestCancelledError())

    def _answer(self, work: Work, answers: list[bytes]) -> None:
        told = [answer for answer in answers if answer]
        if told:
            self.connection.send(b"[" + b",".join(told) + b"]" if work.batch else told[0])

    # Ending

    async def _finish(self, stream: Stream) -> None:
        """Wait for what still runs, send what is queued, and part in order."""
        self._finishing = True
        if self._conversation.in_flight:
            await self._idle.wait()
        self._wake_writer()
        await self._flushed.wait()
        if self._failure is not None:
            with anyio.move_on_after(LINGER_SECONDS), suppress(OSError):
                stream.send_eof()
                while await stream.receive(_CHUNK):
                    pass

    async def _watch_hangup(self, connected: socket.socket) -> None:
        while not is_gone(connected):
            await self._clock.sleep(HANGUP_SECONDS)
        self._drop()

    # Writing

    async def _write(self, stream: Stream) -> None:
        """Send what is queued, frame by frame, until the session is over."""
        while True:
            self._wake = anyio.Event()
            for frame in self.connection.outbox.drain():
                self._sending = True
                try:
                    await stream.send(frame)
                except OSError:
                    self._drop()
                    return
                self._sending = False
            if self._finishing and not self._conversation.in_flight:
                self._flushed.set()
                return
            await self._wake.wait()

    async def _send_rest(self, stream: Stream) -> None:
        """Send what was answered before the daemon stopped; half a frame cannot be mended."""
        if self._sending or self.connection.dropped:
            return
        with suppress(OSError):
            for frame in self.connection.outbox.drain():
                await stream.send(frame)


def _refusals(work: Work) -> list[Refusal]:
    return [item for item in work.items if isinstance(item, Refusal)]
