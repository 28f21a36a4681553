"""Listen for memd-team: its address, the limits of a connection, and an orderly end.

Rules of this file
- It listens only on this machine; TLS is a proxy's.
- A connection that sends no request, or does not read its answers, ends. At most ``CONNECTIONS``
  are served at once.
- After SIGTERM no connection is accepted, and running requests have ``DRAIN_SECONDS`` to end.
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

from memd.base.addresses import is_loopback
from memd.base.errors import Refused

CONNECTIONS = 512
DRAIN_SECONDS = 10
_IDLE_SECONDS = 30  # an idle connection is closed after this time
_CHECK_SECONDS = 15.0  # between two checks of a connection
_BACKLOG = 512  # connections that wait to be accepted
_SOCKET_MODE = 0o660
_PLAIN = "it listens only on this machine; a reverse proxy with TLS serves others"


def _cannot_listen(address: str, cause: str) -> Refused:
    return Refused(f"{address} cannot be used: {cause}", address=address)


class ListenAddress(Struct, frozen=True):
    """The address of the server: ``host`` and ``port``, or ``path`` of a Unix socket."""

    host: str = "127.0.0.1"
    port: int = 8790
    path: str = ""


def listen(place: ListenAddress) -> tuple[socket.socket, str]:
    """Return a listening socket and its address. Raises Refused."""
    host = f"[{place.host}]" if ":" in place.host else place.host
    shown = place.path or f"{host}:{place.port}"
    if not (place.path or is_loopback(place.host)):
        raise _cannot_listen(shown, _PLAIN)
    try:
        if place.path:
            return _unix(place.path), f"unix:{place.path}"
        family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
        listener = socket.create_server((place.host, place.port), family=family, backlog=_BACKLOG)
        # Connections inherit it. Without it, each answer on an open connection waits for 40 ms.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError as error:
        raise _cannot_listen(shown, error.strerror or type(error).__name__) from None
    return listener, f"http://{host}:{listener.getsockname()[1]}"


def configured(application: Any) -> uvicorn.Server:
    """Return a uvicorn server of an application that writes no log of its own."""
    config = uvicorn.Config(
        application,
        http=_Connection,
        ws="none",
        loop="asyncio",
        interface="asgi3",
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=DRAIN_SECONDS,
    )
    return uvicorn.Server(config)


def serve(application: Any, place: ListenAddress, started: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; ``started`` gets the address. Raises Refused."""
    server = configured(application)
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
    """A connection that is closed if its peer sends or reads nothing."""

    # At the last check: the request, and the bytes of answers that were not sent yet.
    _checked: tuple[Any, int] = (None, 0)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to check the connection; close it at once if there are too many."""
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS:
            transport.abort()
        else:
            self.loop.call_later(_CHECK_SECONDS, self._check)

    def _check(self) -> None:
        """Close the connection if since the last check it began no request and read nothing."""
        request: Any = self.cycle  # ``None`` before the first request
        unsent_bytes = self.transport.get_write_buffer_size()
        last_request, last_unsent_bytes = self._checked
        reads_nothing = 0 < last_unsent_bytes <= unsent_bytes
        is_same_request = request is last_request
        is_idle = is_same_request and (request is None or request.response_complete)
        # uvicorn's timer closes idle connections, but each byte of a request stops that timer.
        has_timer = self.timeout_keep_alive_task is not None
        if reads_nothing or (is_idle and not unsent_bytes and not has_timer):
            # Without lingering, so that the kernel drops the unread bytes too.
            connection = self.transport.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.transport.abort()
        elif self in self.connections:
            self._checked = request, unsent_bytes
            self.loop.call_later(_CHECK_SECONDS, self._check)


def _unix(path: str) -> socket.socket:
    """Return a listening Unix socket; a socket file that no server uses any more is replaced."""
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
