"""Errors of the protocol itself, and the one place that turns an error into an answer.

JSON-RPC 2.0 reserves -32768 to -32000; of these only its five standard codes and LSP's -32800 are
used. All other codes are those of the families (memd/base/errors.py).
"""

from typing import Any

from memd.base import gone, limits
from memd.base.errors import Busy, Cancelled, Internal, Invalid, MemdError, TooLarge
from memd.base.text import one_line

_SENTENCE_CHARACTERS = 2000  # a sentence is for a person; a path or a name in it may be long
_NAME_CHARACTERS = 100


class InvalidRequestError(MemdError):
    """The JSON is no JSON-RPC 2.0 request."""

    code = -32600
    kind = "invalid_request"
    hint = "send an object with jsonrpc, method, id and params by name"
    exit_status = 2

    def __init__(self, cause: str) -> None:
        super().__init__(f"this is not a JSON-RPC 2.0 request: {cause}", cause=cause)


class UnknownMethodError(MemdError):
    """No method has this name."""

    code = -32601
    kind = "unknown_method"
    hint = "rpc.discover lists the methods"
    exit_status = 2

    def __init__(self, method: str) -> None:
        shown = one_line(method, _NAME_CHARACTERS)
        super().__init__(f"there is no method {shown}", method=shown)
        if method in gone.METHODS:
            self.hint = f"{method} is gone: {gone.METHODS[method]}"


def wrong_params(method: str, cause: str) -> Invalid:
    """Return the error that parameters came by position."""
    shown = one_line(method, _NAME_CHARACTERS)
    return Invalid(
        f"{shown}: {cause}",
        hint="send params as an object; rpc.discover shows each method's parameters",
        method=shown,
        cause=cause,
    )


def internal_error(error_id: str) -> Internal:
    """Return the error that stands for an unexpected exception, which only the log has."""
    return Internal(
        f"memd failed unexpectedly; its log has error {error_id}",
        hint="memctl logs shows the entry with this error id",
        error=error_id,
    )


def message_too_large(what: str, limit: int, unit: str) -> TooLarge:
    """Return the error that a frame, batch or result exceeds a limit of the socket."""
    return TooLarge(
        f"{what} may have at most {limit} {unit}",
        hint="send less at once; a big conversation goes by transcript_path",
        what=what,
        limit=limit,
    )


def too_many(what: str, limit: int) -> Busy:
    """Return the error that a limit on connections or on concurrent requests is reached."""
    return Busy(
        f"memd takes at most {limit} {what}",
        hint="try again when an answer has come",
        what=what,
        limit=limit,
    )


def out_of_memory() -> Busy:
    """Return the error that the system gives memd no more memory, so the request was not done."""
    return Busy(
        "memd has not enough memory for this",
        hint="send less at once, or try again when there is more memory",
    )


def frame_too_slow() -> TooLarge:
    """Return the error that a frame was begun and not finished in time."""
    return TooLarge(
        f"a frame must be whole {limits.FRAME_SECONDS:g} s after its first byte",
        hint="send a whole frame at once",
        retryable=True,
        seconds=limits.FRAME_SECONDS,
    )


def cancelled(*, is_ending: bool) -> Busy | Cancelled:
    """Return the error that a request was cancelled: by the client, or because memd ends."""
    if not is_ending:
        return Cancelled("the request was cancelled", hint="what had been committed before stays")
    return Busy(
        "memd ends, or gives way to its next version, before this was done",
        kind="ending",
        hint="ask again: with the same request_id nothing is done twice",
    )


def without_traceback(error: MemdError) -> MemdError:
    """Return an error without its traceback, whose frames would keep the request in memory."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


def to_wire(error: MemdError) -> dict[str, Any]:
    """Return the ``error`` member of an answer: code, sentence, and data for a program."""
    data = {"kind": error.kind, "retryable": error.retryable, "hint": error.hint}
    return {
        "code": error.code,
        "message": one_line(error.sentence, _SENTENCE_CHARACTERS),
        "data": {**error.facts, **data},
    }


def error_reply(request_id: Any, error: MemdError) -> dict[str, Any]:
    """Return a whole error answer; the id is null where the request had none that is valid."""
    return {"jsonrpc": "2.0", "id": request_id, "error": to_wire(error)}
