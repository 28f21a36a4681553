"""A connection of an object that its program never closes."""

import weakref
from collections.abc import Callable
from typing import Any

from memd.client.blocking import Client


class HeldClient:
    """A connection that is made at its first use, and closed at the latest when this is collected.

    "Collected" is what Python does with an object that nobody refers to any more.
    """

    def __init__(self) -> None:
        self._client: Client | None = None
        self._finalizer: weakref.finalize[..., Any] | None = None  # closes ``_client``

    def get(self, connect: Callable[[], Client]) -> Client:
        """Return the connection; ``connect`` makes it where there is none."""
        if self._client is None:
            self._client = connect()
            self._finalizer = weakref.finalize(self, self._client.close)
        return self._client

    def close(self) -> None:
        """Close the connection, so that the next use makes another one."""
        if self._finalizer is not None:
            self._finalizer()  # closes the connection, and drops its reference to it
        self._client = self._finalizer = None
