"""A connection of an object that its program never closes."""

import weakref
from collections.abc import Callable
from typing import Any

from memd.client.blocking import Client


class HeldClient:
    """A connection that is made at its first use, and closed with this at the latest."""

    def __init__(self) -> None:
        self._client: Client | None = None
        self._finalizer: weakref.finalize[..., Any] | None = None

    def get(self, connect: Callable[[], Client]) -> Client:
        """Return the connection; ``connect`` makes it where there is none."""
        if self._client is None:
            self._client = connect()
            self._finalizer = weakref.finalize(self, self._client.close)
        return self._client

    def close(self) -> None:
        """Close the connection, so that the next use makes another one."""
        if self._finalizer is not None:
            self._finalizer()  # it is called once, and keeps the connection no longer
        self._client = self._finalizer = None
