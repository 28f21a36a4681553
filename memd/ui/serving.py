"""The server of the page: for this machine alone, with few connections and a certain end.

Rules of this file
- It listens on 127.0.0.1 and nowhere else, while it runs and not longer.
- A connection of another user's process is closed, if the kernel tells whose it is.
- More than ``CONNECTIONS`` at once are not served.
- It ends on SIGINT, SIGTERM and SIGHUP, on its Quit button, and once nobody has had a page open for
  a while, or used the address in time. What runs then has ``DRAIN_SECONDS``.
- Nothing is logged: an address in a log would be a way in.
"""

import asyncio
import signal
import socket
import time
from collections.abc import AsyncIterable, Callable, Iterator
from contextlib import contextmanager

import anyio
import uvicorn
from msgspec import Struct
from uvicorn.protocols.http.h11_impl import H11Protocol

from memd.base.errors import Refused
from memd.ui.access import TOKEN_SECONDS, PageAccess
from memd.ui.app import PageServer
from memd.ui.link import SocketLink
from memd.ui.peers import is_own_peer

CONNECTIONS = 32  # at once; others get 503
DRAIN_SECONDS = 3  # that requests have to finish when the server ends
IDLE_MINUTES = 30.0  # without use, after which the server ends
_HOST = "127.0.0.1"
_KEEP_SECONDS = 30  # that a connection may stay open between two requests
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Served(Struct, frozen=True):
    """The parameters of ``serve``. ``opened`` is called with the address once it is ready."""

    link: SocketLink
    here: str
    opened: Callable[[str], None]
    write: bool = False
    port: int = 0
    idle_minutes: float = IDLE_MINUTES


def serve(served: Served) -> bool:
    """Serve until a signal, the person's quit or disuse; return whether anybody entered.

    Raises Refused.
    """
    try:
        listener = socket.create_server((_HOST, served.port), backlog=CONNECTIONS)
    except (OSError, OverflowError) as error:
        raise Refused(
            f"port {served.port} cannot be listened at: "
            f"{getattr(error, 'strerror', '') or str(error)}",
            hint="leave --port out, and a free one is taken",
            port=served.port,
        ) from None
    with listener:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return anyio.run(_serve, listener, served)


async def _serve(listener: socket.socket, served: Served) -> bool:
    """Serve at a listening socket until the server must end; return whether anybody entered."""
    host = f"{_HOST}:{listener.getsockname()[1]}"
    access = PageAccess(host, time.monotonic())
    page = PageServer(served.link, access, served.here, write=served.write)
    server = _PageProcess(_server_config(page))

    async def until_signal(signals: AsyncIterable[signal.Signals]) -> None:
        async for _ in signals:
            page.stop.set()

    async def until_unused() -> None:
        idle_seconds = served.idle_minutes * 60
        seconds_left = min(idle_seconds, TOKEN_SECONDS)
        while seconds_left > 0:
            await anyio.sleep(seconds_left)
            seconds_left = page.idle_until(idle_seconds) - time.monotonic()
        page.stop.set()

    async def until_stopped() -> None:
        await page.stop.wait()
        server.should_exit = True

    with anyio.open_signal_receiver(*_SIGNALS) as signals:
        served.opened(access.address)  # an error while it is printed ends the page
        async with anyio.create_task_group() as group:
            group.start_soon(until_signal, signals)
            group.start_soon(until_unused)
            group.start_soon(until_stopped)
            await server.serve([listener])
            group.cancel_scope.cancel()
    return not access.token


def _server_config(page: PageServer) -> uvicorn.Config:
    """Return the configuration: plain HTTP/1.1, no logs, no proxies, no name of the server."""
    return uvicorn.Config(
        page,
        http=_PageConnection,
        ws="none",
        loop="asyncio",
        interface="asgi3",
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=_KEEP_SECONDS,
        timeout_graceful_shutdown=DRAIN_SECONDS,
    )


class _PageProcess(uvicorn.Server):
    """A server without signal handlers: ``_serve`` handles them and ends open streams too."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Install no signal handlers."""
        yield


class _PageConnection(H11Protocol):
    """A connection that is closed if it is another user's."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, or close the connection."""
        super().connection_made(transport)
        own: tuple[str, int] = transport.get_extra_info("sockname")
        if self.client is None or not is_own_peer(self.client, own):
            transport.abort()
