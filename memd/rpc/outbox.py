"""Queues of frames to send: one for each connection, with a bound for each and for all together.

Rules of this file
- A connection whose peer leaves more than ``limits.REPLY_QUEUE_BYTES`` unread is dropped.
- All queues have at most ``limits.UNREAD_BYTES``. When one more frame does not fit, the connection
  is dropped whose next frame has waited longest: never one that reads, however large its answers
  are.
- The frames of a dropped connection are freed at once, and nothing more is queued for it.
"""

from collections import deque
from collections.abc import Callable, Iterator
from itertools import count

from memd.base import limits


class UnreadTotal:
    """The bytes that wait in all outboxes together."""

    def __init__(self) -> None:
        self.bytes = 0
        self.numbers = count()  # of frames, in the order in which they were queued
        self._filled_outboxes: dict[Outbox, None] = {}  # an ordered set of those with frames

    def make_room(self, size: int) -> None:
        """Drop connections until ``size`` more bytes fit."""
        while self._filled_outboxes and self.bytes + size > limits.UNREAD_BYTES:
            longest_waiting = min(self._filled_outboxes, key=lambda outbox: outbox.oldest)
            longest_waiting.drop()

    def add(self, outbox: "Outbox", size: int) -> None:
        """Count bytes that an outbox added, a negative ``size`` for those it removed."""
        self.bytes += size
        if outbox.bytes:
            self._filled_outboxes[outbox] = None
        else:
            self._filled_outboxes.pop(outbox, None)


def _nothing() -> None:
    """Do nothing."""


class Outbox:
    """The frames of one connection; the one that is being sent counts until it is sent.

    ``wake`` is called when there is something to send, ``drop`` once when the connection must end.
    """

    def __init__(
        self, unread: UnreadTotal, wake: Callable[[], None], drop: Callable[[], None]
    ) -> None:
        self._unread = unread  # what waits in all outboxes, this one included
        self._wake = wake
        self._drop = drop
        self._frames: deque[tuple[int, bytes]] = deque()  # each with its number
        self.bytes = 0
        self.dropped = False

    def __len__(self) -> int:
        return len(self._frames)

    @property
    def oldest(self) -> int:
        """The number of the frame that the peer takes next; there must be one."""
        return self._frames[0][0]

    def put(self, frame: bytes) -> None:
        """Queue a frame; a connection that cannot keep up is dropped instead."""
        if self.bytes + len(frame) > limits.REPLY_QUEUE_BYTES:
            self.drop()
            return
        self._unread.make_room(len(frame))
        if not self.dropped:  # ``make_room`` may have dropped this connection
            self._frames.append((next(self._unread.numbers), frame))
            self._add(len(frame))
            self._wake()

    def drain(self) -> Iterator[bytes]:
        """Yield the frames in order; each counts as queued until the next one is requested."""
        while self._frames:
            frame = self._frames[0][1]
            yield frame
            if self._frames:  # it was not dropped while it was sent
                self._frames.popleft()
                self._add(-len(frame))

    def drop(self) -> None:
        """Discard all frames and end the connection."""
        if not self.dropped:
            self.dropped = True
            self._frames.clear()
            self._add(-self.bytes)
            self._drop()
            self._wake = self._drop = _nothing  # else these would keep their owner in memory

    def _add(self, size: int) -> None:
        """Add bytes to the counts of this queue and of all queues, or remove them if negative."""
        self.bytes += size
        self._unread.add(self, size)
