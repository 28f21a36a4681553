"""Accept connections, and end them in order; no client can end this loop.

anyio's own ``serve`` ends with the first failed accept or failing connection, so this one is ours:
- An accept that fails because descriptors or memory are short is tried again, each time a little
  later: who connects meanwhile waits. Where memory is short the new connection may be lost, the
  others are not.
- A connection of another user is closed at once, without an answer, and so is one whose peer has
  left already.
- A connection that finds no room (``rpc/hub.py``) gets an error and is closed.
- At the end the open requests of each connection are answered. Peers that have not been accepted
  yet wait in the listening socket, which is the caller's, for the next server.
"""

import asyncio
import errno
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from itertools import count
from types import MappingProxyType

import anyio
from anyio.abc import TaskStatus
from msgspec.structs import replace

from memd.base import limits
from memd.base.values import Caller
from memd.rpc.call import Call, Handler
from memd.rpc.connection import LINGER_SECONDS, PeerConnection, ServerLog, refusal
from memd.rpc.dispatch import Dispatcher, contain
from memd.rpc.framing import Framing, encode
from memd.rpc.hub import Hub
from memd.rpc.peer import is_gone, peer_of

__all__ = ["Hub", "contain", "serve"]

# Nobody waits to be accepted, or the peer has left again.
_PEER_GONE = {errno.EAGAIN, errno.ECONNABORTED, errno.EINTR, errno.EPROTO}
_SHORT = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS}
_ACCEPTED_AT_ONCE = 64  # then the event loop serves other connections
_FIRST_BACK_OFF = 0.01  # seconds until an accept that failed is tried again; doubled each time
_LAST_BACK_OFF = 0.25  # short enough to serve peers within a second once there is room


async def serve(
    listener: socket.socket,
    handlers: Mapping[str, Handler],
    hub: Hub,
    log: ServerLog,
    *,
    uid: int | None = None,
    environ: Mapping[str, str] = MappingProxyType({}),
    ending: anyio.Event | None = None,
    answer_seconds: float = limits.ANSWER_SECONDS,
    task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Serve a listening socket until cancelled; only user ``uid`` may connect (default: our own).

    ``environ`` are the variables of a caller that has not said hello. Cancelling ends every
    connection. Once ``ending`` is set no connection is accepted any more, open requests are
    answered, with an error after ``answer_seconds``, and the function returns. The listener stays
    open: peers that connect meanwhile wait in it for the next server. Raises OSError where the
    listener itself is broken.
    """
    ending = ending or anyio.Event()
    unknown = Caller(0, os.getuid() if uid is None else uid, 0, environment=environ)
    accept = _Acceptor(listener, Dispatcher(handlers, log).answer, hub, log, unknown)
    async with asyncio.TaskGroup() as hub.group:
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(accept.forever)
                task_status.started()
                await ending.wait()
                group.cancel_scope.cancel()
            await _finish_requests(hub, answer_seconds)
        finally:
            for connection in hub.all():
                connection.close()
            with anyio.CancelScope(shield=True):
                while hub.requests:  # what they shield from their cancellation ends first
                    await hub.wait_for_end()


async def _finish_requests(hub: Hub, seconds: float) -> None:
    """End each connection once its requests are answered, with an error after so many seconds."""
    for connection in hub.all():
        connection.end_reading()
    with anyio.move_on_after(seconds):
        await _all_gone(hub)
    for connection in hub.all():
        connection.cancel_requests()
    with anyio.move_on_after(LINGER_SECONDS):
        await _all_gone(hub)


async def _all_gone(hub: Hub) -> None:
    """Wait until no connection is left."""
    while hub.connections():
        await hub.wait_for_end()


class _Acceptor:
    """Makes connections of the peers that wait in a listening socket."""

    def __init__(
        self,
        listener: socket.socket,
        run: Callable[[Call], Awaitable[bytes]],
        hub: Hub,
        log: ServerLog,
        unknown: Caller,
    ) -> None:
        listener.settimeout(0)
        self._listener = listener
        self._run = run
        self._hub = hub
        self._log = log
        self._unknown = unknown  # who connects, before it is known which process it is
        self._numbers = count(1)  # of connections

    async def forever(self) -> None:
        """Accept connections. Raises OSError where the listener is broken."""
        back_off = _FIRST_BACK_OFF
        while True:
            await anyio.wait_readable(self._listener)
            try:
                for _ in range(_ACCEPTED_AT_ONCE):
                    connected, _ = self._listener.accept()
                    back_off = _FIRST_BACK_OFF
                    self._begin(connected)
                continue
            except MemoryError:
                pass
            except OSError as error:
                if error.errno in _PEER_GONE:
                    continue
                if error.errno not in _SHORT:
                    raise
                self._log.note("accept_failed", error=errno.errorcode[error.errno])
            await anyio.sleep(back_off)
            back_off = min(back_off * 2, _LAST_BACK_OFF)

    def _begin(self, connected: socket.socket) -> None:
        """Serve a new connection, or close it: another user's, or one too many."""
        if is_gone(connected):  # as fast as it can, so that who drops connections fills no queue
            connected.close()
            return
        try:
            connected.settimeout(0)
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, limits.KERNEL_BYTES)
            peer = peer_of(connected)
        except OSError:  # a peer that is gone already, on some systems
            connected.close()
            return
        if peer.uid != self._unknown.uid:
            connected.close()
            self._log.note("peer_refused", uid=peer.uid, pid=peer.pid)
            return
        if (full := self._hub.make_room(peer.pid)) is not None:
            error, gives_way = full
            self._log.note("connections_exhausted", limit=error.facts["limit"], gave_way=gives_way)
            if not gives_way:
                with connected, suppress(OSError):
                    connected.send(encode(Framing.LINES, refusal(None, error)))
                return
        caller = replace(self._unknown, connection=next(self._numbers), pid=peer.pid)
        PeerConnection(connected, caller, self._hub, self._run)
