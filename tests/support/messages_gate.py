"""Let a reply wait until the test releases it or its client hangs up."""

import select
import socket
import threading
import time
from collections import deque
from enum import StrEnum


class Passage(StrEnum):
    """How a wait ended."""

    RELEASED = "released"
    GONE = "gone"
    CLOSED = "closed"


class ReplyGate:
    """Lets one wait pass for each release, in order; a release before its wait is kept.

    Any thread may call any method.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards the other fields
        self._waiting: deque[socket.socket] = deque()  # a byte sent there wakes a wait
        self._permits = 0  # releases without a wait so far
        self._shut = False

    def release(self, times: int = 1) -> None:
        """Let so many waits pass, now or when they come."""
        with self._lock:
            self._permits += times
            self._wake()

    def shut(self) -> None:
        """End every wait, now and later."""
        with self._lock:
            self._shut = True
            self._wake()

    def wait(self, client: socket.socket, seconds: float | None = None) -> Passage:
        """Return once released, after so many seconds, when the client goes away, or when shut."""
        waiting_end, waking_end = socket.socketpair()
        with waiting_end, waking_end:
            with self._lock:
                self._waiting.append(waking_end)
                self._wake()
            is_gone = _wait(client, waiting_end, seconds)
            with self._lock:
                if waking_end in self._waiting:  # nobody woke it
                    self._waiting.remove(waking_end)
                elif not self._shut:
                    return Passage.RELEASED
                if self._shut:
                    return Passage.CLOSED
        return Passage.GONE if is_gone else Passage.RELEASED

    def _wake(self) -> None:
        """Let waiting replies go on, as far as the test permits."""
        while self._waiting and (self._permits or self._shut):
            if not self._shut:
                self._permits -= 1
            self._waiting.popleft().send(b"x")


def _wait(client: socket.socket, waiting_end: socket.socket, seconds: float | None) -> bool:
    """Return whether the client went away before the wait was woken or its time was over."""
    until = None if seconds is None else time.monotonic() + seconds
    poll = select.poll()
    poll.register(waiting_end, select.POLLIN)
    poll.register(client, select.POLLIN)
    while True:
        milliseconds_left = None
        if until is not None:
            milliseconds_left = max(0.0, until - time.monotonic()) * 1000
        ready = {number for number, _ in poll.poll(milliseconds_left)}
        if waiting_end.fileno() in ready or not ready:
            return False
        if not _is_there(client):
            return True
        poll.unregister(client)  # the next request is there already; it is not read here


def _is_there(client: socket.socket) -> bool:
    """Return whether a client that can be read has sent something rather than gone away."""
    try:
        return bool(client.recv(1, socket.MSG_PEEK))
    except OSError:
        return False
