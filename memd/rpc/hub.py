"""The state that all connections share: the subscribers of events."""

from typing import Any

import msgspec

from memd.base.events import Event
from memd.rpc.connection import Connection
from memd.rpc.outbox import UnreadTotal


class Hub:
    """The event sink of the daemon (``base/events.EventSink``).

    A connection that cannot keep up is dropped by its own bounded queue, so publishing never
    waits; ``unread`` bounds the queues of all connections together. An event whose params are not
    JSON is a bug of the publisher and is dropped, since publishing must never fail the work that
    the event is about.
    """

    def __init__(self) -> None:
        self._connections: set[Connection] = set()
        self.unread = UnreadTotal()  # the bytes that wait in the queues of all connections

    def add(self, connection: Connection) -> None:
        """Add a connection; it gets events once it subscribes."""
        self._connections.add(connection)

    def discard(self, connection: Connection) -> None:
        """Remove a connection."""
        self._connections.discard(connection)

    def connections(self) -> int:
        """Return how many peers are connected."""
        return len(self._connections)

    def listening(self, topic: str) -> bool:
        """Return whether any connection subscribed to a topic."""
        return any(topic in each.topics for each in self._connections)

    def publish(self, event: Event) -> None:
        """Queue one event for all connections that subscribed to it; on the event loop only."""
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
