"""Find a request's handler, run it, and make an answer of its result or its failure.

jsonrpcserver does this with requests that ``rpc/messages.py`` has decoded and checked: its own
parser and check refuse whole batches and unknown members, echo NaN, and take twice the time. It
runs each method in a task of its own, which is never cancelled: a request is cancelled by the scope
of its call, inside that task, so that what a handler shields from cancellation ends first.

This is one of the three places of the program that catch every exception.
"""

import inspect
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from types import ModuleType
from typing import Any, TypeVar

import msgspec

from memd.base import limits
from memd.base.errors import MemdError
from memd.rpc.call import Call, Handler
from memd.rpc.connection import ServerLog, refusal
from memd.rpc.errors import (
    UnknownMethodError,
    cancelled,
    internal_error,
    message_too_large,
    out_of_memory,
    to_wire,
    without_traceback,
)
from memd.rpc.messages import RpcRequest


@contextmanager
def _bare_packages(*names: str) -> Iterator[None]:
    """Let modules of libraries be imported without what their packages import themselves.

    That is a validator of JSON schemas, since memd checks envelopes itself, a web server that is an
    example, and much of which results are not made: 5 MB and a part of the start.
    """
    absent = [name for name in names if name not in sys.modules]
    for name in absent:
        spec = find_spec(name)
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__path__ = (spec and spec.submodule_search_locations) or []
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]


with _bare_packages("jsonrpcserver", "oslash"):
    from jsonrpcserver.async_dispatcher import dispatch_deserialized
    from jsonrpcserver.response import to_serializable_one
    from jsonrpcserver.result import Error, Result, Success

T = TypeVar("T")
Method = Callable[..., Awaitable[Result]]
# A larger result would overflow an empty reply queue and end the connection: an error is better.
_RESULT_BYTES = limits.REPLY_QUEUE_BYTES - limits.HEADER_BYTES


class Dispatcher(dict[str, Method]):
    """The library's table of methods, made of handlers; an unknown name is a method that fails."""

    def __init__(self, handlers: Mapping[str, Handler], log: ServerLog) -> None:
        super().__init__({name: _method(name, each, log) for name, each in handlers.items()})
        self._log = log

    def __missing__(self, name: str) -> Method:
        """Return a method that answers that there is none of this name."""

        async def unknown(_call: Call, _params: dict[str, Any]) -> None:
            raise UnknownMethodError(name)

        return _method("other", unknown, self._log)  # the log has no names that clients made up

    async def answer(self, call: Call) -> bytes:
        """Run the request of a call and return its answer as JSON, b"" for a notification."""
        request = call.request or RpcRequest("", {})
        message: Any = {"method": request.method, "params": [request.params]}  # one argument
        if request.answered:
            message["id"] = request.id
        try:
            as_dict: Any = to_serializable_one  # whose types the library declares too narrowly
            answer: Any = await dispatch_deserialized(self, call, as_dict, message)
            if answer is None:
                return b""
            return msgspec.json.encode({"jsonrpc": "2.0", "id": request.id, **answer})
        except Exception:  # noqa: BLE001 - only the library itself can fail here, without memory
            return refusal(request.id, out_of_memory())


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


def _method(name: str, handler: Handler, log: ServerLog) -> Method:
    """Return a handler as a method of the library; ``name`` goes to the log with its failures."""

    async def method(call: Call, params: dict[str, Any], /) -> Result:
        failure: MemdError | None = None
        body = b""
        with call.scope:
            try:
                body = msgspec.json.encode(await handler(call, params))
            except Exception as error:  # noqa: BLE001 - the dispatch edge: no failure goes further
                failure = _failure(
                    log, error, lambda: {"method": name, "client": call.caller.client}
                )
        if call.scope.cancelled_caught:
            failure = cancelled(is_ending=call.connection.is_ending)
        elif len(body) > _RESULT_BYTES:
            failure = message_too_large(what="a result", limit=_RESULT_BYTES, unit="bytes")
        return Success(msgspec.Raw(body)) if failure is None else Error(**to_wire(failure))

    method.__signature__ = _SIGNATURE  # type: ignore[attr-defined] # else it is made at each call
    return method


_SIGNATURE = inspect.Signature(  # of every method
    [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in ("call", "params")]
)


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
