"""One client: its socket, and the way of a request from bytes to answer.

Rules of this file
- A connection is a socket and callbacks of the event loop; only requests have tasks. Streams and
  task groups would take longer than most requests do.
- ``_receive`` reads bytes, ``_next_frame`` takes one frame and asks the hub for a turn, ``begin``
  decodes it and starts a task for its requests, and the task sends their answers. So requests
  start in the order in which they came and run concurrently; a batch is one piece of work.
- While a frame waits for its turn, or more than ``limits.READ_ON_BYTES`` of answers are unread,
  nothing is read; a short frame with a cancellation does not wait. An answer that cannot be queued
  ends the connection.
- At most ``limits.REQUESTS_IN_FLIGHT`` pieces of work run at once; what exceeds it is refused with
  1004 rather than left waiting. An id is in use until its request is answered.
- A peer that is gone, or reads too slowly, loses its requests; its jobs are stored and go on.
- After the end of the peer's bytes its open requests are answered, then the connection closes.
- A frame must be whole in ``limits.FRAME_SECONDS``, but for the time in which memd does not read.
- After a fatal error the answer is followed by the end of our side, and bytes that the peer still
  sends are discarded for a moment, so that it reads the error instead of a reset.
"""

import asyncio
import socket
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

import msgspec

from memd.base import limits, strict_json
from memd.base.errors import MemdError
from memd.base.values import Caller
from memd.base.waiting import end_turn
from memd.rpc import messages
from memd.rpc.call import Call, Connection
from memd.rpc.errors import InvalidRequestError, error_reply, frame_too_slow, too_many
from memd.rpc.framing import FrameReader, encode
from memd.rpc.hub import Hub, Turn
from memd.rpc.messages import Cancel, Item, RefusedRequest, RequestId
from memd.rpc.peer import is_gone

LINGER_SECONDS = 1.0  # for the last bytes of a connection, in each direction
_HANGUP_CHECK_SECONDS = 0.25  # how often a half-closed connection is checked for its peer
_MEMORY_RETRY_SECONDS = 0.05  # until bytes are read for which there was no memory
_CHUNK_BYTES = 64 * 1024  # read at once
_CANCEL_BYTES = 2 * 1024  # of a frame that cancels


class ServerLog(Protocol):
    """The server's log; the daemon implements it."""

    def unexpected(self, error: BaseException, **facts: str) -> str:
        """Log an exception with its traceback and return the id of the log entry."""
        ...

    def note(self, event: str, **facts: str | float | bool | None) -> None:
        """Log an event with facts, but never with text that a client sent."""
        ...


def refusal(request_id: Any, error: MemdError) -> bytes:
    """Return an error answer as JSON."""
    return msgspec.json.encode(error_reply(request_id, error))


class PeerConnection(Connection):
    """A connected socket, which it owns and closes. It serves from its creation on."""

    def __init__(
        self,
        connected: socket.socket,
        caller: Caller,
        hub: Hub,
        run: Callable[[Call], Awaitable[bytes]],
    ) -> None:
        super().__init__(caller)
        self._socket = connected
        self._hub = hub
        self._run = run  # runs a request and returns its answer
        self._loop = asyncio.get_running_loop()
        self.last_used = self._loop.time()  # when a frame came, or the peer took an answer
        # Reading
        self._reader = FrameReader()
        self._is_reading = False  # ``_receive`` is called when bytes come
        self._frame: bytes | None = None  # that waits for its turn
        self._timer: asyncio.TimerHandle | None = None  # of an incomplete frame, or of the end
        self._failed = False  # by a fatal error, after which nothing is read
        self._input_ended = False  # no more frames will come
        self._was_cut = False  # by ``end_reading``
        self._lingers = False  # after a fatal error, until the peer has read it
        # Running
        self._running = 0  # frames whose requests run
        self._calls: dict[RequestId | Call, Call] = {}  # open requests by id, those without by self
        # Writing
        self._unsent: deque[bytes] = deque()  # frames
        self._sent_bytes = 0  # of the first of them
        self.unread = 0  # bytes of all of them
        self.process = hub.add(self)
        self._read_on()

    @property
    def is_idle(self) -> bool:
        """Whether it has no subscription, no open request, and no frame that waits for its turn.

        A connection whose peer does not read its answers counts as idle.
        """
        return self._frame is None and not self._running and not self._topics

    # Reading

    def _read_on(self) -> None:
        """Have ``_receive`` called when bytes come, and time a frame that has begun."""
        if not self._is_reading and self.is_open:
            self._is_reading = True
            self._loop.add_reader(self._socket, self._receive)
        if self._timer is None and self._reader.pending:
            self._timer = self._loop.call_later(limits.FRAME_SECONDS, self._fail, frame_too_slow())

    def _stop_reading(self) -> None:
        """Leave bytes in the socket, and do not time them."""
        if self._is_reading:
            self._is_reading = False
            self._loop.remove_reader(self._socket)
        self._stop_timer()

    def _stop_timer(self) -> None:
        """Stop the timer, if it runs."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _receive(self) -> None:
        """Read some bytes, and begin the first frame that they complete."""
        try:
            data = self._socket.recv(_CHUNK_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except MemoryError:  # the bytes stay in the kernel until memory is free again
            self._stop_reading()
            self._loop.call_later(_MEMORY_RETRY_SECONDS, self._next_frame)
            return
        except OSError:
            self.close()
            return
        if data:
            self._reader.feed(data)
        else:
            self._input_ended = True
        self._next_frame()

    def _next_frame(self) -> None:
        """Begin the next frame in its turn, or read on."""
        if not self.is_open or self._failed:
            self._end_when_done()
            return
        if self._frame is not None or self.unread > limits.READ_ON_BYTES:
            self._stop_reading()
            return
        frame = self._reader.next_frame()
        if frame is None and self._input_ended:
            frame = self._last_frame()
        if frame is not None:
            if self._timer is not None:
                self._stop_timer()
            self.last_used = self._loop.time()
            if b"ancel" in frame and len(frame) <= _CANCEL_BYTES and self._cancels(frame):
                self._go_on()
                return
            self._frame = frame
            self._hub.begin_turn(self)
            if self._frame is not None:  # it waits
                self._stop_reading()
        elif self._reader.failure is not None:
            self._fail(self._reader.failure)
        elif self._input_ended:
            self._end_when_done()
        else:
            self._read_on()

    def _go_on(self) -> None:
        """Take the next frame, after other connections had theirs."""
        if self._reader.pending or self._input_ended:
            self._stop_reading()
            self._loop.call_soon(self._next_frame)
        else:
            self._read_on()

    def _last_frame(self) -> bytes | None:
        """Return the frame that ends with the peer's bytes, if any.

        After ``end_reading`` the last line may have been cut off by us, so it must be valid JSON.
        """
        frame = self._reader.end()
        if frame is not None and self._was_cut:
            try:
                strict_json.decode(frame)
            except (strict_json.NotJsonError, MemoryError):
                return None
        return frame

    def _fail(self, error: MemdError) -> None:
        """Read nothing more after a fatal error, and tell the peer."""
        self._stop_reading()
        self._failed = self._input_ended = True
        self.send(refusal(None, error))
        self._end_when_done()

    def end_reading(self) -> None:
        """Read nothing more; answer the requests sent so far, then end the connection."""
        self._was_cut = True
        with suppress(OSError):  # the peer has gone
            self._socket.shutdown(socket.SHUT_RD)

    # Running

    def begin(self, turn: Turn) -> None:
        """Decode the frame that waited for its turn, and start its work, which ends the turn."""
        frame, self._frame = self._frame, None
        if frame is None or (not self._is_reading and is_gone(self._socket)):
            self._hub.end_turn(turn)
            self.close()
            return
        items, is_batch = messages.read(frame)
        work = [each for item in items if (each := self._admit(item)) is not None]
        if any(isinstance(each, Call) for each in work):
            self._running += 1
            self._hub.requests += 1
            self._hub.group.create_task(self._perform(work, turn, is_batch=is_batch))
        else:
            refused = [each for each in work if isinstance(each, RefusedRequest)]
            answers = [refusal(each.id, each.error) for each in refused]
            self._answer(answers, is_batch=is_batch)
            self._hub.end_turn(turn)
        if self._reader.pending or self._input_ended or not self._is_reading:
            self._go_on()

    def _cancels(self, frame: bytes) -> bool:
        """Cancel requests, if a frame is only for that; it is short then, and needs no turn."""
        items, _ = messages.read(frame)
        cancels = [item for item in items if isinstance(item, Cancel)]
        if len(cancels) < len(items):
            return False
        for item in cancels:
            self._admit(item)
        return True

    def _admit(self, item: Item) -> Call | RefusedRequest | None:
        """Return the call or the refusal of an item, and ``None`` after a cancellation."""
        if isinstance(item, RefusedRequest):
            return item
        if isinstance(item, Cancel):
            if item.id in self._calls:
                self._calls[item.id].scope.cancel()
            return None
        if item.id is not None and item.id in self._calls:
            cause = "a request with this id is still in flight"
            return RefusedRequest(item.id, InvalidRequestError(cause))
        if self._running >= limits.REQUESTS_IN_FLIGHT:
            error = too_many("requests in flight per connection", limits.REQUESTS_IN_FLIGHT)
            return RefusedRequest(item.id, error) if item.answered else None
        call = Call(self, item)
        self._calls[call if item.id is None else item.id] = call
        if self.is_ending:
            call.scope.cancel()
        return call

    async def _perform(
        self, work: list[Call | RefusedRequest], turn: Turn, *, is_batch: bool
    ) -> None:
        """Run the requests of a frame one after the other and send their answers together."""
        end_turn.set(partial(self._hub.end_turn, turn))
        calls = [each for each in work if isinstance(each, Call)]
        answers = []
        try:
            for each in work:
                if isinstance(each, RefusedRequest):
                    answers.append(refusal(each.id, each.error))
                elif self.is_open:
                    answers.append(await self._run(each))
                if is_batch:
                    await asyncio.sleep(0)
            for call in calls:
                if call.request is not None:
                    del self._calls[call if call.request.id is None else call.request.id]
            self._answer(answers, is_batch=is_batch)
            for step in [step for call in calls for step in call.afterwards]:
                await step()
        finally:
            self._running -= 1
            self._hub.end_turn(turn)
            self._hub.requests -= 1
            self._hub.ended.set()
            if self._input_ended:
                self._end_when_done()

    def cancel_requests(self) -> None:
        """Cancel the open requests because memd ends; they are answered with Busy."""
        self.is_ending = True
        for call in self._calls.values():
            call.scope.cancel()

    # Writing

    def _answer(self, answers: list[bytes], *, is_batch: bool) -> None:
        """Send the answers of a frame, those of a batch as one array; b"" is that of none."""
        answers = [answer for answer in answers if answer]
        if answers:
            self.send(b"[" + b",".join(answers) + b"]" if is_batch else answers[0])

    def send(self, body: bytes) -> None:
        """Send one JSON text, now or when the peer reads on; who cannot keep up is dropped."""
        if not self.is_open:
            return
        sent = 0
        try:
            frame = encode(self._reader.framing, body)
            if not self._unsent:
                sent = self._socket.send(frame)
        except (BlockingIOError, InterruptedError):
            pass
        except (OSError, MemoryError):  # the peer has gone, or would wait for the lost answer
            self.close()
            return
        if sent:
            self.last_used = self._loop.time()
        if sent < len(frame):
            self._queue(frame, sent)

    def _queue(self, frame: bytes, sent: int) -> None:
        """Send the rest of a frame when the peer reads; ``sent`` bytes of it are sent."""
        if self.unread + len(frame) > limits.REPLY_QUEUE_BYTES:
            self.close()
        self._hub.make_unread_room(len(frame))
        if not self.is_open:
            return
        if not self._unsent:
            self._sent_bytes = sent
            self._loop.add_writer(self._socket, self._flush)
        self._unsent.append(frame)
        self._count_unread(len(frame))

    def _count_unread(self, size: int) -> None:
        """Add to the bytes that wait, here and in all connections."""
        self.unread += size
        self._hub.unread += size

    def _flush(self) -> None:
        """Send what waits as far as the socket takes it; called when it can take some."""
        while self._unsent:
            frame = self._unsent[0]
            try:
                self._sent_bytes += self._socket.send(memoryview(frame)[self._sent_bytes :])
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                self.close()
                return
            self.last_used = self._loop.time()
            if self._sent_bytes == len(frame):
                self._unsent.popleft()
                self._sent_bytes = 0
                self._count_unread(-len(frame))
        self._loop.remove_writer(self._socket)
        self._next_frame()

    # Ending

    def _end_when_done(self) -> None:
        """Close the connection once nothing is left to do, after a fatal error a moment later."""
        if not self.is_open or self._lingers:
            return
        if self._frame is not None or self._running or self._unsent:
            if self._timer is None:
                self._check_hangup()
        elif not self._failed:
            self.close()
        else:
            self._lingers = True
            self._stop_timer()
            self._timer = self._loop.call_later(LINGER_SECONDS, self.close)
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_WR)
            self._loop.add_reader(self._socket, self._discard)
            self._is_reading = True

    def _discard(self) -> None:
        """Read bytes that nobody wants, and close the connection at their end."""
        with suppress(BlockingIOError, InterruptedError, MemoryError):
            try:
                if self._socket.recv(_CHUNK_BYTES):
                    return
            except ConnectionError:
                pass
            self.close()

    def _check_hangup(self) -> None:
        """Close the connection of a peer that sends nothing more and has closed its socket."""
        self._timer = self._loop.call_later(_HANGUP_CHECK_SECONDS, self._check_hangup)
        if is_gone(self._socket):
            self.close()

    def give_way(self, error: MemdError) -> None:
        """End the connection for a new one; a peer that has read all its answers gets the error."""
        if not self._unsent:
            self.send(refusal(None, error))
        self.close()

    def close(self) -> None:
        """End the connection now, and cancel its requests."""
        if not self.is_open:
            return
        self.is_open = False
        self._stop_reading()
        self._loop.remove_writer(self._socket)
        self._socket.close()
        self._frame = None
        self._unsent.clear()
        self._count_unread(-self.unread)
        self._hub.discard(self)
        for call in self._calls.values():
            call.scope.cancel()
