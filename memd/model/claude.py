"""The one door to the Messages API's SDK.

Rules of this file
- The library takes two seconds to import and is imported in a worker thread at first use, never
  when memd starts.
- The library is told everything: address, credentials, headers, time, that it shall not try again
  by itself, trace or log. It finds nothing in files and in the environment (``endpoint.py`` says
  what counts there).
- No redirect is followed: a prompt goes to the address that the user configured or nowhere. Plain
  http (this machine, by ``endpoint.py``) goes through no proxy either.
- One request is one POST that is read in full, up to a bound. Whoever stops waiting closes it.
- No credential is in an error, and no exception of the library leaves this file, since it carries
  the request's headers.
"""

import logging
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread
from msgspec import Struct

from memd.model import probe, wire
from memd.model.endpoint import Endpoint
from memd.model.errors import (
    ModelError,
    ModelNotConfiguredError,
    ModelRefusedError,
    ModelUnauthorisedError,
    SdkMissingError,
)
from memd.model.http import CLOSE_SECONDS, IDLE_CONNECTIONS, cut, read
from memd.model.key_file import read_key
from memd.model.patient import overdue
from memd.model.port import Ask, Reply, Usage
from memd.model.wire import HttpAnswer

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

_PATH = "/v1/messages"
_MODELS_PATH = "/v1/models"  # its list of models costs nothing
_NO_KEY = "none"  # servers of this machine want a token and do not look at it


class Connections:
    """The open clients by endpoint, and what is known of the servers behind them.

    ``dropped`` holds, by address and model, the parts of requests that a server does not take.
    """

    def __init__(self) -> None:
        self.dropped: dict[tuple[str, str], frozenset[str]] = {}
        self._open: dict[Endpoint, _OpenClient] = {}
        self._newest: Endpoint | None = None
        self._lock = anyio.Lock()

    @asynccontextmanager
    async def use(self, endpoint: Endpoint) -> AsyncIterator["AsyncAnthropic"]:
        """Hold the endpoint's client, made when it is not there; older ones that rest are closed.

        Raises ModelNotConfiguredError.
        """
        async with self._lock:
            used = self._open.get(endpoint)
            if used is None:
                client = await to_thread.run_sync(_connect, endpoint, abandon_on_cancel=True)
                used = self._open[endpoint] = _OpenClient(client)
            used.users += 1
            self._newest = endpoint
        try:
            yield used.client
        finally:
            used.users -= 1
            resting = [key for key, opened in self._open.items() if not opened.users]
            await self._close(key for key in resting if key != self._newest)

    async def forget(self, endpoint: Endpoint) -> None:
        """Close the endpoint's client, so that the next use reads its key again."""
        await self._close([endpoint])

    async def aclose(self) -> None:
        """Close all clients."""
        await self._close(list(self._open))

    async def _close(self, endpoints: Iterable[Endpoint]) -> None:
        gone = [self._open.pop(endpoint, None) for endpoint in endpoints]
        for opened in gone:
            if opened is not None:
                with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                    await opened.client.close()


class _OpenClient(Struct):
    client: "AsyncAnthropic"
    users: int = 0


class Claude:
    """A server of the Messages API as a Model; one try for each request.

    ``problem`` is why the last request failed for good, in words; empty when it did not.
    """

    calls_tools = True

    def __init__(self, endpoint: Endpoint, connections: Connections) -> None:
        self.endpoint = endpoint
        self.problem = ""
        self._connections = connections

    @property
    def host(self) -> str:
        """The server's host and port."""
        return self.endpoint.host

    @property
    def source(self) -> str:
        """What named it."""
        return self.endpoint.source

    async def warm(self) -> None:
        """Load the library and read the key; what goes wrong is in ``problem``."""
        try:
            async with self._connections.use(self.endpoint):
                self.problem = ""
        except ModelNotConfiguredError as error:
            self.problem = error.sentence

    async def ask(self, ask: Ask, on_usage: Callable[[Usage], None] | None = None) -> Reply:
        """Return the reply within ``ask.seconds``; ``ask.retries`` is for ``patient.py``.

        Raises ModelError.
        """
        try:
            with anyio.fail_after(ask.seconds):
                async with self._connections.use(self.endpoint) as client:
                    payload = await self._requested(client, ask)
        except TimeoutError:
            raise overdue(ask.seconds) from None
        except (ModelNotConfiguredError, ModelUnauthorisedError) as error:
            self.problem = error.sentence
            if self.endpoint.key_file:
                await self._connections.forget(self.endpoint)  # the file may hold another by then
            raise
        self.problem = ""
        if on_usage is not None:
            on_usage(wire.usage(payload))
        return wire.reply(payload)

    async def reach(self, seconds: float) -> ModelError | None:
        """Return why the server cannot be used, ``None`` when it answers; no model is asked."""
        try:
            async with self._connections.use(self.endpoint) as client:
                # The time is the server's: the first use of the library takes seconds to load it.
                with anyio.fail_after(seconds):
                    answer = await _sent(client, seconds)
        except TimeoutError:
            return overdue(seconds)
        except ModelError as error:
            return error
        # Not every server has that list: any other answer is one.
        refused = answer.status in (401, 403)
        return wire.failure(answer, _secrets(client, self.endpoint)) if refused else None

    async def _requested(self, client: "AsyncAnthropic", ask: Ask) -> Any:
        """Return the answer's body, leaving out what the server does not take."""
        key = (self.endpoint.base_url, ask.model)
        dropped = known = self._connections.dropped.get(key, frozenset())
        first: ModelError | None = None
        while True:
            answer = await _sent(client, ask.seconds, wire.encode(ask, dropped))
            error = wire.failure(answer, _secrets(client, self.endpoint))
            if error is None:
                if dropped != known:
                    self._connections.dropped[key] = dropped
                return answer.payload
            first = first or error
            if not isinstance(error, ModelRefusedError) or answer.status not in probe.REFUSALS:
                raise error
            part = probe.next_part(probe.parts(ask), dropped, error.sentence)
            if not part:
                raise first
            dropped |= {part}


async def _sent(client: "AsyncAnthropic", seconds: float, body: bytes = b"") -> HttpAnswer:
    """Return the answer to a request for a message, or without a body to one for the models."""
    import anthropic  # noqa: PLC0415 - loaded by now, in a thread
    import httpx2  # noqa: PLC0415 - as above

    how: dict[str, Any] = {
        "cast_to": httpx2.Response,  # with this cast it is the bare response
        "options": {"timeout": seconds, "headers": {"Content-Type": "application/json"}},
        "stream": True,
        "stream_cls": anthropic.AsyncStream[Any],
    }
    try:
        if body:
            return await read(await client.post(_PATH, content=body, **how))
        return await read(await client.get(_MODELS_PATH, **how))
    except anthropic.APIStatusError as error:
        status, headers = error.status_code, error.response.headers
        return HttpAnswer(status, error.body or "", wire.retry_after(headers))
    except anthropic.APIConnectionError as error:
        raise cut(error.__cause__) from None
    except (httpx2.HTTPError, httpx2.StreamError) as error:
        raise cut(error) from None


def _secrets(client: "AsyncAnthropic", endpoint: Endpoint) -> tuple[str, ...]:
    given = (client.api_key, client.auth_token, *(value for _, value in endpoint.headers))
    return tuple(secret for secret in given if secret and secret != _NO_KEY)


def _connect(endpoint: Endpoint) -> "AsyncAnthropic":
    """Return a client of the SDK; blocks. Raises ModelNotConfiguredError."""
    key = read_key(endpoint.key_file) if endpoint.key_file else endpoint.api_key
    try:
        import anthropic  # noqa: PLC0415 - two seconds, in a thread, only where a model is used
        import httpx2  # noqa: PLC0415 - as above
    except ImportError:  # pragma: no cover - its test takes the library away in another process
        raise SdkMissingError from None
    for name in ("anthropic", "httpx2"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)  # they would log what is sent
    remote = endpoint.base_url.startswith("https:")
    client = anthropic.AsyncAnthropic(
        api_key=key or None,
        auth_token=None if key else endpoint.auth_token or _NO_KEY,
        base_url=endpoint.base_url,
        max_retries=0,
        open_telemetry=False,
        http_client=httpx2.AsyncClient(
            follow_redirects=False,
            trust_env=remote,
            limits=httpx2.Limits(max_keepalive_connections=IDLE_CONNECTIONS),
        ),
    )
    # The SDK takes headers from its process's environment whatever it is told.
    client._custom_headers = dict(endpoint.headers)  # noqa: SLF001 - there is no public way
    return client
