"""What the servers of models share as HTTP: a client, one request, its answer up to a bound.

Rules of this file
- The library is imported in a worker thread at first use, never when memd starts, and no exception
  of it leaves this file: it carries the request's headers.
- It is told everything: address, headers, time. It finds nothing in the environment but a proxy and
  certificates, and logs nothing of what is sent.
- No redirect is followed: a prompt goes to the address that the user configured or nowhere. Plain
  http (this machine, by ``endpoint.py``) goes through no proxy either.
- One request is one POST that is read in full, up to a bound. Whoever stops waiting closes it.
"""

import json
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

import anyio

from memd import __version__
from memd.model.errors import LibraryMissingError, ModelReplyError, ModelUnavailableError
from memd.model.wire import HttpAnswer, retry_after

if TYPE_CHECKING:
    import httpx2

_CLOSE_SECONDS = 1.0
_IDLE_CONNECTIONS = 2  # to a server, kept for the next request
_ANSWER_BYTES = 4 * 1024 * 1024  # the longest answers of today's models have half a megabyte


class ModelServer:
    """The server at an address, by connections of its own; close it after use.

    ``headers`` go out with each request; of two with one name the later. Making it blocks, and
    raises LibraryMissingError.
    """

    def __init__(self, address: str, headers: Iterable[tuple[str, str]]) -> None:
        try:
            import httpx2  # noqa: PLC0415 - in a thread, only where a model is used
        except ImportError:  # pragma: no cover - its test takes the library away elsewhere
            raise LibraryMissingError from None
        for name in ("httpx2", "httpcore2"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)  # they would log what is sent
        sent = httpx2.Headers({"Accept": "application/json", "User-Agent": f"memd/{__version__}"})
        for name, value in headers:
            sent[name] = value
        self._failures = (httpx2.HTTPError, httpx2.StreamError)
        self._client = httpx2.AsyncClient(
            base_url=address,
            headers=sent,
            follow_redirects=False,
            trust_env=address.startswith("https:"),
            timeout=None,  # whoever asks bounds it
            limits=httpx2.Limits(max_keepalive_connections=_IDLE_CONNECTIONS),
        )

    async def send(self, path: str, body: bytes = b"") -> HttpAnswer:
        """Return the answer to a POST of JSON, or without a body to a GET. Raises ModelError."""
        method, headers = ("POST", {"Content-Type": "application/json"}) if body else ("GET", {})
        request = self._client.build_request(method, path, content=body or None, headers=headers)
        try:
            return await _read(await self._client.send(request, stream=True))
        except self._failures as error:
            raise _cut(error) from None

    async def aclose(self) -> None:
        """Close the connections."""
        with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
            await self._client.aclose()


async def _read(response: "httpx2.Response") -> HttpAnswer:
    """Return an answer, its body parsed where it is JSON. Raises ModelReplyError."""
    body = bytearray()
    try:
        async for part in response.aiter_bytes():
            body += part
            if len(body) > _ANSWER_BYTES:
                raise ModelReplyError(cause="it is longer than any reply")
    finally:
        with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
            await response.aclose()
    try:
        payload = json.loads(bytes(body))
    except (ValueError, RecursionError):
        payload = body.decode(errors="replace")
    return HttpAnswer(response.status_code, payload, retry_after(response.headers))


def _cut(error: Exception) -> ModelUnavailableError:
    """Return the failure of a connection; one that was never made cannot cost anything."""
    name = type(error).__name__
    if name in ("ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError"):
        return ModelUnavailableError(f"no connection ({name})")
    return ModelUnavailableError(f"the connection broke ({name})", may_cost=True)
