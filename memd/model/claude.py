"""A server of the Messages API as a Model.

The rules of ``http.py`` hold: the address that the user configured or nothing, no redirect, one
POST that is read in full up to a bound. No credential is in an error.
"""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
from anyio import to_thread

from memd.model import probe, wire
from memd.model.endpoint import Endpoint
from memd.model.errors import (
    ModelError,
    ModelNotConfiguredError,
    ModelRefusedError,
    ModelUnauthorisedError,
)
from memd.model.http import ModelServer
from memd.model.key_file import read_key
from memd.model.patient import overdue
from memd.model.port import Ask, Reply, Usage

_PATH = "/v1/messages"
_MODELS_PATH = "/v1/models"  # its list of models costs nothing
_NO_KEY = "none"  # servers of this machine want a token and do not look at it
_VERSION = "2026-10-21"  # of the API: what its requests and replies are like


class Connections:
    """The open clients by endpoint, and what is known of the servers behind them.

    ``dropped`` holds, by address and model, the parts of requests that a server does not take.
    """

    def __init__(self) -> None:
        self.dropped: dict[tuple[str, str], frozenset[str]] = {}
        self._open: dict[Endpoint, _OpenServer] = {}
        self._newest: Endpoint | None = None
        self._lock = anyio.Lock()

    @asynccontextmanager
    async def use(self, endpoint: Endpoint) -> AsyncIterator["_OpenServer"]:
        """Hold the endpoint's server, connected at first use; older ones that rest are closed.

        Raises ModelNotConfiguredError.
        """
        async with self._lock:
            used = self._open.get(endpoint)
            if used is None:
                used = await to_thread.run_sync(_connect, endpoint, abandon_on_cancel=True)
                self._open[endpoint] = used
            used.users += 1
            self._newest = endpoint
        try:
            yield used
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
                await opened.server.aclose()


@dataclass(slots=True)
class _OpenServer:
    server: ModelServer
    secrets: tuple[str, ...]
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
                async with self._connections.use(self.endpoint) as opened:
                    payload = await self._requested(opened, ask)
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
            async with self._connections.use(self.endpoint) as opened:
                # The time is the server's: the first use of the library has to load it.
                with anyio.fail_after(seconds):
                    answer = await opened.server.send(_MODELS_PATH)
        except TimeoutError:
            return overdue(seconds)
        except ModelError as error:
            return error
        # Not every server has that list: any other answer is one.
        refused = answer.status in (401, 403)
        return wire.failure(answer, opened.secrets) if refused else None

    async def _requested(self, opened: _OpenServer, ask: Ask) -> Any:
        """Return the answer's body, leaving out what the server does not take."""
        key = (self.endpoint.base_url, ask.model)
        dropped = known = self._connections.dropped.get(key, frozenset())
        first: ModelError | None = None
        while True:
            answer = await opened.server.send(_PATH, wire.encode(ask, dropped))
            error = wire.failure(answer, opened.secrets)
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


def _connect(endpoint: Endpoint) -> _OpenServer:
    """Connect an endpoint's server and return it; blocks. Raises ModelNotConfiguredError."""
    key = read_key(endpoint.key_file) if endpoint.key_file else endpoint.api_key
    token = key or endpoint.auth_token
    own = (("Authorization", f"Bearer {token or _NO_KEY}"), ("anthropic-version", _VERSION))
    given = (token, *(value for _, value in endpoint.headers))
    secrets = tuple(secret for secret in given if secret)
    return _OpenServer(ModelServer(endpoint.base_url, (*own, *endpoint.headers)), secrets)
