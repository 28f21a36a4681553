"""Send requests to a server of the Messages API. This is the only file that uses its SDK.

Rules of this file
- The library takes two seconds to import. It is imported in a worker thread at first use, never
  when memd starts.
- The library gets everything as arguments: address, credentials, headers, time, and that it must
  not retry, trace or log. It reads nothing from files or the environment (``endpoint.py`` does).
- No redirect is followed, so that a prompt only goes to the address that the user configured.
  Plain http, which ``endpoint.py`` allows for this machine alone, goes through no proxy.
- One request is one POST. The response is read in full, up to a limit. Cancelling closes it.
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
from memd.model.http import CLOSE_SECONDS, IDLE_CONNECTIONS, connection_error, read
from memd.model.key_file import read_key
from memd.model.patient import overdue
from memd.model.port import Ask, Reply, Usage
from memd.model.wire import HttpAnswer

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

_PATH = "/v1/messages"
_MODELS_PATH = "/v1/models"  # this list costs nothing
_NO_KEY = "none"  # local servers require a token and do not check it


class Connections:
    """The open SDK clients by endpoint.

    ``dropped`` holds, by address and model, the parts of requests that the server refused.
    """

    def __init__(self) -> None:
        self.dropped: dict[tuple[str, str], frozenset[str]] = {}
        self._clients: dict[Endpoint, _OpenClient] = {}  # the open ones
        self._newest: Endpoint | None = None  # used last; its client stays open
        self._lock = anyio.Lock()  # so that one client is created for an endpoint

    @asynccontextmanager
    async def use(self, endpoint: Endpoint) -> AsyncIterator["AsyncAnthropic"]:
        """Lend the endpoint's client, created if needed; then close unused clients of others.

        Raises ModelNotConfiguredError.
        """
        async with self._lock:
            opened = self._clients.get(endpoint)
            if opened is None:
                client = await to_thread.run_sync(_connect, endpoint, abandon_on_cancel=True)
                opened = self._clients[endpoint] = _OpenClient(client)
            opened.users += 1
            self._newest = endpoint
        try:
            yield opened.client
        finally:
            opened.users -= 1
            unused = [key for key, each in self._clients.items() if not each.users]
            await self._close(key for key in unused if key != self._newest)

    async def forget(self, endpoint: Endpoint) -> None:
        """Close the endpoint's client, so that the next use reads its key again."""
        await self._close([endpoint])

    async def aclose(self) -> None:
        """Close all clients."""
        await self._close(list(self._clients))

    async def _close(self, endpoints: Iterable[Endpoint]) -> None:
        """Close the clients of some endpoints, waiting at most ``CLOSE_SECONDS`` for each."""
        # All are removed before the first wait, so that nobody is lent a client that closes.
        clients = [self._clients.pop(endpoint, None) for endpoint in endpoints]
        for opened in clients:
            if opened is not None:
                with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                    await opened.client.close()


class _OpenClient(Struct):
    """An open SDK client and how many requests use it now."""

    client: "AsyncAnthropic"
    users: int = 0


class Claude:
    """A server of the Messages API as a Model; it does not retry (``patient.py`` does).

    ``problem`` is the sentence why the last request failed for good, "" if it did not.
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
        """The setting or variable that names the server or its key."""
        return self.endpoint.source

    async def warm(self) -> None:
        """Load the library and read the key; an error is stored in ``problem``."""
        try:
            async with self._connections.use(self.endpoint):
                self.problem = ""
        except ModelNotConfiguredError as error:
            self.problem = error.sentence

    async def ask(self, ask: Ask, on_usage: Callable[[Usage], None] | None = None) -> Reply:
        """Return the reply of one try within ``ask.seconds``. Raises ModelError."""
        try:
            with anyio.fail_after(ask.seconds):
                async with self._connections.use(self.endpoint) as client:
                    payload = await self._request(client, ask)
        except TimeoutError:
            raise overdue(ask.seconds) from None
        except (ModelNotConfiguredError, ModelUnauthorisedError) as error:
            self.problem = error.sentence
            if self.endpoint.key_file:
                # The person may put another key into the file, so that it has to be read again.
                await self._connections.forget(self.endpoint)
            raise
        self.problem = ""
        if on_usage is not None:
            on_usage(wire.usage(payload))
        return wire.reply(payload)

    async def reach(self, seconds: float) -> ModelError | None:
        """Return the error if the server cannot be used, by listing its models.

        ``seconds`` limit the request, not the loading of the library.
        """
        try:
            async with self._connections.use(self.endpoint) as client:
                with anyio.fail_after(seconds):
                    answer = await _send(client, seconds)
        except TimeoutError:
            return overdue(seconds)
        except ModelError as error:
            return error
        # Not every server has a list of models, so another status than these is no error.
        if answer.status not in wire.UNAUTHORISED:
            return None
        return wire.failure(answer, _secrets(client, self.endpoint))

    async def _request(self, client: "AsyncAnthropic", ask: Ask) -> Any:
        """Return the response's body; send again without the parts that the server refuses.

        Raises the error of the first try if leaving out parts does not help.
        """
        key = (self.endpoint.base_url, ask.model)
        dropped = known = self._connections.dropped.get(key, frozenset())
        first_error: ModelError | None = None
        while True:
            answer = await _send(client, ask.seconds, wire.encode(ask, dropped))
            error = wire.failure(answer, _secrets(client, self.endpoint))
            if error is None:
                if dropped != known:
                    self._connections.dropped[key] = dropped
                return answer.payload
            first_error = first_error or error
            if not isinstance(error, ModelRefusedError) or answer.status not in probe.REFUSALS:
                raise error  # it is not about a part of the request
            part = probe.next_part(probe.parts(ask), dropped, error.sentence)
            if not part:
                raise first_error
            dropped |= {part}


async def _send(client: "AsyncAnthropic", seconds: float, body: bytes = b"") -> HttpAnswer:
    """Return the response to a request for a message, or for the models if ``body`` is empty.

    Raises ModelUnavailableError and ModelReplyError.
    """
    import anthropic  # noqa: PLC0415 - loaded by now, in a thread
    import httpx2  # noqa: PLC0415 - as above

    options: dict[str, Any] = {
        "cast_to": httpx2.Response,  # with this cast the SDK returns the response itself
        "options": {"timeout": seconds, "headers": {"Content-Type": "application/json"}},
        "stream": True,
        "stream_cls": anthropic.AsyncStream[Any],
    }
    try:
        if body:
            return await read(await client.post(_PATH, content=body, **options))
        return await read(await client.get(_MODELS_PATH, **options))
    except anthropic.APIStatusError as error:
        status, headers = error.status_code, error.response.headers
        return HttpAnswer(status, error.body or "", wire.retry_after(headers))
    except anthropic.APIConnectionError as error:
        raise connection_error(error.__cause__) from None
    except (httpx2.HTTPError, httpx2.StreamError) as error:
        raise connection_error(error) from None


def _secrets(client: "AsyncAnthropic", endpoint: Endpoint) -> tuple[str, ...]:
    """Return the credentials that are sent, to remove them from the server's error messages."""
    sent = (client.api_key, client.auth_token, *(value for _, value in endpoint.headers))
    return tuple(secret for secret in sent if secret and secret != _NO_KEY)


def _connect(endpoint: Endpoint) -> "AsyncAnthropic":
    """Return a new SDK client for an endpoint. Blocks. Raises ModelNotConfiguredError."""
    key = read_key(endpoint.key_file) if endpoint.key_file else endpoint.api_key
    try:
        import anthropic  # noqa: PLC0415 - two seconds, in a thread, only where a model is used
        import httpx2  # noqa: PLC0415 - as above
    except ImportError:  # pragma: no cover - its test takes the library away in another process
        raise SdkMissingError from None
    for name in ("anthropic", "httpx2"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)  # they would log prompts
    is_remote = endpoint.base_url.startswith("https:")
    client = anthropic.AsyncAnthropic(
        api_key=key or None,
        auth_token=None if key else endpoint.auth_token or _NO_KEY,
        base_url=endpoint.base_url,
        max_retries=0,
        open_telemetry=False,
        http_client=httpx2.AsyncClient(
            follow_redirects=False,
            trust_env=is_remote,  # a proxy of the environment
            limits=httpx2.Limits(max_keepalive_connections=IDLE_CONNECTIONS),
        ),
    )
    # The SDK adds headers from the environment, whatever its arguments are; these replace them.
    client._custom_headers = dict(endpoint.headers)  # noqa: SLF001 - there is no public way
    return client
