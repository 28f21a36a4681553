"""Errors of the protocol itself, and the one place that turns an error into an answer.

JSON-RPC 2.0 reserves -32768 to -32000; of these only its five standard codes and LSP's -32800 are
used. Every other error has a code of its own, in its class.
"""

from typing import Any

from memd.base import gone
from memd.base.errors import MemdError, WrongParameterError
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


class ParamsShapeError(WrongParameterError):
    """Parameters came by position, or a progress token has the wrong type."""

    hint = "send params as an object; rpc.discover shows each method's parameters"

    def __init__(self, method: str, cause: str) -> None:
        shown = one_line(method, _NAME_CHARACTERS)
        super().__init__(f"{shown}: {cause}", method=shown, cause=cause)


class InternalError(MemdError):
    """An unexpected exception; only the log has it, under this id."""

    code = -32603
    kind = "internal"
    hint = "memctl logs shows the entry with this error id"
    exit_status = 70

    def __init__(self, error_id: str) -> None:
        super().__init__(f"memd failed unexpectedly; its log has error {error_id}", error=error_id)


class RequestCancelledError(MemdError):
    """The request was cancelled, by its client or because the daemon stops."""

    code = -32800
    kind = "cancelled"
    hint = "what had been committed before stays"

    def __init__(self) -> None:
        super().__init__("the request was cancelled")


class EndingError(MemdError):
    """The daemon ended before the request was done; it can be sent to the next one."""

    code = 1004
    kind = "ending"
    retryable = True
    hint = "ask again: with the same request_id nothing is done twice"
    exit_status = 75

    def __init__(self) -> None:
        super().__init__("memd ends, or gives way to its next version, before this was done")


class MessageTooLargeError(MemdError):
    """A frame, batch or result exceeds a limit of the socket."""

    code = 1007
    kind = "too_large"
    hint = "send less at once; a big conversation goes by transcript_path"

    def __init__(self, what: str, limit: int, unit: str) -> None:
        super().__init__(f"{what} may have at most {limit} {unit}", what=what, limit=limit)


class BusyError(MemdError):
    """A limit on connections or on concurrent requests is reached."""

    code = 1004
    kind = "busy"
    retryable = True
    hint = "try again when an answer has come"
    exit_status = 75

    def __init__(self, what: str, limit: int) -> None:
        super().__init__(f"memd takes at most {limit} {what}", what=what, limit=limit)


class OutOfMemoryError(MemdError):
    """The system gives memd no more memory, so the request was not done."""

    code = 1040
    kind = "out_of_memory"
    retryable = True
    hint = "send less at once, or try again when there is more memory"
    exit_status = 75

    def __init__(self) -> None:
        super().__init__("memd has not enough memory for this")


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
