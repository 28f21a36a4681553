"""The server of the page: for this machine alone, with few connections and a certain end.

Rules of this file
- It listens on 127.0.0.1 and nowhere else, while it runs and not longer.
- A connection of another user's process is closed, if the kernel tells whose it is.
- A connection that sends no request, or does not take its answers, ends; more than
  ``CONNECTIONS`` at once are not served.
- It ends on SIGINT, SIGTERM and SIGHUP, on its Quit button, and once nobody has had a page open for
  a while, or used the address in time. What runs then has ``DRAIN_SECONDS``.
- Nothing is logged: an address in a log would be a way in.
"""

import asyncio
import signal
import socket
import struct
from collections.abc import AsyncIterable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import uvicorn
from msgspec import Struct
from uvicorn.protocols.http.h11_impl import H11Protocol

from memd.base.errors import Refused
from memd.ui.access import TOKEN_SECONDS, PageAccess
from memd.ui.app import HEAD_BYTES, HEADERS, PageOptions, PageServer
from memd.ui.link import SocketLink
from memd.ui.peers import is_own_peer

CONNECTIONS = 32  # at once; others are closed
DRAIN_SECONDS = 3  # that requests have to finish when the server ends
IDLE_MINUTES = 30.0  # without use, after which the server ends
_HOST = "127.0.0.1"
_KEEP_SECONDS = 30  # that a connection may stay open between two requests
_CHECK_SECONDS = 10.0  # between two checks of a connection
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Served(Struct, frozen=True):
    """The parameters of ``serve``. ``opened`` is called with the address once it is ready."""

    link: SocketLink
    options: PageOptions
    opened: Callable[[str], None]
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
    access = PageAccess(host, served.options.monotonic())
    page = PageServer(served.link, access, served.options)
    server = _PageProcess(_server_config(page))

    async def until_signal(signals: AsyncIterable[signal.Signals]) -> None:
        async for _ in signals:
            page.stop.set()

    async def until_unused() -> None:
        idle_seconds = served.idle_minutes * 60
        seconds_left = min(idle_seconds, TOKEN_SECONDS)
        while seconds_left > 0:
            await anyio.sleep(seconds_left)
            seconds_left = page.idle_until(idle_seconds) - served.options.monotonic()
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
        timeout_keep_alive=_KEEP_SECONDS,
        timeout_graceful_shutdown=DRAIN_SECONDS,
        h11_max_incomplete_event_size=HEAD_BYTES,
    )


class _PageProcess(uvicorn.Server):
    """A server without signal handlers: ``_serve`` handles them and ends open streams too."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Install no signal handlers."""
        yield


class _PageConnection(H11Protocol):
    """A connection that is closed if its peer does nothing."""

    _last_check: tuple[Any, int] = (None, 0)  # the request then, and the number of unsent bytes

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the checks, or close the connection if it is too many or another user's."""
        super().connection_made(transport)
        own: tuple[str, int] = transport.get_extra_info("sockname")
        allowed = self.client is not None and is_own_peer(self.client, own)
        if len(self.connections) > CONNECTIONS or not allowed:
            self._abort()
        else:
            self.loop.call_later(_CHECK_SECONDS, self._check)

    def send_400_response(self, _: str) -> None:
        """Answer a request that is no HTTP, with the headers of every answer."""
        lines = [f"{name}: {value}\r\n" for name, value in HEADERS.items()]
        head = ["HTTP/1.1 400 Bad Request\r\n", *lines, "content-length: 0\r\n"]
        self.transport.write("".join([*head, "connection: close\r\n\r\n"]).encode())
        self.transport.close()

    def _check(self) -> None:
        """Close the connection if since the last check it neither sent nor read anything."""
        cycle: Any = self.cycle  # none before the first request
        waiting = self.transport.get_write_buffer_size()
        last_cycle, last_waiting = self._last_check
        is_unread = 0 < last_waiting <= waiting
        is_idle = cycle is last_cycle and (cycle is None or cycle.response_complete)
        # With a timer uvicorn ends it; a peer that sends a head byte by byte stops the timer.
        if is_unread or (is_idle and not waiting and self.timeout_keep_alive_task is None):
            self._abort()
        elif self in self.connections:
            self._last_check = cycle, waiting
            self.loop.call_later(_CHECK_SECONDS, self._check)

    def _abort(self) -> None:
        """Close the connection at once; the kernel drops the unread bytes as well."""
        connection = self.transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()
