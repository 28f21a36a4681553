"""The blocking client, with one socket and one call at a time; the command line uses it.

Imports only the standard library's ``socket`` and ``json``: it is on the start-up path of memctl.
"""

import os
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

from memd.base.places import forwarded
from memd.client import peer, wire
from memd.client.errors import (
    AnswerTimeoutError,
    DaemonUnavailableError,
)

Progress = Callable[[dict[str, Any]], None]
_HUNG_UP = "it hung up before it answered"
_CHUNK_BYTES = 256 * 1024
_CONNECT_SECONDS = 5.0  # a Unix socket connects at once, unless the daemon's backlog is full


class Client:
    """A connection to the daemon; use it as a context manager.

    ``name`` and ``version`` are the client's. The variables that memd uses are taken from
    ``environment`` (default: the process's own). ``hello`` is sent before the first request;
    ``server`` is the daemon's answer to it, once it came. ``timeout`` is in seconds for each call.
    The constructor raises DaemonUnavailableError where nothing listens, and Refused
    where the socket may be another user's.
    """

    def __init__(
        self,
        socket_path: str,
        *,
        name: str = "python",
        version: str = "",
        timeout: float = 60.0,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.socket_path = socket_path
        self.server: dict[str, Any] = {}  # the daemon's answer to ``hello``, once it came
        self._timeout = timeout  # seconds for a call that has no timeout of its own
        self._hello = {
            "client": name,
            "version": version,
            "environment": forwarded(os.environ if environment is None else environment),
        }
        self._buffer = wire.LineBuffer()
        self._lines: deque[bytes] = deque()  # received and not read yet
        self._notifications: deque[wire.Notification] = deque()  # for ``notifications``
        self._last_id = 0  # of a request
        self._is_greeted = False  # the daemon has answered ``hello``
        self._undelivered = False  # nothing of the request under way reached the daemon
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(_CONNECT_SECONDS)
        peer.connect(self._socket, socket_path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the daemon cancels requests that it has not answered."""
        self._socket.close()

    def call(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        *,
        progress: Progress | None = None,
    ) -> Any:
        """Call a method and return its result.

        ``timeout`` is in seconds, by default the client's. ``progress`` is called with each
        progress value that the daemon sends. Raises the error that the daemon
        answers, AnswerTimeoutError, DaemonUnavailableError, and TypeError or ValueError for params
        that are not JSON. After a timeout
        the request is cancelled and the client can still be used.
        """
        seconds = self._timeout if timeout is None else timeout
        deadline = time.monotonic() + seconds
        try:
            if not self._is_greeted:  # the daemon would use the variables of its own environment
                self.server = self._request(wire.HELLO, self._hello, deadline)
                self._is_greeted = True
            return self._request(method, params or {}, deadline, progress)
        except TimeoutError as error:
            self._cancel(self._last_id)
            raise AnswerTimeoutError(method, seconds) from error

    def notifications(self, timeout: float | None = None) -> Iterator[wire.Notification]:
        """Yield the daemon's notifications in order, until none comes for ``timeout`` seconds.

        Subscribe first with ``call("subscribe", …)``. Raises DaemonUnavailableError when the
        daemon goes away.
        """
        while True:
            if self._notifications:
                yield self._notifications.popleft()
                continue
            deadline = None if timeout is None else time.monotonic() + timeout
            try:
                self._answer_in(wire.read(self._next_line(deadline)), None)
            except TimeoutError:
                return

    def _request(
        self,
        method: str,
        params: Mapping[str, Any],
        deadline: float,
        progress: Progress | None = None,
    ) -> Any:
        """Send a request and return its result. Raises TimeoutError after the deadline."""
        self._last_id += 1  # no earlier request of this client had this id
        request = dict(params)
        if progress is not None:
            request["workDoneToken"] = self._last_id
        self._send(wire.request(self._last_id, method, request), deadline)
        return self._receive_result(self._last_id, deadline, progress)

    def _receive_result(self, request_id: int, deadline: float, progress: Progress | None) -> Any:
        """Read until the answer to a request and return its result; report its progress."""
        while True:
            message = wire.read(self._next_line(deadline))
            token = message.params.get("token") if isinstance(message, wire.Notification) else None
            if token == request_id and progress is not None:
                progress(message.params.get("value") or {})  # type: ignore[union-attr]
                continue
            answer = self._answer_in(message, request_id)
            if answer is not None:
                return wire.result_of(answer, self.socket_path)

    def _answer_in(
        self, message: wire.RpcAnswer | wire.Notification, request_id: int | None
    ) -> wire.RpcAnswer | None:
        """Return a message if it is the answer to the request, else ``None``.

        Notifications are queued, and late answers to earlier requests dropped. ``request_id`` is
        ``None`` while no request is under way. Raises an error that is about the connection as a
        whole.
        """
        if isinstance(message, wire.Notification):
            if message.method != wire.PROGRESS:
                self._notifications.append(message)
            return None
        if message.id == request_id and request_id is not None:
            return message
        if message.id is None and message.error is not None:
            raise message.error
        return None

    def _send(self, data: bytes, deadline: float) -> None:
        """Send a line. Raises TimeoutError, DaemonUnavailableError."""
        seconds = _seconds_until(deadline)
        try:
            self._socket.settimeout(seconds)
            self._socket.sendall(data)
        except TimeoutError:
            self.close()  # after half a line the next one would be read as its other half
            raise
        except BrokenPipeError:
            self._undelivered = True
            return  # the daemon may have sent an error before it closed: that is read next
        except OSError as error:
            raise DaemonUnavailableError(self.socket_path, _cause(error)) from error

    def _next_line(self, deadline: float | None) -> bytes:
        """Return the next line from the daemon. Raises TimeoutError, DaemonUnavailableError."""
        while not self._lines:
            seconds = _seconds_until(deadline)
            try:
                self._socket.settimeout(seconds)
                data = self._socket.recv(_CHUNK_BYTES)
            except TimeoutError:
                raise  # it is an OSError too
            except OSError as error:
                raise DaemonUnavailableError(self.socket_path, _cause(error)) from error
            if not data:  # the daemon closed the connection
                raise DaemonUnavailableError(
                    self.socket_path, _HUNG_UP, begun=not self._undelivered
                )
            self._lines.extend(self._buffer.feed(data))
        return self._lines.popleft()

    def _cancel(self, request_id: int) -> None:
        """Tell the daemon that a request is not needed any more, without waiting."""
        try:
            self._socket.settimeout(0)
            self._socket.sendall(wire.notification(wire.CANCEL, {"id": request_id}))
        except OSError:  # also for half a line, which would spoil the next one
            self.close()  # this cancels the request as well


def _seconds_until(deadline: float | None) -> float | None:
    """Return the seconds until a deadline, ``None`` without one. Raises TimeoutError after it."""
    if deadline is None:
        return None
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise TimeoutError
    return seconds


def _cause(error: OSError) -> str:
    """Return the system's words for an error."""
    return error.strerror or type(error).__name__


__all__ = ["AnswerTimeoutError", "Client", "DaemonUnavailableError", "Progress"]
