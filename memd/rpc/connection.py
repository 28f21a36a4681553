"""The connection to a client, and one call of it, as handlers use them.

A connection has the client's state and a queue of bytes to send; it awaits nothing.
``rpc/session.py`` sends and receives the bytes. Everything here is called on the event loop only.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, Protocol

import msgspec
from msgspec import Struct, field

from memd.base.agents import SystemProcess
from memd.base.events import Event
from memd.base.values import Caller
from memd.rpc.conversation import RequestId, Token
from memd.rpc.framing import Framing, encode
from memd.rpc.outbox import Outbox, UnreadTotal

EVERY_DIRECTORY = None  # in place of a memory directory in a subscription


class Connection:
    """A connection to one peer. ``caller`` says who it is; ``hello`` adds what the client tells.

    ``wake`` is called when there is something to send, ``drop`` when the peer reads too slowly:
    then nothing more is queued and the connection ends. ``unread`` counts the unsent bytes of all
    connections.
    """

    def __init__(
        self,
        caller: Caller,
        wake: Callable[[], None],
        drop: Callable[[], None],
        unread: UnreadTotal | None = None,
    ) -> None:
        self.caller = caller
        # The processes above the caller, and whether one of them is an assistant's program. Who
        # started a process does not change; both are looked up when they are first needed.
        self.ancestors: tuple[SystemProcess, ...] | None = None
        self.below_assistant = False
        self.framing = Framing.UNKNOWN
        self.outbox = Outbox(unread or UnreadTotal(), wake, drop)
        self._topics: dict[str, set[str | None]] = {}  # the subscribed directories of each topic

    def subscribe(self, topics: Collection[str], directory: str | None = EVERY_DIRECTORY) -> None:
        """Send events of these topics from now on, of one memory directory or of all."""
        for topic in topics:
            self._topics.setdefault(topic, set()).add(directory)

    @property
    def topics(self) -> frozenset[str]:
        """The topics with a subscription."""
        return frozenset(self._topics)

    @property
    def subscribed(self) -> bool:
        """Whether there is any subscription; cheaper than ``topics``."""
        return bool(self._topics)

    def wants(self, event: Event) -> bool:
        """Return whether the client subscribed to this event."""
        directories = self._topics.get(event.topic, set())
        return EVERY_DIRECTORY in directories or event.directory in directories

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Queue a notification; never blocks. Raises TypeError for values that are not JSON."""
        self.send(msgspec.json.encode({"jsonrpc": "2.0", "method": method, "params": params}))

    def send(self, body: bytes) -> None:
        """Queue one JSON text in the peer's framing; a peer that cannot keep up is dropped."""
        try:
            if not self.outbox.dropped:
                self.outbox.put(encode(self.framing, body))
        except MemoryError:  # the peer would wait forever for the lost answer
            self.outbox.drop()


class Call(Struct, frozen=True):
    """One request: its connection, its id, the token for its progress, and its ``_meta``.

    What a handler adds to ``afterwards`` is called after the answer was queued to be sent.
    """

    connection: Connection
    request_id: RequestId = None
    token: Token | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)
    afterwards: list[Callable[[], Awaitable[None]]] = field(default_factory=list)

    @property
    def caller(self) -> Caller:
        """The client and process that sent the request."""
        return self.connection.caller

    async def progress(self, value: Mapping[str, Any]) -> None:
        """Report progress on the token that the client gave; without one this does nothing."""
        if self.token is not None:
            self.connection.notify(*self.token.notification(value))


Handler = Callable[[Call, dict[str, Any]], Awaitable[Any]]


class ServerLog(Protocol):
    """The server's log; the daemon implements it."""

    def unexpected(self, error: BaseException, **facts: str) -> str:
        """Log an exception with its traceback and return the id of the log entry."""
        ...

    def note(self, event: str, **facts: str | float | bool | None) -> None:
        """Log an event with facts, but never with text that a client sent."""
        ...
