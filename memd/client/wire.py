"""Encode requests as lines, and decode the daemon's lines.

It uses the standard library alone, since the command line imports it at its start.
"""

import json
from collections.abc import Mapping
from typing import Any

from memd.base.errors import MemdError
from memd.client.errors import DaemonUnavailableError, answered

HELLO = "hello"
ENDING = "ending"  # the kind of the error with which a daemon that ends answers open requests
PROGRESS = "$/progress"
CANCEL = "$/cancelRequest"


class RpcAnswer:
    """The answer to a request: its id, and a result or an error."""

    def __init__(self, request_id: int | None, result: Any, error: MemdError | None) -> None:
        self.id = request_id
        self.result = result
        self.error = error


class Notification:
    """A notification of the daemon, such as an event or progress."""

    def __init__(self, method: str, params: dict[str, Any]) -> None:
        self.method = method
        self.params = params


class LineBuffer:
    """Splits bytes into whole lines, in linear time."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []  # of the line that has no newline yet

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that these bytes complete, without their newline."""
        first_part, *other_parts = data.split(b"\n")
        self._parts.append(first_part)
        if not other_parts:
            return []
        lines = [b"".join(self._parts), *other_parts[:-1]]
        self._parts = [other_parts[-1]]  # what is behind the last newline
        return [line for line in lines if line.strip()]


def request(request_id: int, method: str, params: Mapping[str, Any]) -> bytes:
    """Return a request as one line. Raises TypeError, ValueError for params that are not JSON."""
    message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
    return _as_line(message)


def notification(method: str, params: Mapping[str, Any]) -> bytes:
    """Return a notification as one line."""
    return _as_line({"jsonrpc": "2.0", "method": method, "params": params})


def read(line: bytes) -> RpcAnswer | Notification:
    """Return the message in one line of the daemon. Raises ValueError for invalid JSON."""
    message = json.loads(line)
    if not isinstance(message, dict):
        message = {}
    if "method" in message:
        return Notification(str(message["method"]), message.get("params") or {})
    failure = message.get("error")
    error = None if failure is None else answered(failure)
    return RpcAnswer(message.get("id"), message.get("result"), error)


def result_of(answer: RpcAnswer, socket_path: str) -> Any:
    """Return the result in an answer.

    Raises the answer's error, or DaemonUnavailableError if the daemon ended before it was done.
    """
    if answer.error is not None and answer.error.kind == ENDING:
        raise DaemonUnavailableError(socket_path, answer.error.sentence)
    if answer.error is not None:
        raise answer.error
    return answer.result


def _as_line(message: Mapping[str, Any]) -> bytes:
    """Return a message as one line of JSON."""
    text = json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode() + b"\n"
