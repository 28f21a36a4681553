"""Notify the client when memories change.

A thread of its own listens to the daemon once a client subscribes. It starts no daemon; where none
runs it tries again later, and then notifies the client, since memories may have changed meanwhile.
"""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from memd.client.launch import connect
from memd.core.errors import MemdError
from memd.core.events import MEMORY_CHANGED
from memd.core.places import Places
from memd.mcp.protocol import SUBSCRIPTION, Id

Send = Callable[[Mapping[str, Any]], None]
_RETRY_SECONDS = 5.0
_LISTEN_SECONDS = 30.0  # after which the working directory is checked for a change
_MAX_LISTENERS = 100


class ChangeFeed:
    """Notifies listeners of changes.

    A listener is a subscription of the client. The key of one in the modern era is the id of its
    request; ``None`` is the key of the only one that the handshake era has. ``directory`` returns
    the working directory, ``send`` writes a message to the client.
    """

    def __init__(
        self,
        places: Places,
        environ: Mapping[str, str],
        directory: Callable[[], str],
        send: Send,
    ) -> None:
        self._places = places
        self._environ = environ
        self._directory = directory  # returns the working directory
        self._send = send
        self._listeners: set[Id | None] = set()  # their keys
        self._thread = threading.Thread(target=self._listen, daemon=True)

    def listen(self, key: Id, topics: Any) -> None:
        """Acknowledge a modern subscription, and add a listener if it wants list changes.

        ``topics`` is what the client sent as the notifications that it wants.
        """
        wants_lists = isinstance(topics, dict) and topics.get("resourcesListChanged") is True
        served_topics = {"resourcesListChanged": True} if wants_lists else {}
        self._send(_notification("subscriptions/acknowledged", key, notifications=served_topics))
        if wants_lists:
            self.add(key)

    def add(self, key: Id | None) -> None:
        """Add a listener; the first one starts the thread."""
        if len(self._listeners) < _MAX_LISTENERS:
            self._listeners.add(key)
        if not self._thread.is_alive():
            self._thread.start()

    def remove(self, key: Id) -> None:
        """Remove the listener with this key, if there is one."""
        self._listeners.discard(key)

    def close(self) -> None:
        """Send the modern listeners the result that ends their requests."""
        for key in self._listeners - {None}:  # the handshake era has no open request
            result = {"resultType": "complete", "_meta": {SUBSCRIPTION: key}}
            self._send({"jsonrpc": "2.0", "id": key, "result": result})

    def _listen(self) -> None:
        """Forward changes for ever; after a lost connection try again every five seconds."""
        may_have_missed = False
        while True:
            with suppress(MemdError):
                self._forward(notify_first=may_have_missed)
            may_have_missed = True  # changes may have happened while there was no connection
            time.sleep(_RETRY_SECONDS)

    def _forward(self, *, notify_first: bool) -> None:
        """Connect and forward changes until the working directory changes. Raises MemdError.

        With ``notify_first`` the listeners are also notified at once.
        """
        with connect(self._places, self._environ, name="mcp", start=False) as client:
            directory = self._directory()
            client.call("subscribe", {"topics": [MEMORY_CHANGED], "cwd": directory})
            if notify_first:
                self._notify_all()
            while self._directory() == directory:
                for _ in client.notifications(_LISTEN_SECONDS):
                    self._notify_all()

    def _notify_all(self) -> None:
        """Notify each listener that the list of resources changed."""
        for key in list(self._listeners):
            self._send(_notification("resources/list_changed", key))


def _notification(name: str, key: Id | None, **params: Any) -> dict[str, Any]:
    """Return a notification in the form that the listener with this key expects."""
    meta = {} if key is None else {"_meta": {SUBSCRIPTION: key}}
    return {"jsonrpc": "2.0", "method": f"notifications/{name}", "params": {**params, **meta}}
