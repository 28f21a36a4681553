"""A daemon that answers from a script, on a real socket, for tests of clients.

It reads both framings of memd's socket and records the requests. It has no memories.
"""

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Self

import msgspec
from msgspec import Struct

_PAUSE_SECONDS = 0.001


class ScriptedRefusal(Struct, frozen=True):
    """An answer that is an error."""

    code: int
    message: str
    data: Mapping[str, Any] = msgspec.field(default_factory=dict)


class SentProgress(Struct, frozen=True):
    """An answer, and messages that are sent before and after it."""

    result: Any
    after: tuple[tuple[str, dict[str, Any]], ...] = ()  # notifications: method and parameters
    hang_up: bool = False  # whether the connection is closed afterwards
    before: tuple[dict[str, Any], ...] = ()  # whole messages
    piece: int = 0  # how many bytes are sent at a time, 0 for all


class Silence(Struct, frozen=True):
    """No answer; the connection stays open."""


class HangUp(Struct, frozen=True):
    """No answer; the connection is closed."""


@dataclass(frozen=True, slots=True)
class ReceivedCall:
    """One request as it was received."""

    method: str
    params: dict[str, Any]
    whole: dict[str, Any] = field(default_factory=dict, compare=False)  # the JSON-RPC message


Answer = Callable[[dict[str, Any]], Any]


class ScriptedDaemon:
    """A context manager that listens at a path while it is open.

    ``answers`` maps a method to its result: any JSON value, ``ScriptedRefusal``, ``SentProgress``,
    ``Silence``, ``HangUp``, or a function of the parameters that returns one of these. ``hello``
    needs no script; any other method without one gets error -32601. After an invalid request the
    connection is closed and the reason is added to ``faults``.
    """

    def __init__(self, path: str, answers: Mapping[str, Any]) -> None:
        self.path = path
        self.requested: list[ReceivedCall] = []  # in order of arrival
        self.faults: list[str] = []  # a line for each invalid request
        self._answers = {"hello": {"version": "scripted"}, **answers}  # by method
        self._connections: list[tuple[socket.socket, threading.Thread]] = []  # with their threads
        self._listener = socket.socket(socket.AF_UNIX)
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._closing = False

    def __enter__(self) -> Self:
        os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
        self._listener.bind(self.path)
        os.chmod(self.path, 0o600)  # no client talks to a socket that others may use
        self._listener.listen()
        self._accepting.start()
        return self

    def __exit__(self, *_: object) -> None:
        # close() alone does not wake a thread that waits in accept or recv; shutdown does.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        # macOS refuses to shut a listener down; a connection wakes it there.
        self._closing = True
        with suppress(OSError), socket.socket(socket.AF_UNIX) as knock:
            knock.connect(self.path)
        self._accepting.join()
        self._listener.close()
        for connection, thread in self._connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            thread.join()
            connection.close()
        os.unlink(self.path)

    def params(self, method: str) -> dict[str, Any]:
        """Return the parameters of the last request for a method. Raises KeyError without one."""
        for request in reversed(self.requested):
            if request.method == method:
                return request.params
        raise KeyError(method)

    @property
    def methods(self) -> list[str]:
        """The methods of the requests, in order, without ``hello``."""
        return [request.method for request in self.requested if request.method != "hello"]

    def _accept(self) -> None:
        """Accept connections until closed, each with a thread of its own."""
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._connections.append((connection, thread))
            thread.start()
            if self._closing:
                return

    def _serve(self, connection: socket.socket) -> None:
        """Answer the requests of one connection until it ends, and close it."""
        with suppress(OSError), connection.makefile("rb") as stream:
            try:
                while (frame := read_frame(stream)) is not None:
                    body, headed = frame
                    if not self._answer(connection, json.loads(body), headed=headed):
                        break
            except (ValueError, TypeError, KeyError) as error:
                self.faults.append(f"{type(error).__name__}: {error}")
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)

    def _answer(self, connection: socket.socket, request: Any, *, headed: bool) -> bool:
        """Record and answer one request; return whether the connection stays open."""
        received = ReceivedCall(request["method"], request.get("params") or {}, request)
        self.requested.append(received)
        refusal = ScriptedRefusal(-32601, f"no method {received.method} in the script")
        result = self._answers.get(received.method, refusal)
        if callable(result):
            result = result(received.params)
        if isinstance(result, HangUp):
            return False
        if isinstance(result, Silence) or "id" not in request:
            return True
        answer = result if isinstance(result, SentProgress) else SentProgress(result)
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
        if isinstance(answer.result, ScriptedRefusal):
            error = answer.result
            reply["error"] = {"code": error.code, "message": error.message, "data": error.data}
        else:
            reply["result"] = answer.result
        notes = [{"jsonrpc": "2.0", "method": method, "params": p} for method, p in answer.after]
        for message in (*answer.before, reply, *notes):
            data = _frame(message, headed=headed)
            size = answer.piece or len(data)
            for start in range(0, len(data), size):
                connection.sendall(data[start : start + size])
                if answer.piece:
                    time.sleep(_PAUSE_SECONDS)  # without a pause the pieces arrive together
        return not answer.hang_up


def read_frame(stream: BinaryIO) -> tuple[bytes, bool] | None:
    """Return the next frame's body and whether it came with a header; ``None`` at the end."""
    line = stream.readline()
    if not line:
        return None
    if not line.lower().startswith(b"content-length:"):
        return line, False
    length = int(line.partition(b":")[2])
    while stream.readline().strip():
        pass
    return stream.read(length), True


def _frame(message: dict[str, Any], *, headed: bool) -> bytes:
    """Return a message as a line, or behind a header with its length."""
    body = json.dumps(message, ensure_ascii=False, separators=(",", ":"), default=dict).encode()
    if headed:
        return b"Content-Length: %d\r\n\r\n" % len(body) + body
    return body + b"\n"
