"""Serve one connection: read bytes, run requests, send answers.

Rules of this file
- One task group per connection owns everything it started (``rpc/session_tasks.py``). A peer that
  is gone, or reads too slowly, ends the group: its requests are cancelled, its jobs are not (they
  are stored).
- Each frame waits for its turn (``rpc/turns.py``), never for a request to end, so a cancellation
  arrives soon. It also waits until the peer has read its answers: while there are more than
  ``limits.READ_ON_BYTES`` nothing more is read. An answer that cannot be queued ends the connection
  (``rpc/outbox.py``).
- After the end of the peer's bytes its open requests are answered, then the connection closes.
  Requests start in the order they came and run concurrently.
- A frame must be whole in time (``rpc/frame_timer.py``); time in which memd does not read is not
  counted.
- When the daemon ends, the socket is shut down for reading: requests that the peer had sent by then
  are answered, later ones fail to be sent and were not begun.
- After a fatal error the answer is followed by the end of our side, and bytes that the peer still
  sends are discarded for a moment, so that it reads the error instead of a reset.
"""

import socket
from collections.abc import Iterable
from contextlib import suppress
from functools import partial

import anyio

from memd.base import limits, strict_json
from memd.base.clock import Clock
from memd.base.errors import Busy, Cancelled, MemdError
from memd.base.values import Caller
from memd.rpc.connection import Call, Connection
from memd.rpc.conversation import (
    Cancel,
    Conversation,
    RefusedRequest,
    RequestId,
    RpcRequest,
    Work,
)
from memd.rpc.dispatch import Dispatcher, refusal
from memd.rpc.frame_timer import FrameTimer, frame_too_slow
from memd.rpc.framing import FrameReader
from memd.rpc.hub import Hub
from memd.rpc.peer import is_gone
from memd.rpc.session_tasks import SessionTasks
from memd.rpc.stream import Stream
from memd.rpc.turns import Turn, Turns

LINGER_SECONDS = 1.0  # for the last bytes of a connection, in each direction
_HANGUP_CHECK_SECONDS = 0.25  # how often a half-closed connection is checked for its peer
_CHUNK_BYTES = 64 * 1024  # read at once


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
        self.quiet_since = clock.monotonic()  # the last time that a frame came or was answered
        self._clock = clock
        self._dispatcher = dispatcher
        self._hub = hub
        self._turns = turns
        self._party = turns.party(caller.pid)  # this connection, where it takes turns
        self._conversation = Conversation()
        self._tasks = SessionTasks()
        # Reading
        self._socket = connected
        self._reader = FrameReader()
        self._frame_timer = FrameTimer(clock)
        self._read_scope = anyio.CancelScope()  # cancelled when a frame is too slow
        self._waits_for_turn = False  # a frame does
        self._fatal_error: MemdError | None = None  # nothing is read after it
        # Running: the cancel scopes of open requests that have an id
        self._request_scopes: dict[RequestId, anyio.CancelScope] = {}
        # Writing; events are replaced for each wait
        self._wake = anyio.Event()  # wakes the writer, for a frame or at the end
        self._frame_sent = anyio.Event()  # wakes the reader, which waits while answers are unread
        self._is_sending = False  # a frame may have been sent in part
        # Ending
        self._reading_ended = False  # all frames of the peer were read and begun
        self._all_answered = anyio.Event()  # after ``_reading_ended``, no request runs
        self._all_sent = anyio.Event()  # after ``_reading_ended``, no answer is queued
        self._reading_was_cut = False  # by ``end_reading``
        self._requests_cancelled = False  # by ``cancel_requests``
        self.connection = Connection(caller, self._wake_writer, self._drop, hub.unread)

    @property
    def idle_since(self) -> float | None:
        """Since when the connection has been idle, on the clock; ``None`` where it is not idle.

        It is not idle with a subscription, a frame that waits for its turn, or an open request. A
        connection whose peer does not read its answers counts as idle.
        """
        if self._waits_for_turn or self._conversation.in_flight or self.connection.subscribed:
            return None
        return self.quiet_since

    @property
    def is_over(self) -> bool:
        """Whether the connection is ending; its requests may still run for a moment."""
        return self._tasks.cancelled

    def give_way(self, error: MemdError) -> None:
        """End the connection for a new one; a peer that has read all its answers gets the error."""
        if len(self.connection.outbox):
            self.connection.outbox.drop()  # this also calls ``_drop``
        else:
            self.connection.send(refusal(None, error))
            self._drop()

    def end_reading(self) -> None:
        """Read nothing more; answer the requests sent so far, then end the connection."""
        self._reading_was_cut = True
        with suppress(OSError):  # the peer has gone
            self._socket.shutdown(socket.SHUT_RD)

    def cancel_requests(self) -> None:
        """Cancel the open requests; each is answered with Busy, which says to ask again."""
        self._requests_cancelled = True
        for scope in self._request_scopes.values():
            scope.cancel()

    async def run(self) -> None:
        """Serve until the peer leaves or is dropped, and close the socket."""
        stream = Stream(self._socket)
        self._hub.add(self.connection)
        try:
            async with self._tasks.group:
                self._tasks.start(partial(self._write, stream))
                self._tasks.start(self._watch_frame)
                await self._tasks.run(partial(self._serve, stream))
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
        self._tasks.start(self._watch_hangup)
        await self._finish(stream)

    def _drop(self) -> None:
        """End the connection now, by cancelling its tasks."""
        self._tasks.cancel()

    def _wake_writer(self) -> None:
        """Let the writer look into the outbox."""
        self._wake.set()  # a method, since ``_wake`` is replaced by a new event for each wait

    # Reading

    async def _read(self, stream: Stream) -> None:
        """Read and begin frames until the end of the peer's bytes or a fatal error."""
        with self._read_scope:
            while self._fatal_error is None:
                await self._wait_for_peer()
                if self._reader.pending:
                    self._frame_timer.start()
                else:
                    self._frame_timer.stop()
                try:
                    data = await stream.receive(_CHUNK_BYTES)
                except OSError:
                    self._drop()
                    return
                if not data:
                    break
                await self._begin_frames(stream, self._reader.feed(data))
                self._fatal_error = self._reader.failure
        if self._fatal_error is None:
            await self._begin_frames(stream, self._last_frames())
        else:
            self.connection.send(refusal(None, self._fatal_error))

    def _last_frames(self) -> list[bytes]:
        """Return the frame that ends with the peer's bytes, if any.

        After ``end_reading`` the last line may have been cut off by us, so it must be valid JSON.
        """
        frames = self._reader.end()
        return [frame for frame in frames if not self._reading_was_cut or _is_json(frame)]

    async def _begin_frames(self, stream: Stream, frames: Iterable[bytes]) -> None:
        """Begin each frame in its turn."""
        for frame in frames:
            self._frame_timer.stop()
            await self._wait_for_peer()
            turn = await self._begin_turn(stream)
            self.connection.framing = self._reader.framing
            self.quiet_since = self._clock.monotonic()
            has_task = False
            try:
                has_task = self._begin_frame(frame, turn)
            finally:
                if not has_task:  # else the task ends the turn
                    self._turns.end(turn)
            # The rest of a chunk may be thousands of frames: others go first.
            await anyio.lowlevel.checkpoint()
        self.connection.framing = self._reader.framing

    async def _begin_turn(self, stream: Stream) -> Turn:
        """Wait for the turn of this connection; end the connection if its peer left meanwhile."""
        more_to_read = self._reader.pending
        queued_answers = len(self.connection.outbox)
        load = more_to_read + queued_answers + self._conversation.in_flight
        self._waits_for_turn = True
        turn = await self._turns.begin(self._party, load)
        self._waits_for_turn = False
        if turn.waited and is_gone(stream.socket):
            # No task reads while a frame waits, so a peer that left is noticed only here.
            self._turns.end(turn)
            self._drop()
            await anyio.lowlevel.checkpoint()  # raises the cancellation
        return turn

    def _begin_frame(self, frame: bytes, turn: Turn) -> bool:
        """Begin the requests and cancellations of a frame.

        Return whether a task runs requests of it; that task ends the turn.
        """
        has_task = False
        for event in self._conversation.receive(frame):
            if isinstance(event, Cancel):
                if event.id in self._request_scopes:
                    self._request_scopes[event.id].cancel()
                continue
            requests = [item for item in event.items if isinstance(item, RpcRequest)]
            for request in requests:
                if request.id is not None:
                    self._request_scopes[request.id] = anyio.CancelScope()
            if requests:
                has_task = True
                self._tasks.start(partial(self._perform, event, turn))
            else:
                refused = (item for item in event.items if isinstance(item, RefusedRequest))
                self._answer(event, [refusal(item.id, item.error) for item in refused])
        return has_task

    async def _wait_for_peer(self) -> None:
        """Wait until the peer has read enough of its answers."""
        while self.connection.outbox.bytes > limits.READ_ON_BYTES:
            self._frame_timer.stop()
            self._frame_sent = anyio.Event()
            await self._frame_sent.wait()

    async def _watch_frame(self) -> None:
        """Stop reading when a frame that began is not whole in time."""
        await self._frame_timer.expire()
        self._fatal_error = frame_too_slow()
        self._read_scope.cancel()

    # Running

    async def _perform(self, work: Work, turn: Turn) -> None:
        """Run the requests of a frame one after the other and send their answers together."""
        answers, calls = [], []
        try:
            for item in work.items:
                if isinstance(item, RefusedRequest):
                    answers.append(refusal(item.id, item.error))
                else:
                    calls.append(Call(self.connection, item.id, item.token, item.meta))
                    answers.append(await self._run(item, calls[-1]))
                if work.batch:
                    await anyio.lowlevel.checkpoint()
            self._conversation.finish(work)
            self._answer(work, answers)
            for call in calls:
                for step in call.afterwards:
                    await step()
            if self._reading_ended and not self._conversation.in_flight:
                self._all_answered.set()
        finally:
            self.quiet_since = self._clock.monotonic()
            self._turns.end(turn)

    async def _run(self, request: RpcRequest, call: Call) -> bytes:
        """Run one request and return its answer, an error where it was cancelled."""
        if request.id is None:
            return await self._dispatcher.answer(request, call)
        try:
            with self._request_scopes[request.id]:
                return await self._dispatcher.answer(request, call)
        finally:
            del self._request_scopes[request.id]
        # Reached only where the request's scope was cancelled.
        error = (
            Busy(
                "memd ends, or gives way to its next version, before this was done",
                kind="ending",
                hint="ask again: with the same request_id nothing is done twice",
            )
            if self._requests_cancelled
            else Cancelled("the request was cancelled", hint="what had been committed before stays")
        )
        return refusal(request.id, error)

    def _answer(self, work: Work, answers: list[bytes]) -> None:
        """Queue the answers of a frame, those of a batch as one array.

        The answer of a notification is b"", which is not sent.
        """
        sent = [answer for answer in answers if answer]
        if not sent:
            return
        if work.batch:
            self.connection.send(b"[" + b",".join(sent) + b"]")
        else:
            self.connection.send(sent[0])

    # Ending

    async def _finish(self, stream: Stream) -> None:
        """Wait for open requests, send what is queued, and after a fatal error close our side."""
        self._reading_ended = True
        if self._conversation.in_flight:
            await self._all_answered.wait()
        self._wake.set()
        await self._all_sent.wait()
        if self._fatal_error is not None:
            with anyio.move_on_after(LINGER_SECONDS), suppress(OSError):
                stream.send_eof()
                while await stream.receive(_CHUNK_BYTES):
                    pass

    async def _watch_hangup(self) -> None:
        """End the connection when a peer that sends nothing more has closed its socket."""
        while not is_gone(self._socket):
            await self._clock.sleep(_HANGUP_CHECK_SECONDS)
        self._drop()

    # Writing

    async def _write(self, stream: Stream) -> None:
        """Send what is queued, frame by frame, until the session is over."""
        while True:
            self._wake = anyio.Event()
            for frame in self.connection.outbox.drain():
                self._is_sending = True
                try:
                    await stream.send(frame)
                except OSError:
                    self._drop()
                    return
                self._is_sending = False
                self.quiet_since = self._clock.monotonic()
                self._frame_sent.set()
            if self._reading_ended and not self._conversation.in_flight:
                self._all_sent.set()
                return
            await self._wake.wait()

    async def _send_rest(self, stream: Stream) -> None:
        """Send the queued answers at the end, unless a frame was cut off while it was sent."""
        if self._is_sending or self.connection.outbox.dropped:
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
