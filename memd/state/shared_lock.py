"""A lock that many may hold together, or one alone."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class SharedLock:
    """Who wants it alone waits until nobody shares it; while it is held alone, all others wait.

    Who comes before it is held alone may still share it, so a thread that shares it may do so
    again. Steady sharing keeps who wants it alone waiting: nobody is in a hurry to forget.
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
