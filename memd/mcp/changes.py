"""What clients are told of without asking: that memories changed, by whomever.

A thread of its own listens to the daemon once a client wants to know. It starts no daemon; where
none runs it tries again later, and tells then that memories may have changed.
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
_LISTEN_SECONDS = 30.0  # then the working directory is looked at again
_MOST = 100  # listeners


class ChangeFeed:
    """Tells listeners of changes. The key of a modern listener is the id of its request.

    ``None`` is the handshake era's one. ``directory`` gives the working directory.
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
        self._directory = directory
        self._send = send
        self._listeners: set[Id | None] = set()
        self._thread = threading.Thread(target=self._listen, daemon=True)

    def listen(self, key: Id, wanted: Any) -> None:
        """Begin a modern listener, with the answer that says what it will hear of."""
        lists = isinstance(wanted, dict) and wanted.get("resourcesListChanged") is True
        honored = {"resourcesListChanged": True} if lists else {}
        self._send(_notice("subscriptions/acknowledged", key, notifications=honored))
        if lists:
            self.add(key)

    def add(self, key: Id | None) -> None:
        """Begin a listener; the first one begins the thread."""
        if len(self._listeners) < _MOST:
            self._listeners.add(key)
        if not self._thread.is_alive():
            self._thread.start()

    def remove(self, key: Id) -> None:
        """End a listener, if there is one of that key."""
        self._listeners.discard(key)

    def close(self) -> None:
        """End the modern listeners with the result that tells them so."""
        for key in self._listeners - {None}:
            result = {"resultType": "complete", "_meta": {SUBSCRIPTION: key}}
            self._send({"jsonrpc": "2.0", "id": key, "result": result})

    def _listen(self) -> None:
        missed = False
        while True:
            with suppress(MemdError):
                self._connected(missed=missed)
            missed = True
            time.sleep(_RETRY_SECONDS)

    def _connected(self, *, missed: bool) -> None:
        """Tell of changes until the daemon or the directory is another one. Raises MemdError."""
        with connect(self._places, self._environ, name="mcp", start=False) as client:
            directory = self._directory()
            client.call("subscribe", {"topics": [MEMORY_CHANGED], "cwd": directory})
            if missed:
                self._tell()
            while self._directory() == directory:
                for _ in client.notifications(_LISTEN_SECONDS):
                    self._tell()

    def _tell(self) -> None:
        for key in list(self._listeners):
            self._send(_notice("resources/list_changed", key))


def _notice(name: str, key: Id | None, **params: Any) -> dict[str, Any]:
    meta = {} if key is None else {"_meta": {SUBSCRIPTION: key}}
    return {"jsonrpc": "2.0", "method": f"notifications/{name}", "params": {**params, **meta}}
