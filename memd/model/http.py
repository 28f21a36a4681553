"""Read HTTP responses of models up to a size limit, and turn broken connections into errors."""

from typing import TYPE_CHECKING

import anyio

from memd.model.errors import ModelReplyError, ModelUnavailableError
from memd.model.wire import HttpAnswer, decode

if TYPE_CHECKING:
    import httpx2

CLOSE_SECONDS = 1.0  # the longest wait for a connection to close
IDLE_CONNECTIONS = 2  # to one server, left open for the next request
_ANSWER_BYTES = 4 * 1024 * 1024  # the longest answers of today's models have half a megabyte


async def read(response: "httpx2.Response") -> HttpAnswer:
    """Return a response with its body parsed if it is JSON, otherwise as text; close it.

    Raises ModelReplyError if the body is longer than 4 MiB.
    """
    body = bytearray()
    try:
        async for part in response.aiter_bytes():
            body += part
            if len(body) > _ANSWER_BYTES:
                raise ModelReplyError(cause="it is longer than any reply")
    finally:
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            await response.aclose()
    try:
        payload = decode(bytes(body))
    except (ValueError, RecursionError):
        payload = body.decode(errors="replace")
    return HttpAnswer(response.status_code, payload)


def connection_error(error: BaseException | None) -> ModelUnavailableError:
    """Return the error for an exception of the HTTP library; it may cost unless never connected."""
    name = type(error).__name__
    if name in ("ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError"):
        return ModelUnavailableError(f"no connection ({name})")
    return ModelUnavailableError(f"the connection broke ({name})", may_cost=True)
