"""The JSON-RPC 2.0 of one connection: turn frames into requests, refusals and cancellations.

Rules of this file
- A frame becomes ``Work`` (one item, or a batch's items in order), a ``Cancel``, or nothing. An
  item is a ``RpcRequest`` to run or a ``RefusedRequest`` to send, one for each bad item.
- An id is a string, a number or null. A number stands for itself however it is written (1 and 1.0
  are one id, echoed as it came). Null ids are answered but cannot be cancelled.
- An id is in use from its request until ``finish``; using it again in between is an error, since
  the client could not tell the two answers apart.
- ``jsonrpc`` must be "2.0". Other members of the envelope than the standard ones are let through
  (``_meta``, ``trace``). ``params`` may be left out, null or ``[]``: all mean no parameters; other
  arrays are refused, because every method takes its parameters by name.
- At most ``limits.REQUESTS_IN_FLIGHT`` pieces of work run at once; what exceeds it is refused with
  1004 rather than left waiting, so that a cancellation behind it is always read. A batch is one
  piece: its items run one after another.
- An answer of a client becomes a notification of the method ``$/answer`` with ``id`` and
  ``result``; other ``$/`` notifications are dropped.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from memd.base import limits, strict_json
from memd.base.errors import MemdError
from memd.rpc.errors import (
    InvalidRequestError,
    message_too_large,
    out_of_memory,
    too_many,
    without_traceback,
    wrong_params,
)

RequestId = str | int | float | None
_ANSWER = "$/answer"  # the method to which the answers of a client go
# The notifications that cancel a request, of LSP and of MCP, and the parameter with its id.
_CANCEL_NOTIFICATIONS = {"$/cancelRequest": "id", "notifications/cancelled": "requestId"}


class Token(Struct, frozen=True):
    """The token with which progress is reported; ``mcp``: by MCP's convention, else by LSP's."""

    value: str | int
    mcp: bool

    def notification(self, value: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return the method and the parameters of a notification of progress."""
        if self.mcp:
            return "notifications/progress", {"progressToken": self.value, **value}
        return "$/progress", {"token": self.value, "value": dict(value)}


class RpcRequest(Struct, frozen=True):
    """One call to run. ``answered`` is false for a notification, which gets no answer at all.

    ``meta`` is what the parameters have as ``_meta``.
    """

    method: str
    params: dict[str, Any] = field(default_factory=dict)
    id: RequestId = None
    answered: bool = True
    token: Token | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)


class RefusedRequest(Struct, frozen=True):
    """An answer that is known at once: this error, under this id."""

    id: RequestId
    error: MemdError


class Work(Struct, frozen=True):
    """The requests of one frame. The answers of a batch make one array."""

    items: tuple[RpcRequest | RefusedRequest, ...]
    batch: bool = False


class Cancel(Struct, frozen=True):
    """The client no longer wants the answer to this request."""

    id: RequestId


Event = Work | Cancel


class Conversation:
    """The state between frames: which ids are in use and how many pieces of work run."""

    def __init__(self) -> None:
        self._ids_in_use: set[RequestId] = set()  # of open requests
        self.in_flight = 0  # pieces of work that run

    def receive(self, frame: bytes) -> list[Event]:
        """Return the work and cancellations in one frame; never raises."""
        message = _message(frame)
        if isinstance(message, MemdError):
            return [Work((RefusedRequest(None, message),))]
        if not isinstance(message, list):
            return self._admit(self._read(message), batch=False)
        return self._admit([event for item in message for event in self._read(item)], batch=True)

    def finish(self, work: Work) -> None:
        """Release the ids of work that ``receive`` returned; call it before its answer is sent."""
        requests = [item for item in work.items if isinstance(item, RpcRequest)]
        if requests:
            self.in_flight -= 1
            self._ids_in_use.difference_update(item.id for item in requests)

    def _admit(
        self, events: list[RpcRequest | RefusedRequest | Cancel], *, batch: bool
    ) -> list[Event]:
        """Return the events of one frame, its items as one ``Work``.

        Where too much work runs already, all items are refused.
        """
        cancels: list[Event] = [event for event in events if isinstance(event, Cancel)]
        items = tuple(event for event in events if not isinstance(event, Cancel))
        if any(isinstance(item, RpcRequest) for item in items):
            if self.in_flight >= limits.REQUESTS_IN_FLIGHT:
                items = self._refuse_all(items)
            else:
                self.in_flight += 1
        return [*cancels, Work(items, batch)] if items else cancels

    def _refuse_all(
        self, items: tuple[RpcRequest | RefusedRequest, ...]
    ) -> tuple[RpcRequest | RefusedRequest, ...]:
        """Return a refusal for each request, and release its id; notifications are dropped."""
        error = too_many("requests in flight per connection", limits.REQUESTS_IN_FLIGHT)
        refused: list[RpcRequest | RefusedRequest] = []
        for item in items:
            if isinstance(item, RefusedRequest):
                refused.append(item)
                continue
            self._ids_in_use.discard(item.id)
            if item.answered:
                refused.append(RefusedRequest(item.id, error))
        return tuple(refused)

    def _read(self, message: Any) -> list[RpcRequest | RefusedRequest | Cancel]:
        """Return the request, refusal or cancellation of one message, [] for one to drop."""
        if not isinstance(message, dict):
            return [RefusedRequest(None, InvalidRequestError("it is not an object"))]
        if "method" not in message and ("result" in message or "error" in message):
            answer = {"id": message.get("id"), "result": message.get("result")}
            return [RpcRequest(_ANSWER, answer, answered=False)]
        problem = _envelope_problem(message)
        if problem:
            request_id = message.get("id")
            valid_id = request_id if _is_id(request_id) else None
            return [RefusedRequest(valid_id, InvalidRequestError(problem))]
        return self._request(message) if "id" in message else self._notification(message)

    def _notification(self, message: dict[str, Any]) -> list[RpcRequest | RefusedRequest | Cancel]:
        """Return what a notification asks for: a cancellation, a request, or nothing."""
        method: str = message["method"]
        if method in _CANCEL_NOTIFICATIONS:
            return _cancel(method, message.get("params"))
        return [] if method.startswith("$/") else self._request(message)

    def _request(self, message: dict[str, Any]) -> list[RpcRequest | RefusedRequest | Cancel]:
        """Return a request (its id is in use then), its refusal, or [] for a bad notification."""
        answered = "id" in message
        method, request_id = message["method"], message.get("id")
        params = message.get("params") or {}
        token, meta = None, dict[str, Any]()
        if isinstance(params, dict):
            meta = _take_meta(params)
            problem, token = _take_token(params, meta)
        else:
            problem = "parameters go by name, not by position"
        if problem:
            error = wrong_params(method, problem)
            return [RefusedRequest(request_id, error)] if answered else []
        if request_id is not None:
            if request_id in self._ids_in_use:
                cause = "a request with this id is still in flight"
                return [RefusedRequest(request_id, InvalidRequestError(cause))]
            self._ids_in_use.add(request_id)
        return [RpcRequest(method, params, request_id, answered, token, meta)]


def _message(frame: bytes) -> Any:
    """Return the JSON value of a frame, or the error with which the whole frame is refused."""
    most = limits.BATCH_ITEMS
    try:
        if strict_json.longer_than(frame, most):  # known before the frame is decoded
            return message_too_large("a batch", most, "items")
        message = strict_json.decode(frame)
    except strict_json.NotJsonError as error:
        return without_traceback(error)
    except MemoryError:
        return out_of_memory()
    if message == []:
        return InvalidRequestError("the batch is empty")
    if isinstance(message, list) and len(message) > most:
        return message_too_large("a batch", most, "items")
    return message


def _is_id(value: Any) -> bool:
    """Return whether a value may be the id of a request."""
    return value is None or (isinstance(value, str | int | float) and not isinstance(value, bool))


def _envelope_problem(message: dict[str, Any]) -> str:
    """Return in words what is wrong with the standard members, "" for nothing."""
    if not _is_id(message.get("id")):
        return "the id is no string, number or null"
    if message.get("jsonrpc") != "2.0":
        return 'jsonrpc is not "2.0"'
    if not isinstance(message.get("method"), str):
        return "method is not a string"
    params = message.get("params")
    if params is not None and not isinstance(params, dict | list):
        return "params is no object"
    return ""


def _cancel(method: str, params: Any) -> list[RpcRequest | RefusedRequest | Cancel]:
    """Return the cancellation of the request that a notification names, if it names one."""
    if not isinstance(params, dict):
        return []
    request_id = params.get(_CANCEL_NOTIFICATIONS[method])
    if request_id is None or not _is_id(request_id):
        return []
    return [Cancel(request_id)]


def _take_meta(params: dict[str, Any]) -> dict[str, Any]:
    """Remove ``_meta`` from parameters and return it, {} where it is no object."""
    meta = params.pop("_meta", None)
    return meta if isinstance(meta, dict) else {}


def _take_token(params: dict[str, Any], meta: Mapping[str, Any]) -> tuple[str, Token | None]:
    """Remove a progress token from parameters; return a problem or "", and the token.

    LSP's ``workDoneToken`` counts before MCP's ``progressToken`` in ``_meta``.
    """
    mcp_value = meta.get("progressToken")
    lsp_value = params.pop("workDoneToken", None)
    value = mcp_value if lsp_value is None else lsp_value
    if value is None:
        return "", None
    if not isinstance(value, str | int) or isinstance(value, bool):
        return "a progress token is a string or a whole number", None
    return "", Token(value, mcp=lsp_value is None)
