"""The only module that uses jsonrpcserver; here every failure of a handler becomes an answer.

jsonrpcserver finds the method and binds the arguments. Parser, envelope, batches and limits are our
own: those of the library refuse whole batches and unknown members, echo NaN, and show the text of
exceptions. The library does not *run* handlers either: it would do so in tasks of its own
(``asyncio.gather``), which anyio's cancel scopes and shields do not cover, so a cancelled request
could release a lock while its thread still writes. The functions it calls here only return the
handler, which then runs in the task of the request.

This is one of the three places of the program that catch every exception.
"""

import sys
import warnings
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from types import ModuleType
from typing import Any, TypeVar

import msgspec

from memd.base import limits
from memd.base.errors import MemdError
from memd.rpc.connection import Call, Handler, ServerLog
from memd.rpc.conversation import RpcRequest
from memd.rpc.errors import (
    UnknownMethodError,
    error_reply,
    internal_error,
    message_too_large,
    out_of_memory,
    without_traceback,
)


class _Unused:
    """Replaces classes that the library imports and never uses here."""

    validate = None

    def __init__(self, _schema: object) -> None:
        pass

    @staticmethod
    def check_schema(_schema: object) -> None:
        """Take any schema."""


@contextmanager
def _without_unused() -> Iterator[None]:
    """Replace unused imports of the library by empty modules, which saves 5 MB and start-up time.

    These are a validator of JSON schemas, since memd checks envelopes itself, and a web server that
    is an example.
    """
    names: dict[str, dict[str, object]] = {
        "jsonschema": {},
        "jsonschema.validators": {"validator_for": lambda _schema: _Unused},
        "http.server": {"BaseHTTPRequestHandler": _Unused, "HTTPServer": _Unused},
    }
    absent = [name for name in names if name not in sys.modules]
    for name in absent:
        sys.modules[name] = ModuleType(name)
        vars(sys.modules[name]).update(names[name])
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]


with warnings.catch_warnings(), _without_unused():
    # The library reads a schema in a way that Python 3.11 deprecates, and is no longer developed.
    warnings.simplefilter("ignore", DeprecationWarning)
    from jsonrpcserver import Result, Success, dispatch_to_serializable

T = TypeVar("T")
# A larger result would overflow an empty reply queue and end the connection: an error is better.
_RESULT_BYTES = limits.REPLY_QUEUE_BYTES - limits.HEADER_BYTES


class Dispatcher:
    """Answers requests from a table of handlers."""

    def __init__(self, handlers: Mapping[str, Handler], log: ServerLog) -> None:
        self._methods = {name: _binder(handler) for name, handler in handlers.items()}
        self._log = log

    async def answer(self, request: RpcRequest, call: Call) -> bytes:
        """Run one request and return its answer as JSON, b"" for a notification.

        A cancellation is raised; every other failure becomes an answer.
        """
        # The log has no names that clients made up.
        method = request.method if request.method in self._methods else "other"

        def facts() -> dict[str, str]:  # called at the end: the call may change the client's name
            """Return the method and the client for an error's line in the log."""
            return {"method": method, "client": call.connection.caller.client}

        result = await contain(self._log, partial(self._run, request, call), facts)
        if not request.answered:
            return b""
        return result if isinstance(result, bytes) else refusal(request.id, result)

    async def _run(self, request: RpcRequest, call: Call) -> bytes:
        """Run the handler of a request and return its answer as JSON.

        Raises UnknownMethodError, TooLarge and what the handler raises.
        """
        message = {"jsonrpc": "2.0", "method": request.method, "params": request.params, "id": 0}
        bound: Any = dispatch_to_serializable(
            message,
            self._methods,
            context=call,
            deserializer=_as_it_is,
            validator=_as_it_is,
        )
        if "result" not in bound:
            raise UnknownMethodError(request.method)
        result = await bound["result"](call, request.params)
        body = msgspec.json.encode({"jsonrpc": "2.0", "id": request.id, "result": result})
        if len(body) > _RESULT_BYTES:
            raise message_too_large(what="a result", limit=_RESULT_BYTES, unit="bytes")
        return body


async def contain(
    log: ServerLog, work: Callable[[], Awaitable[T]], facts: Callable[[], dict[str, str]] = dict
) -> T | MemdError:
    """Await ``work`` and return its result, or its failure as a value.

    An unexpected exception is logged with the facts that ``facts`` returns about the work, and an
    Internal with the id of the log entry is returned.
    """
    try:
        return await work()
    except Exception as error:  # noqa: BLE001 - the dispatch edge: no failure goes further
        return _failure(log, error, facts)


def refusal(request_id: Any, error: MemdError) -> bytes:
    """Return an error answer as JSON."""
    return msgspec.json.encode(error_reply(request_id, error))


def _binder(handler: Handler) -> Callable[..., Result]:
    """Return a method for the library that only returns the handler."""
    return lambda _call, /, **_params: Success(handler)


def _as_it_is(value: Any) -> Any:
    """Return the value: the message is parsed and checked already."""
    return value


def _failure(log: ServerLog, error: Exception, facts: Callable[[], dict[str, str]]) -> MemdError:
    """Return the failure for the client; an unexpected exception is logged.

    An exception group with only one exception counts as that exception.
    """
    failure: BaseException = error
    while isinstance(failure, BaseExceptionGroup) and len(failure.exceptions) == 1:
        failure = failure.exceptions[0]
    if isinstance(failure, MemdError):
        return without_traceback(failure)
    try:
        if not isinstance(failure, MemoryError):
            return internal_error(log.unexpected(error, **facts()))
        log.note("out_of_memory")
    except MemoryError:  # logging needs memory too
        pass
    return out_of_memory()
