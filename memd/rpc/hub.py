"""All connections: who hears an event, and what each process may take.

The bounds (their numbers are in ``base/limits.py``)
- *Connections*: so many in all, and fewer of one process. Where a new one finds no room, the one
  that has been idle longest is closed for it; where none is idle, the process with the most
  connections loses the one it used least, if the new one's process has fewer. So a process without
  a connection always gets one.
- *Turns*: a frame is decoded and its work begun in a turn, which ends with the work. Few turns run
  at once, and two of one process; a call that waits for something outside (``base/waiting.py``)
  gives its turn back. Processes that wait take turns, and so do the connections of one.
- The next turn begins when all that run have run for ``_PAUSE_SECONDS``: two that calculate share
  one interpreter and only delay each other, but who waits for a disk delays nobody for long.
- *Unread answers*: so many bytes of all connections. Where one more answer does not fit, the
  connection goes that has taken nothing for longest.
"""

import asyncio
from collections import deque
from collections.abc import Collection
from math import inf
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from memd.base import limits
from memd.base.errors import Busy, MemdError
from memd.base.events import Event
from memd.base.values import Caller
from memd.rpc.errors import too_many

_PAUSE_SECONDS = 0.01  # as long as most requests take


class Member(Protocol):
    """What a hub needs of a connection (``rpc/connection.py``)."""

    caller: Caller
    process: "Process"
    last_used: float  # when a frame came, or the peer took an answer
    unread: int  # bytes of answers

    @property
    def is_idle(self) -> bool:
        """Whether it has no subscription, no open request, and no frame that waits."""
        ...

    @property
    def topics(self) -> Collection[str]:
        """The topics with a subscription."""
        ...

    def wants(self, event: Event) -> bool:
        """Return whether the client subscribed to this event."""
        ...

    def send(self, body: bytes) -> None:
        """Send one JSON text; never blocks."""
        ...

    def begin(self, turn: "Turn") -> None:
        """Begin the frame that waits for its turn."""
        ...

    def give_way(self, error: MemdError) -> None:
        """End the connection for a new one."""
        ...

    def end_reading(self) -> None:
        """Read nothing more, and end the connection once its requests are answered."""
        ...

    def cancel_requests(self) -> None:
        """Cancel the open requests because memd ends."""
        ...

    def close(self) -> None:
        """End the connection now."""
        ...


class Process:
    """A process with connections, the turns that it has, and its connections that wait for one."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.connections: set[Member] = set()
        self.turns = 0
        self.waiting: deque[Member] = deque()


class Turn(Struct):
    """The right of a process to work, ``None`` once it has ended; ``began`` on the loop's clock."""

    process: Process | None
    began: float


class Hub:
    """The connections of one server, and the event sink of the daemon. Used on the loop only."""

    def __init__(self) -> None:
        self._processes: dict[int, Process] = {}  # by process id
        self.unread = 0  # bytes that wait in all connections
        self._turns: list[Turn] = []  # that run, in the order in which they began
        self._waiting: dict[Process, None] = {}  # an ordered set of those with waiting connections
        self._timer: asyncio.TimerHandle | None = None  # of the next ``_begin_waiting``
        self.group: asyncio.TaskGroup  # of the requests, while a server runs
        self.requests = 0  # pieces of work under way, of closed connections too
        self.ended = asyncio.Event()  # set when a connection or work has ended; replaced each time

    # Connections

    def add(self, connection: Member) -> Process:
        """Add a connection, and return its process; it gets events once it subscribes."""
        pid = connection.caller.pid
        process = self._processes.get(pid)
        if process is None:
            process = self._processes[pid] = Process(pid)
        process.connections.add(connection)
        return process

    def discard(self, connection: Member) -> None:
        """Remove a connection."""
        process = connection.process
        process.connections.discard(connection)
        if connection in process.waiting:
            process.waiting.remove(connection)
            if not process.waiting:
                del self._waiting[process]
        self._forget(process)
        self.ended.set()

    def _forget(self, process: Process) -> None:
        """Forget a process without connections, once its work has ended."""
        if not process.connections and not process.turns:
            self._processes.pop(process.pid, None)

    def all(self) -> list[Member]:
        """Return all connections."""
        return [each for process in self._processes.values() for each in process.connections]

    def connections(self) -> int:
        """Return how many peers are connected."""
        return sum(len(process.connections) for process in self._processes.values())

    def make_room(self, pid: int) -> tuple[Busy, bool] | None:
        """Close a connection if a new one of the process ``pid`` needs its place.

        Return ``None`` if there was room, else the error and whether a connection was closed.
        """
        own = self._processes.get(pid) or Process(pid)
        if len(own.connections) >= limits.CONNECTIONS_PER_PROCESS:
            error = too_many("connections of one process", limits.CONNECTIONS_PER_PROCESS)
            candidates = list(own.connections)
        elif self.connections() >= limits.CONNECTIONS:
            error = too_many("connections", limits.CONNECTIONS)
            candidates = self.all()
        else:
            return None

        def closing_order(each: Member) -> tuple[bool, int, float]:
            """Return the sort key of a connection: the smallest key is closed first."""
            count = 0 if each.is_idle else len(each.process.connections)
            return not each.is_idle, -count, each.last_used

        first = min(candidates, key=closing_order)
        gives_way = first.is_idle or len(first.process.connections) > len(own.connections)
        if gives_way:
            first.give_way(error)
        return error, gives_way

    async def wait_for_end(self) -> None:
        """Wait until a connection or a request has ended."""
        self.ended = asyncio.Event()
        await self.ended.wait()

    # Turns and work

    def begin_turn(self, connection: Member) -> None:
        """Let a connection begin its frame, now or when its turn comes."""
        process = connection.process
        if not self._waiting and not self._wait_seconds(process):
            self._begin(connection)
            return
        process.waiting.append(connection)
        self._waiting[process] = None
        self._begin_waiting_after(0.0)

    def end_turn(self, turn: Turn) -> None:
        """Let the next frame begin; a turn that has ended already does nothing."""
        process, turn.process = turn.process, None
        if process is None:
            return
        self._turns = [each for each in self._turns if each is not turn]
        process.turns -= 1
        if not process.connections:
            self._forget(process)
        if self._waiting:
            self._begin_waiting_after(0.0)

    def _begin(self, connection: Member) -> None:
        """Begin the frame of a connection in a new turn."""
        process = connection.process
        turn = Turn(process, asyncio.get_running_loop().time())
        self._turns.append(turn)
        process.turns += 1
        connection.begin(turn)

    def _wait_seconds(self, process: Process) -> float:
        """Return 0 if a process may begin a turn now, the rest of its pause, or infinity."""
        if process.turns >= limits.TURNS_PER_PROCESS or len(self._turns) >= limits.TURNS:
            return inf
        if not self._turns:
            return 0
        now = asyncio.get_running_loop().time()
        return max(0.0, self._turns[-1].began + _PAUSE_SECONDS - now)

    def _begin_waiting_after(self, seconds: float) -> None:
        """Have ``_begin_waiting`` called after what is ready now, and so many seconds."""
        loop = asyncio.get_running_loop()
        at = loop.time() + seconds
        if self._timer is not None:
            if self._timer.when() <= at:
                return
            self._timer.cancel()
        self._timer = loop.call_at(at, self._begin_waiting)

    def _begin_waiting(self) -> None:
        """Begin a turn of each process that waits and may, those first that wait longest."""
        self._timer = None
        for process in list(self._waiting):
            # An answer in another's turn may have closed the connections of this one.
            if not process.waiting or self._wait_seconds(process):
                continue
            connection = process.waiting.popleft()
            del self._waiting[process]
            if process.waiting:
                self._waiting[process] = None  # behind the others
            self._begin(connection)
        pause = min(map(self._wait_seconds, self._waiting), default=inf)
        if pause < inf:
            self._begin_waiting_after(pause)

    # Events and unread answers

    def make_unread_room(self, size: int) -> None:
        """Drop connections until ``size`` more bytes of answers fit, the most silent one first."""
        while self.unread and self.unread + size > limits.UNREAD_BYTES:
            silent = [each for each in self.all() if each.unread]
            min(silent, key=lambda each: each.last_used).close()

    def listening(self, topic: str) -> bool:
        """Return whether any connection subscribed to a topic."""
        return any(topic in each.topics for each in self.all())

    def publish(self, event: Event) -> None:
        """Send one event to all connections that subscribed to it; never waits.

        An event whose params are not JSON is a bug of the publisher and is dropped, since
        publishing must never fail the work that the event is about.
        """
        listeners = [each for each in self.all() if each.wants(event)]
        if not listeners:
            return
        params: dict[str, Any] = {"directory": event.directory, **event.params}
        message = {"jsonrpc": "2.0", "method": event.topic, "params": params}
        try:
            body = msgspec.json.encode(message)
        except (TypeError, ValueError, RecursionError, MemoryError):
            return
        for listener in listeners:
            listener.send(body)
