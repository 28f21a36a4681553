"""A lock that many may hold together, or one alone."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class SharedLock:
    """Who holds it alone waits for all who share it, and those who come later wait for that one.

    A thread that shares it may do so again.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._users = 0

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Hold it with others for the length of a block."""
        with self._changed:
            self._users += 1
        try:
            yield
        finally:
            with self._changed:
                self._users -= 1
                self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold it alone for the length of a block."""
        with self._changed:
            self._changed.wait_for(lambda: not self._users)
            yield
