"""Accept connections and serve each of them; no client can end this loop.

anyio's own ``serve`` ends with the first failed accept or failing connection, so this one is ours:
- An accept that fails because descriptors or memory are short is tried again, each time a little
  later: who connects meanwhile waits. Where memory is short the new connection may be lost, the
  others are not.
- A connection of another user is closed at once, without an answer.
- Beyond ``limits.CONNECTIONS``, or beyond ``limits.CONNECTIONS_PER_PROCESS`` of one process, the
  connection that has been idle longest is closed for the new one. Where none is idle, the process
  with the most connections loses the one it used least, if the new one's process has fewer; else
  the new one gets an error and is closed. So a process without a connection always gets one.
- At the end the open requests of each connection are answered. Peers that have not been accepted
  yet wait in the listening socket, which is the caller's, for the next server.
- A failure in one connection does not affect others (``dispatch.contain``).
"""

import errno
import os
import socket
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from itertools import count

import anyio
from anyio.abc import TaskGroup, TaskStatus

from memd.base import limits
from memd.base.clock import Clock
from memd.base.errors import Busy, MemdError
from memd.base.values import Caller
from memd.rpc.connection import Handler, ServerLog
from memd.rpc.dispatch import Dispatcher, contain, refusal
from memd.rpc.errors import too_many
from memd.rpc.framing import Framing, encode
from memd.rpc.hub import Hub
from memd.rpc.peer import Peer, peer_of
from memd.rpc.session import LINGER_SECONDS, PeerSession
from memd.rpc.turns import Turns

__all__ = ["Hub", "contain", "serve"]

# Nobody waits to be accepted, or the peer has left again.
_PEER_GONE = {errno.EAGAIN, errno.ECONNABORTED, errno.EINTR, errno.EPROTO}
_SHORT = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS}
_ACCEPTED_AT_ONCE = 16  # then the event loop serves other connections
_FIRST_BACK_OFF = 0.01  # seconds until an accept that failed is tried again; doubled each time
_LAST_BACK_OFF = 0.25  # short enough to serve peers within a second once there is room


async def serve(
    listener: socket.socket,
    handlers: Mapping[str, Handler],
    hub: Hub,
    log: ServerLog,
    *,
    clock: Clock,
    uid: int | None = None,
    ending: anyio.Event | None = None,
    answer_seconds: float = limits.ANSWER_SECONDS,
    task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Serve a listening socket until cancelled; only user ``uid`` may connect (default: our own).

    Cancelling ends every connection; answers that are queued are still sent. Once ``ending`` is set
    no connection is accepted any more, open requests are answered, with an error after
    ``answer_seconds``, and the function returns. The listener stays open: peers that connect
    meanwhile wait in it for the next server. Raises OSError where the listener itself is broken.
    """
    ending = ending or anyio.Event()
    dispatcher = Dispatcher(handlers, log)
    server = _Server(dispatcher, hub, log, clock, os.getuid() if uid is None else uid)
    listener.settimeout(0)
    async with anyio.create_task_group() as group:
        group.start_soon(server.turns.watch)
        accepting: anyio.CancelScope = await group.start(server.accept, listener, group)
        task_status.started()
        await ending.wait()
        accepting.cancel()
        await server.finish_requests(answer_seconds)
        group.cancel_scope.cancel()


class _Server:
    """The state of the accept loop."""

    def __init__(
        self, dispatcher: Dispatcher, hub: Hub, log: ServerLog, clock: Clock, uid: int
    ) -> None:
        self._dispatcher = dispatcher
        self._hub = hub
        self._log = log
        self._clock = clock
        self._uid = uid
        self._numbers = count(1)  # of connections
        self.turns = Turns(clock)
        self._sessions: dict[PeerSession, int] = {}  # with the id of the peer's process
        self._session_ended = anyio.Event()  # replaced for each wait

    async def accept(
        self,
        listener: socket.socket,
        group: TaskGroup,
        *,
        task_status: TaskStatus[anyio.CancelScope],
    ) -> None:
        """Accept connections until the scope passed to ``task_status`` is cancelled."""
        with anyio.CancelScope() as scope:
            task_status.started(scope)
            await self._accept(listener, group)

    async def finish_requests(self, seconds: float) -> None:
        """End each connection once its requests are answered.

        Requests that are open after ``seconds`` are answered with an error.
        """
        for session in self._sessions:
            session.end_reading()
        # Not the server's clock, which in tests may stand still.
        with anyio.move_on_after(seconds):
            await self._all_gone()
        for session in self._sessions:
            session.cancel_requests()
        with anyio.move_on_after(LINGER_SECONDS):
            await self._all_gone()

    async def _all_gone(self) -> None:
        """Wait until no connection is served."""
        while self._sessions:
            self._session_ended = anyio.Event()
            await self._session_ended.wait()

    async def _accept(self, listener: socket.socket, group: TaskGroup) -> None:
        """Accept connections forever. Raises OSError where the listener is broken."""
        back_off = _FIRST_BACK_OFF
        while True:
            await anyio.wait_readable(listener)
            try:
                for _ in range(_ACCEPTED_AT_ONCE):
                    connected, _ = listener.accept()
                    back_off = _FIRST_BACK_OFF
                    self._start_session(connected, group)
            except MemoryError:
                await self._clock.sleep(back_off)
                back_off = min(back_off * 2, _LAST_BACK_OFF)
            except OSError as error:
                if error.errno in _PEER_GONE:
                    continue
                if error.errno not in _SHORT:
                    raise
                self._log.note("accept_failed", error=errno.errorcode[error.errno])
                await self._clock.sleep(back_off)
                back_off = min(back_off * 2, _LAST_BACK_OFF)

    def _start_session(self, connected: socket.socket, group: TaskGroup) -> None:
        """Start a session for a connection, or close it: another user's, or one too many."""
        peer = self._check_peer(connected)
        if peer is None:
            return
        busy_error = self._make_room(peer.pid)
        if busy_error is not None:
            _refuse(connected, busy_error)
            return
        caller = Caller(connection=next(self._numbers), uid=peer.uid, pid=peer.pid)
        session = PeerSession(
            connected,
            caller,
            dispatcher=self._dispatcher,
            hub=self._hub,
            turns=self.turns,
            clock=self._clock,
        )
        group.start_soon(self._serve_one, connected, session)
        self._sessions[session] = peer.pid

    def _check_peer(self, connected: socket.socket) -> Peer | None:
        """Prepare a new connection and return its peer, if that is the user whom we serve.

        Return ``None`` after closing the connection of another user, or of a peer that is gone.
        """
        try:
            connected.settimeout(0)
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, limits.KERNEL_BYTES)
            peer = peer_of(connected)
        except OSError:  # a peer that is gone already, on some systems
            connected.close()
            return None
        if peer.uid == self._uid:
            return peer
        connected.close()
        self._log.note("peer_refused", uid=peer.uid, pid=peer.pid)
        return None

    async def _serve_one(self, connected: socket.socket, session: PeerSession) -> None:
        """Serve one connection to its end, and close it."""
        try:
            await contain(self._log, session.run)
        finally:
            connected.close()
            self._sessions.pop(session, None)
            self._session_ended.set()

    def _make_room(self, pid: int) -> Busy | None:
        """Close a connection if a new one of the process ``pid`` needs its place.

        The connection that has been idle longest is closed. If none is idle, one of the process
        with most connections is, if that has more than ``pid``. Return ``None`` if there is room
        now, else the error for the new connection.
        """
        owners = {
            session: owner for session, owner in self._sessions.items() if not session.is_over
        }
        counts = Counter(owners.values())  # of connections, by process
        if counts[pid] >= limits.CONNECTIONS_PER_PROCESS:
            busy_error = too_many("connections of one process", limits.CONNECTIONS_PER_PROCESS)
            candidates = [session for session, owner in owners.items() if owner == pid]
        elif len(owners) >= limits.CONNECTIONS:
            busy_error = too_many("connections", limits.CONNECTIONS)
            candidates = list(owners)
        else:
            return None

        def closing_order(session: PeerSession) -> tuple[bool, int, float]:
            """Return the sort key of a session: the smallest key is closed first."""
            is_busy = session.idle_since is None
            connections = counts[owners[session]]
            return is_busy, (-connections if is_busy else 0), session.quiet_since

        first = min(candidates, key=closing_order)
        gives_way = first.idle_since is not None or counts[owners[first]] > counts[pid]
        self._log.note("connections_exhausted", limit=busy_error.facts["limit"], gave_way=gives_way)
        if not gives_way:
            return busy_error
        first.give_way(busy_error)
        return None


def _refuse(connected: socket.socket, error: MemdError) -> None:
    """Send an error and close the connection."""
    with connected, suppress(OSError):
        connected.send(encode(Framing.LINES, refusal(None, error)))
