"""What all connections share: events to those that subscribed, and what they asked."""

from typing import Any

import msgspec

from memd.core.events import Event
from memd.core.histogram import RequestTimes
from memd.rpc.connection import Connection
from memd.rpc.outbox import UnreadTotal


class Hub:
    """The event sink of the daemon (``core/events.EventSink``).

    A connection that cannot keep up is dropped by its own bounded queue, so publishing never
    waits; ``unread`` bounds the queues of all together. Params that are no JSON are a bug of the
    publisher: the event is left out, since an event must never fail what it tells of. ``times``
    has how long their requests took.
    """

    def __init__(self) -> None:
        self._connections: set[Connection] = set()
        self.unread = UnreadTotal()
        self.times = RequestTimes()

    def add(self, connection: Connection) -> None:
        """Take a connection in; it hears nothing before it subscribes."""
        self._connections.add(connection)

    def discard(self, connection: Connection) -> None:
        """Forget a connection."""
        self._connections.discard(connection)

    def connections(self) -> int:
        """Return how many peers are connected."""
        return len(self._connections)

    def listening(self, topic: str) -> bool:
        """Return whether anybody subscribed to a topic, of one directory or of all."""
        return any(topic in each.topics for each in self._connections)

    def publish(self, event: Event) -> None:
        """Queue one event for everyone who subscribed to it; on the event loop only."""
        listeners = [each for each in self._connections if each.wants(event)]
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
