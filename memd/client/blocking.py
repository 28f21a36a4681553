"""The blocking client: one socket, one call at a time. The command line is one of these.

Imports only the standard library's ``socket`` and ``json``: it is on the start-up path of memctl.
"""

import os
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

from memd.client import peer, wire
from memd.client.errors import (
    AnswerTimeoutError,
    DaemonUnavailableError,
    RemoteError,
    RequestUndeliveredError,
)
from memd.core.places import forwarded

Progress = Callable[[dict[str, Any]], None]
_HELLO_ID = 1
_HUNG_UP = "it hung up before it answered"
_CHUNK = 256 * 1024
_CONNECT_SECONDS = 5.0  # a Unix socket connects at once, unless the daemon's backlog is full


class Client:
    """A connection to the daemon; use it as a context manager.

    ``name`` and ``version`` say who we are; ``environment`` is where the variables that count for
    memory are taken from (default: the process's own). ``hello`` travels with the first request;
    ``server`` is the daemon's answer to it, once it came. ``timeout`` is in seconds per call.
    Making one raises DaemonUnavailableError where nothing listens, and ServerRefusedError where
    what is there may be somebody else's.
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
        self.server: dict[str, Any] = {}
        self._timeout = timeout
        self._hello = {
            "client": name,
            "version": version,
            "environment": forwarded(os.environ if environment is None else environment),
        }
        self._lines = wire.LineBuffer()
        self._waiting: deque[bytes] = deque()
        self._notifications: deque[wire.Notification] = deque()
        self._last_id = _HELLO_ID
        self._greeted = False
        self._undelivered = False  # nothing of the request under way reached the daemon
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(_CONNECT_SECONDS)
        peer.connect(self._socket, socket_path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up; the daemon cancels what it had not answered."""
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
        progress value that the daemon sends. Raises RemoteError for an error answer,
        AnswerLateError, DaemonUnavailableError (RequestUndeliveredError where the request cannot
        have been begun), and TypeError or ValueError for params that are no JSON. After a late
        answer the request is cancelled and the client can be used further.
        """
        seconds = self._timeout if timeout is None else timeout
        deadline = time.monotonic() + seconds
        request = dict(params or {})
        request_id = self._next_id()
        if progress is not None:
            request["workDoneToken"] = request_id
        try:
            self._send(wire.request(request_id, method, request), deadline)
            return self._answer(request_id, deadline, progress)
        except TimeoutError as error:
            self._cancel(request_id)
            raise AnswerTimeoutError(method, seconds) from error

    def notifications(self, timeout: float | None = None) -> Iterator[wire.Notification]:
        """Yield what the daemon tells, in order, until it stops or nothing comes for ``timeout``.

        Subscribe first with ``call("subscribe", …)``. Raises DaemonUnavailableError when the
        daemon goes away.
        """
        while True:
            if self._notifications:
                yield self._notifications.popleft()
                continue
            deadline = None if timeout is None else time.monotonic() + timeout
            try:
                self._take(wire.read(self._next_line(deadline)), None)
            except TimeoutError:
                return

    def _next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def _answer(self, request_id: int, deadline: float, progress: Progress | None) -> Any:
        while True:
            message = wire.read(self._next_line(deadline))
            token = message.params.get("token") if isinstance(message, wire.Notification) else None
            if token == request_id and progress is not None:
                progress(message.params.get("value") or {})  # type: ignore[union-attr]
                continue
            answer = self._take(message, request_id)
            if answer is not None:
                return wire.result_of(answer, self.socket_path)

    def _take(
        self, message: wire.RpcAnswer | wire.Notification, wanted: int | None
    ) -> wire.RpcAnswer | None:
        """Return the wanted answer; keep notifications and drop answers nobody waits for."""
        if isinstance(message, wire.Notification):
            if message.method != wire.PROGRESS:
                self._notifications.append(message)
            return None
        if message.id == wanted and wanted is not None:
            return message
        if message.id is None and message.error is not None:
            raise message.error  # about the connection as a whole
        if message.id == _HELLO_ID and isinstance(message.result, dict):
            self.server = message.result
        return None

    def _send(self, data: bytes, deadline: float) -> None:
        if not self._greeted:
            data = wire.request(_HELLO_ID, wire.HELLO, self._hello) + data
        seconds = _left(deadline)
        try:
            self._socket.settimeout(seconds)
            self._socket.sendall(data)
            self._greeted = True
        except TimeoutError:
            self.close()  # half a line was sent: what follows would be read as its other half
            raise
        except BrokenPipeError:
            self._undelivered = True
            return  # the daemon may have said why before it hung up: read that
        except OSError as error:
            raise DaemonUnavailableError(self.socket_path, _words(error)) from error

    def _next_line(self, deadline: float | None) -> bytes:
        while not self._waiting:
            seconds = _left(deadline)
            try:
                self._socket.settimeout(seconds)
                data = self._socket.recv(_CHUNK)
            except TimeoutError:
                raise
            except OSError as error:
                raise DaemonUnavailableError(self.socket_path, _words(error)) from error
            if not data:
                ended = RequestUndeliveredError if self._undelivered else DaemonUnavailableError
                raise ended(self.socket_path, _HUNG_UP)
            self._waiting.extend(self._lines.feed(data))
        return self._waiting.popleft()

    def _cancel(self, request_id: int) -> None:
        try:
            self._socket.settimeout(0)
            self._socket.send(wire.notification(wire.CANCEL, {"id": request_id}))
        except OSError:
            self.close()


def _left(deadline: float | None) -> float | None:
    """Return the seconds until a deadline, ``None`` for for ever. Raises TimeoutError."""
    if deadline is None:
        return None
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise TimeoutError
    return seconds


def _words(error: OSError) -> str:
    return error.strerror or type(error).__name__


__all__ = ["AnswerTimeoutError", "Client", "DaemonUnavailableError", "Progress", "RemoteError"]
