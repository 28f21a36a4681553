"""JSON-RPC 2.0: turn a frame into requests to run, refusals to send, and cancellations.

Rules of this file
- An id is a string, a number or null. A number stands for itself however it is written (1 and 1.0
  are one id, echoed as it came). Null ids are answered but cannot be cancelled.
- ``jsonrpc`` must be "2.0". Other members of the envelope than the standard ones are let through
  (``_meta``, ``trace``). ``params`` may be left out, null or ``[]``: all mean no parameters; other
  arrays are refused, because every method takes its parameters by name.
- Each bad item of a batch is a refusal of its own.
- An answer of a client becomes a notification of the method ``$/answer`` with ``id`` and
  ``result``; other ``$/`` notifications are dropped.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from memd.base import limits, strict_json
from memd.base.errors import Invalid, MemdError
from memd.rpc.errors import (
    InvalidRequestError,
    message_too_large,
    out_of_memory,
    without_traceback,
    wrong_params,
)

RequestId = str | int | float | None
_ID_TYPES = (str, int, float, type(None))
_META = frozenset(("_meta", "workDoneToken"))  # parameters that no method gets
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

    ``meta`` is what the parameters had as ``_meta``.
    """

    method: str
    params: dict[str, Any]
    id: RequestId = None
    answered: bool = True
    token: Token | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)


class RefusedRequest(Struct, frozen=True):
    """An answer that is known at once: this error, under this id."""

    id: RequestId
    error: MemdError


class Cancel(Struct, frozen=True):
    """The client no longer wants the answer to this request."""

    id: RequestId


Item = RpcRequest | RefusedRequest | Cancel


def read(frame: bytes) -> tuple[list[Item], bool]:
    """Return the items of a frame in order, and whether it is a batch; never raises."""
    most = limits.BATCH_ITEMS
    try:
        # A batch that is too long is known before it is decoded.
        is_long = frame.lstrip()[:1] == b"[" and strict_json.longer_than(frame, most)
        message = None if is_long else strict_json.decode(frame)
        if is_long or (isinstance(message, list) and len(message) > most):
            raise message_too_large("a batch", most, "items")
        if message == []:
            raise InvalidRequestError("the batch is empty")
        messages = message if isinstance(message, list) else [message]
        items = [item for each in messages if (item := _item(each)) is not None]
        return items, isinstance(message, list)
    except MemdError as error:
        return [RefusedRequest(None, without_traceback(error))], False
    except MemoryError:
        return [RefusedRequest(None, out_of_memory())], False


def _item(message: Any) -> Item | None:
    """Return the request, refusal or cancellation of one message, ``None`` for one to drop."""
    if not isinstance(message, dict):
        return RefusedRequest(None, InvalidRequestError("it is not an object"))
    if "method" not in message and ("result" in message or "error" in message):
        answer = {"id": message.get("id"), "result": message.get("result")}
        return RpcRequest(_ANSWER, answer, answered=False)
    method: Any = message.get("method")
    params, request_id, is_answered = message.get("params"), message.get("id"), "id" in message
    try:
        _check_envelope(message)
        if not is_answered and (method in _CANCEL_NOTIFICATIONS or method.startswith("$/")):
            return _cancel(method, params)
        if isinstance(params, list) and params:
            raise wrong_params(method, "parameters go by name, not by position")
        meta: dict[str, Any] = {}
        token: Token | None = None
        if isinstance(params, dict) and not _META.isdisjoint(params):
            meta, token = _take_meta(method, params)
    except MemdError as error:
        if not is_answered and isinstance(error, Invalid):
            return None
        valid_id = request_id if type(request_id) in _ID_TYPES else None
        return RefusedRequest(valid_id, without_traceback(error))
    return RpcRequest(method, params or {}, request_id, is_answered, token, meta)


def _check_envelope(message: dict[str, Any]) -> None:
    """Check the standard members. Raises InvalidRequestError."""
    if type(message.get("id")) not in _ID_TYPES:
        raise InvalidRequestError("the id is no string, number or null")
    if message.get("jsonrpc") != "2.0":
        raise InvalidRequestError('jsonrpc is not "2.0"')
    if not isinstance(message.get("method"), str):
        raise InvalidRequestError("method is not a string")
    if not isinstance(message.get("params"), dict | list | None):
        raise InvalidRequestError("params is no object")


def _cancel(method: str, params: Any) -> Cancel | None:
    """Return the cancellation of the request that a notification names, if it names one."""
    name = _CANCEL_NOTIFICATIONS.get(method, "")
    request_id = params.get(name) if isinstance(params, dict) else None
    return None if request_id is None or type(request_id) not in _ID_TYPES else Cancel(request_id)


def _take_meta(method: str, params: dict[str, Any]) -> tuple[dict[str, Any], Token | None]:
    """Remove ``_meta`` and the token for progress from parameters and return both. Raises Invalid.

    LSP's ``workDoneToken`` counts before MCP's ``progressToken`` in ``_meta``.
    """
    meta = params.pop("_meta", None)
    meta = meta if isinstance(meta, dict) else {}
    lsp_value = params.pop("workDoneToken", None)
    value = meta.get("progressToken") if lsp_value is None else lsp_value
    if value is None:
        return meta, None
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise wrong_params(method, "a progress token is a string or a whole number")
    return meta, Token(value, mcp=lsp_value is None)
