"""A call of a method, and the client behind it, as those who answer see them.

Everything else of the socket stays in this room.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

import anyio
import msgspec
from msgspec import Struct, field

from memd.base.agents import SystemProcess
from memd.base.events import Event
from memd.base.values import Caller
from memd.rpc.messages import RpcRequest

EVERY_DIRECTORY = None  # in place of a memory directory in a subscription


class Connection:
    """A client; ``caller`` says who it is, ``hello`` adds what the client tells.

    This class is a client that hears nothing: the daemon itself, which calls methods too.
    """

    is_open = True
    is_ending = False  # because the daemon ends

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        # The processes above the caller, and whether one of them is an assistant's program. Who
        # started a process does not change; both are looked up when they are first needed.
        self.ancestors: tuple[SystemProcess, ...] | None = None
        self.below_assistant = False
        self._topics: dict[str, set[str | None]] = {}  # the subscribed directories of each topic

    def subscribe(self, topics: Collection[str], directory: str | None = EVERY_DIRECTORY) -> None:
        """Send events of these topics from now on, of one memory directory or of all."""
        for topic in topics:
            self._topics.setdefault(topic, set()).add(directory)

    @property
    def topics(self) -> Collection[str]:
        """The topics with a subscription."""
        return self._topics.keys()

    def wants(self, event: Event) -> bool:
        """Return whether the client subscribed to this event."""
        directories = self._topics.get(event.topic)
        return directories is not None and (
            EVERY_DIRECTORY in directories or event.directory in directories
        )

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification; never blocks. Raises TypeError for values that are not JSON."""
        self.send(msgspec.json.encode({"jsonrpc": "2.0", "method": method, "params": params}))

    def send(self, body: bytes) -> None:
        """Send one JSON text, now or when the peer reads on; never blocks."""


class Call(Struct, frozen=True, eq=False):
    """One call of a method: the client, and its request, ``None`` for calls of the daemon itself.

    Who cancels ``scope`` cancels the request. What a method adds to ``afterwards`` is called after
    the answer was sent or queued.
    """

    connection: Connection
    request: RpcRequest | None = None
    afterwards: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)

    @property
    def caller(self) -> Caller:
        """The client and process that sent the request."""
        return self.connection.caller

    @property
    def meta(self) -> Mapping[str, Any]:
        """What the parameters of the request had as ``_meta``."""
        return self.request.meta if self.request is not None else {}

    async def progress(self, value: Mapping[str, Any]) -> None:
        """Report progress on the token that the client gave; without one this does nothing."""
        if self.request is not None and self.request.token is not None:
            self.connection.notify(*self.request.token.notification(value))


Handler = Callable[[Call, dict[str, Any]], Awaitable[Any]]
