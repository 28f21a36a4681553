"""Listen for memd-team: its address, the limits of a connection, and an orderly end.

Rules of this file
- Without TLS it listens on this machine alone, unless it believes a proxy alone.
- A connection that sends no request, or does not read its answers, ends; more than
  ``CONNECTIONS`` at once are not served.
- After SIGTERM no connection is accepted, and what was begun has ``DRAIN_SECONDS``.
"""

import asyncio
import os
import signal
import socket
import stat
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import uvicorn
from msgspec import Struct
from uvicorn.protocols.http.h11_impl import H11Protocol

from memd.core.addresses import is_loopback
from memd.core.errors import MemdError
from memd.server.admission import Network

CONNECTIONS = 512
DRAIN_SECONDS = 10
_IDLE_SECONDS = 30
_CHECK_SECONDS = 15.0
_BACKLOG = 512
_SOCKET_MODE = 0o660
_NO_CERTIFICATE = "it is no certificate with its key"
_PLAIN = "beyond this machine it needs --tls-cert or --behind-proxy"


class WrongListenError(MemdError):
    """It cannot listen there."""

    code = 1065
    kind = "cannot_listen"
    exit_status = 1

    def __init__(self, address: str, cause: str) -> None:
        super().__init__(f"{address} cannot be used: {cause}", address=address)


class ListenAddress(Struct, frozen=True):
    """Where the server listens: ``host`` and ``port``, or ``path`` of a Unix socket."""

    host: str = "127.0.0.1"
    port: int = 8790
    path: str = ""
    certificate: str = ""
    key: str = ""
    proxies: tuple[Network, ...] = ()

    @property
    def local(self) -> bool:
        """Whether only this machine reaches it."""
        return bool(self.path) or is_loopback(self.host)


def listen(place: ListenAddress) -> tuple[socket.socket, str]:
    """Return a listening socket and its address. Raises WrongListenError."""
    host = f"[{place.host}]" if ":" in place.host else place.host
    shown = place.path or f"{host}:{place.port}"
    if not (place.local or place.certificate or place.proxies):
        raise WrongListenError(shown, _PLAIN)
    try:
        if place.path:
            return _unix(place.path), f"unix:{place.path}"
        family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
        listener = socket.create_server((place.host, place.port), family=family, backlog=_BACKLOG)
        # Connections have it from here; without it each answer on an open one waits for 40 ms.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError as error:
        raise WrongListenError(shown, error.strerror or type(error).__name__) from None
    scheme = "https" if place.certificate else "http"
    return listener, f"{scheme}://{host}:{listener.getsockname()[1]}"


def configured(application: Any, place: ListenAddress) -> uvicorn.Server:
    """Return a server of an application, which logs nothing by itself."""
    config = uvicorn.Config(
        application,
        http=_Connection,
        ws="none",
        loop="asyncio",
        interface="asgi3",
        lifespan="on",
        log_config=None,
        log_level="critical",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=DRAIN_SECONDS,
        ssl_certfile=place.certificate or None,
        ssl_keyfile=place.key or None,
    )
    return uvicorn.Server(config)


def serve(application: Any, place: ListenAddress, started: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; ``started`` is given the address. Raises what listen does."""
    server = configured(application, place)
    try:
        server.config.load()
    except OSError as error:  # those of ssl, too
        raise WrongListenError(place.certificate, error.strerror or _NO_CERTIFICATE) from None
    listener, address = listen(place)
    # uvicorn sends the process its signal again once it has drained: that is the regular end.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    started(address)
    try:
        server.run(sockets=[listener])
    finally:
        if place.path:
            with suppress(OSError):
                os.unlink(place.path)


class _Connection(H11Protocol):
    """A connection that ends where its peer does nothing."""

    _checked: tuple[Any, int] = (None, 0)  # its last request, what was not sent yet

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to check it; close it at once where there are too many."""
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS:
            transport.abort()
        else:
            self.loop.call_later(_CHECK_SECONDS, self._check)

    def _check(self) -> None:
        """End the connection if it neither began a request nor took what it was sent."""
        cycle: Any = self.cycle  # none before the first request
        waiting = self.transport.get_write_buffer_size()
        checked, waited = self._checked
        unread = 0 < waited <= waiting
        idle = cycle is checked and (cycle is None or cycle.response_complete)
        # With a timer uvicorn ends it; a peer that sends a head byte by byte stops the timer.
        if unread or (idle and not waiting and self.timeout_keep_alive_task is None):
            # Without lingering: the kernel, too, forgets what was not read.
            connection = self.transport.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.transport.abort()
        elif self in self.connections:
            self._checked = cycle, waiting
            self.loop.call_later(_CHECK_SECONDS, self._check)


def _unix(path: str) -> socket.socket:
    """Return a listening Unix socket, in the place of one that nobody serves any more."""
    with suppress(OSError):
        if stat.S_ISSOCK(os.lstat(path).st_mode) and not _is_served(path):
            os.unlink(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(path)
        os.chmod(path, _SOCKET_MODE)
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def _is_served(path: str) -> bool:
    """Return whether a server listens at the Unix socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(1.0)
        try:
            client.connect(path)
        except ConnectionRefusedError:
            return False
        except OSError:
            return True
    return True
