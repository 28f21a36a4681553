"""Serve one connection: read bytes, run requests, send answers.

Rules of this file
- One task group per connection owns everything it started. A peer that is gone, or reads too
  slowly, ends the group: its requests are cancelled, its jobs are not (they are stored).
- Each task has a cancel scope of its own: a task that is cancelled with the group leaves a
  reference cycle of its exception and frames, which the garbage collector frees late.
- Each frame waits for its turn (``rpc/turns.py``), never for a request to end, so a cancellation
  arrives soon. It also waits until the peer has read its answers: while there are more than
  ``limits.READ_ON_BYTES`` nothing more is read. An answer that cannot be queued ends the connection
  (``rpc/outbox.py``).
- After the end of the peer's bytes its open requests are answered, then the connection closes.
  Requests start in the order they came and run concurrently.
- A frame must be whole ``limits.FRAME_SECONDS`` after its first byte; time in which memd does not
  read is not counted.
- When the daemon ends, the socket is shut down for reading: requests that the peer had sent by then
  are answered, later ones fail to be sent and were not begun.
- After a fatal error the answer is followed by the end of our side, and bytes that the peer still
  sends are discarded for a moment, so that it reads the error instead of a reset.
"""

import socket
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from functools import partial

import anyio

from memd.core import limits, strict_json
from memd.core.clock import Clock
from memd.core.errors import MemdError
from memd.core.values import Caller
from memd.rpc.connection import Call, Connection
from memd.rpc.conversation import Conversation, RefusedRequest, RequestId, RpcRequest, Work
from memd.rpc.dispatch import Dispatcher, refusal
from memd.rpc.errors import EndingError, RequestCancelledError
from memd.rpc.framing import FrameReader
from memd.rpc.hub import Hub
from memd.rpc.peer import is_gone
from memd.rpc.stream import Stream
from memd.rpc.turns import Turn, Turns

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


class PeerSession:
    """One connection. ``run`` serves it and returns when it is over."""

    def __init__(
        self,
        connected: socket.socket,
        caller: Caller,
        *,
        dispatcher: Dispatcher,
        hub: Hub,
        turns: Turns,
        clock: Clock,
    ) -> None:
        self._socket = connected
        self._dispatcher = dispatcher
        self._hub = hub
        self._clock = clock
        self._turns = turns
        self._party = turns.party(caller.pid)
        self._waits_for_turn = False
        self.quiet_since = clock.monotonic()
        self._reader = FrameReader()
        self._conversation = Conversation()
        self._failure: MemdError | None = None
        self._frame_since: float | None = None
        self._frame_begun = anyio.Event()
        self._scopes: dict[RequestId, anyio.CancelScope] = {}
        self._reading = anyio.CancelScope()
        self._task_scopes: set[anyio.CancelScope] = set()
        self._over = False
        self._wake = anyio.Event()
        self._frame_sent = anyio.Event()
        self._sending = False
        self._idle = anyio.Event()
        self._finishing = False
        self._parting = False
        self._ending = False
        self._flushed = anyio.Event()
        self._group = anyio.create_task_group()
        self.connection = Connection(caller, self._wake_writer, self._drop, hub.unread)

    @property
    def idle_since(self) -> float | None:
        """Since when it has been idle, ``None`` with a subscription, a waiting frame or a request.

        A connection whose peer does not read its answers counts as idle.
        """
        if self._waits_for_turn or self._conversation.in_flight or self.connection.subscribed:
            return None
        return self.quiet_since

    @property
    def is_over(self) -> bool:
        """Whether the connection is ending; its requests may still run for a moment."""
        return self._over

    def yield_turn(self, error: MemdError) -> None:
        """End the connection; a peer that has read all its answers gets the error."""
        if len(self.connection.outbox):
            self.connection.outbox.drop()
        else:
            self.connection.send(refusal(None, error))
            self._drop()

    def part(self) -> None:
        """Read nothing more; answer the requests sent so far, then end the connection."""
        self._parting = True
        with suppress(OSError):  # the peer has gone
            self._socket.shutdown(socket.SHUT_RD)

    def give_up(self) -> None:
        """Cancel the open requests; each is answered with EndingError, which says to ask again."""
        self._ending = True
        for scope in self._scopes.values():
            scope.cancel()

    async def run(self) -> None:
        """Serve until the peer leaves or is dropped, and close the socket."""
        stream = Stream(self._socket)
        self._hub.add(self.connection)
        try:
            async with self._group:
                self._start_task(partial(self._write, stream))
                self._start_task(self._watch_frame)
                await self._run_in_scope(self._new_scope(), partial(self._serve, stream))
                self._drop()
        finally:
            self._hub.discard(self.connection)
            with anyio.move_on_after(LINGER_SECONDS, shield=True):
                await self._send_rest(stream)
            self.connection.outbox.drop()
            stream.close()

    async def _serve(self, stream: Stream) -> None:
        """Read requests until the client sends no more, then answer those that remain."""
        await self._read(stream)
        self._start_task(self._watch_hangup)
        await self._finish(stream)

    def _drop(self) -> None:
        """End the connection now, by cancelling its tasks."""
        self._over = True
        for scope in self._task_scopes:
            scope.cancel()

    def _start_task(self, task: Callable[[], Awaitable[None]]) -> None:
        """Start a task that ends with this session."""
        self._group.start_soon(self._run_in_scope, self._new_scope(), task)

    def _new_scope(self) -> anyio.CancelScope:
        """Return a cancel scope that ends with this session."""
        scope = anyio.CancelScope()
        self._task_scopes.add(scope)
        if self._over:
            scope.cancel()
        return scope

    async def _run_in_scope(
        self, scope: anyio.CancelScope, task: Callable[[], Awaitable[None]]
    ) -> None:
        """Run a task in its cancel scope, and forget the scope afterwards."""
        try:
            with scope:
                await task()
        finally:
            self._task_scopes.discard(scope)

    def _wake_writer(self) -> None:
        """Let the writer look into the outbox."""
        self._wake.set()  # a method, since ``_wake`` is replaced by a new event for each wait

    # Reading

    async def _read(self, stream: Stream) -> None:
        """Read and begin frames until the end of the peer's bytes or a fatal error."""
        with self._reading:
            while self._failure is None:
                await self._wait_for_reader()
                self._expect_frame()
                try:
                    data = await stream.receive(_CHUNK)
                except OSError:
                    self._drop()
                    return
                if not data:
                    break
                await self._take(stream, self._reader.feed(data))
                self._failure = self._reader.failed
        if self._failure is None:
            await self._take(stream, self._last_frames())
        else:
            self.connection.send(refusal(None, self._failure))

    def _last_frames(self) -> list[bytes]:
        """Return the frame that ends with the peer's bytes, if any.

        After ``part`` the last line may have been cut off by us, so it must be valid JSON.
        """
        frames = self._reader.end()
        return [frame for frame in frames if not self._parting or _is_json(frame)]

    async def _take(self, stream: Stream, frames: Iterable[bytes]) -> None:
        """Begin each frame in its turn."""
        for frame in frames:
            self._frame_since = None
            await self._wait_for_reader()
            self._waits_for_turn = True
            # The load: more bytes to read, queued answers, and open requests.
            waiting = self._reader.pending + len(self.connection.outbox)
            load = waiting + self._conversation.in_flight
            turn = await self._turns.begin(self._party, load)
            self._waits_for_turn = False
            if turn.waited and is_gone(stream.socket):
                # No task reads while a frame waits, so a peer that left is noticed only here.
                self._turns.end(turn)
                self._drop()
                await anyio.lowlevel.checkpoint()  # raises the cancellation
            self.connection.framing = self._reader.framing
            self.quiet_since = self._clock.monotonic()
            runs = False
            try:
                runs = self._receive(frame, turn)
            finally:
                if not runs:
                    self._turns.end(turn)
            # The rest of a chunk may be thousands of frames: others go first.
            await anyio.lowlevel.checkpoint()
        self.connection.framing = self._reader.framing

    def _receive(self, frame: bytes, turn: Turn) -> bool:
        """Begin the requests and cancellations of a frame.

        Return whether a request runs, which then ends the turn itself.
        """
        running = False
        for event in self._conversation.receive(frame):
            if isinstance(event, Work):
                requests = [item for item in event.items if isinstance(item, RpcRequest)]
                for request in requests:
                    if request.id is not None:
                        self._scopes[request.id] = anyio.CancelScope()
                if requests:
                    running = True
                    self._start_task(partial(self._perform, event, turn))
                else:
                    items = (item for item in event.items if isinstance(item, RefusedRequest))
                    self._answer(event, [refusal(item.id, item.error) for item in items])
            elif event.id in self._scopes:
                self._scopes[event.id].cancel()
        return running

    async def _wait_for_reader(self) -> None:
        """Wait until the peer has read enough of its answers."""
        while self.connection.outbox.bytes > limits.READ_ON_BYTES:
            self._frame_since = None
            self._frame_sent = anyio.Event()
            await self._frame_sent.wait()

    def _expect_frame(self) -> None:
        """Start the time limit of a frame that has begun, unless it runs already."""
        if not self._reader.pending:
            self._frame_since = None
        elif self._frame_since is None:
            self._frame_since = self._clock.monotonic()
            self._frame_begun.set()

    async def _watch_frame(self) -> None:
        """Stop reading when a frame that began is not whole in time."""
        while True:
            if self._frame_since is None:
                self._frame_begun = anyio.Event()
                await self._frame_begun.wait()
                continue
            remaining = self._frame_since + limits.FRAME_SECONDS - self._clock.monotonic()
            if remaining <= 0:
                self._failure = FrameTooSlowError()
                self._reading.cancel()
                return
            await self._clock.sleep(remaining)

    # Running

    async def _perform(self, work: Work, turn: Turn) -> None:
        """Run the requests of a frame one after the other and send their answers together."""
        answers = []
        try:
            for item in work.items:
                if isinstance(item, RefusedRequest):
                    answers.append(refusal(item.id, item.error))
                else:
                    answers.append(await self._run(item))
                if work.batch:
                    await anyio.lowlevel.checkpoint()
            self._conversation.finish(work)
            self._answer(work, answers)
            if self._finishing and not self._conversation.in_flight:
                self._idle.set()
        finally:
            self.quiet_since = self._clock.monotonic()
            self._turns.end(turn)

    async def _run(self, request: RpcRequest) -> bytes:
        """Run one request and return its answer, an error where it was cancelled."""
        call = Call(self.connection, request.id, request.token)
        if request.id is None:
            return await self._dispatcher.answer(request, call)
        try:
            with self._scopes[request.id]:
                return await self._dispatcher.answer(request, call)
        finally:
            del self._scopes[request.id]
        return refusal(request.id, EndingError() if self._ending else RequestCancelledError())

    def _answer(self, work: Work, answers: list[bytes]) -> None:
        """Queue the answers of a frame, a batch's as one array; notifications have b""."""
        sent = [answer for answer in answers if answer]
        if sent:
            self.connection.send(b"[" + b",".join(sent) + b"]" if work.batch else sent[0])

    # Ending

    async def _finish(self, stream: Stream) -> None:
        """Wait for open requests, send what is queued, and after a fatal error close our side."""
        self._finishing = True
        if self._conversation.in_flight:
            await self._idle.wait()
        self._wake.set()
        await self._flushed.wait()
        if self._failure is not None:
            with anyio.move_on_after(LINGER_SECONDS), suppress(OSError):
                stream.send_eof()
                while await stream.receive(_CHUNK):
                    pass

    async def _watch_hangup(self) -> None:
        """End the connection when a peer that sends nothing more has closed its socket."""
        while not is_gone(self._socket):
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
                self.quiet_since = self._clock.monotonic()
                self._frame_sent.set()
            if self._finishing and not self._conversation.in_flight:
                self._flushed.set()
                return
            await self._wake.wait()

    async def _send_rest(self, stream: Stream) -> None:
        """Send the queued answers at the end, unless a frame was cut off while it was sent."""
        if self._sending or self.connection.outbox.dropped:
            return
        with suppress(OSError):
            for frame in self.connection.outbox.drain():
                await stream.send(frame)


def _is_json(frame: bytes) -> bool:
    """Return whether a frame is strict JSON."""
    with suppress(strict_json.NotJsonError, MemoryError):
        strict_json.decode(frame)
        return True
    return False
