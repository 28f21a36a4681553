"""Read the operating system's clock, or for tests one that a file moves forward."""

import asyncio
import time
from contextlib import AbstractContextManager
from types import TracebackType

import anyio

_POLL_SECONDS = 0.02  # how soon a waiting task notices that the file of a test clock has changed


class SystemClock:
    """The clock of the operating system."""

    def now(self) -> float:
        """Return seconds since 1970 (UTC)."""
        return time.time()

    def monotonic(self) -> float:
        """Return monotonic seconds, which a change of the clock does not move."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""
        await anyio.sleep(max(0.0, seconds))  # it refuses a negative number

    def move_on_after(self, seconds: float) -> anyio.CancelScope:
        """Return a scope that ends after so many seconds."""
        return anyio.move_on_after(seconds)


class MovedClock:
    """The system's clock plus the seconds that a file holds, for ``memd serve --test-clock FILE``.

    The file is read at each use, so that a test lets hours pass by writing a number. Replace the
    file by a rename; without a number in it the clock is the system's.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    def now(self) -> float:
        """Return seconds since 1970 (UTC), moved."""
        return time.time() + self._added_seconds()

    def monotonic(self) -> float:
        """Return monotonic seconds, moved as far."""
        return time.monotonic() + self._added_seconds()

    async def sleep(self, seconds: float) -> None:
        """Return after so many seconds of this clock."""
        with self.move_on_after(seconds):
            await anyio.sleep_forever()

    def move_on_after(self, seconds: float) -> AbstractContextManager[object, bool]:
        """Return a scope that ends after so many seconds of this clock."""
        return _MovedScope(self, self.monotonic() + seconds)

    def _added_seconds(self) -> float:
        try:
            with open(self._path, encoding="ascii") as file:
                return float(file.read())
        except (OSError, ValueError):
            return 0.0


class _MovedScope(AbstractContextManager[anyio.CancelScope, bool]):
    """A block that is cancelled at a monotonic second of a clock that a file moves."""

    def __init__(self, clock: MovedClock, until: float) -> None:
        self._clock = clock
        self._until = until
        self._scope = anyio.CancelScope()
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> anyio.CancelScope:
        self._scope.__enter__()
        self._end_when_due()
        return self._scope

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if self._timer is not None:
            self._timer.cancel()
        return bool(self._scope.__exit__(kind, error, traceback))

    def _end_when_due(self) -> None:
        remaining = self._until - self._clock.monotonic()
        if remaining <= 0:
            self._timer = None
            self._scope.cancel()
        else:
            delay = min(_POLL_SECONDS, remaining)
            self._timer = asyncio.get_running_loop().call_later(delay, self._end_when_due)
