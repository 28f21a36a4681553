"""A lock that many threads may hold together, or one thread alone."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class SharedLock:
    """A lock with many shared holders or one exclusive holder.

    ``alone`` waits until there is no shared holder; while it is held, ``shared`` waits. A waiting
    ``alone`` does not stop new shared holders, so a thread may call ``shared`` again inside it.
    Constant sharing can delay ``alone``, which is acceptable for its only user, retention.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()  # ``alone`` holds it; it guards ``_users``
        self._users = 0  # shared holders

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Hold the lock together with other threads during the block."""
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
        """Hold the lock alone during the block, after waiting for all shared holders."""
        with self._changed:
            self._changed.wait_for(lambda: not self._users)
            yield
