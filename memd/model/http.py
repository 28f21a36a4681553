"""What the servers of models share as HTTP: answers read up to a bound, broken connections."""

import json
from typing import TYPE_CHECKING

import anyio

from memd.model.errors import ModelReplyError, ModelUnavailableError
from memd.model.wire import HttpAnswer

if TYPE_CHECKING:
    import httpx2

CLOSE_SECONDS = 1.0
IDLE_CONNECTIONS = 2  # to a server, kept for the next request
_ANSWER_BYTES = 4 * 1024 * 1024  # the longest answers of today's models have half a megabyte


async def read(response: "httpx2.Response") -> HttpAnswer:
    """Return an answer, its body parsed where it is JSON. Raises ModelReplyError."""
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
        payload = json.loads(bytes(body))
    except (ValueError, RecursionError):
        payload = body.decode(errors="replace")
    return HttpAnswer(response.status_code, payload)


def cut(error: BaseException | None) -> ModelUnavailableError:
    """Return the failure of a connection; one that was never made cannot cost anything."""
    name = type(error).__name__
    if name in ("ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError"):
        return ModelUnavailableError(f"no connection ({name})")
    return ModelUnavailableError(f"the connection broke ({name})", may_cost=True)
