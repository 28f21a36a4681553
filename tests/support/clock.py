"""A clock for tests that moves only when ``advance`` or ``jump`` is called."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from math import inf
from types import TracebackType

import anyio


class FakeClock:
    """A clock for tests: ``advance`` moves it, wakes sleeping tasks and cancels overdue scopes."""

    def __init__(self, now: float = 1_760_000_000.0) -> None:
        self._now = now  # seconds since 1970
        self._monotonic = 1000.0
        # Sleeping tasks: the monotonic second at which each wakes, and its event.
        self._sleepers: list[tuple[float, anyio.Event]] = []
        # The scopes that tasks are in: the monotonic second at which each is cancelled.
        self._scopes: dict[anyio.CancelScope, float] = {}

    def now(self) -> float:
        """Return the time that was set."""
        return self._now

    def monotonic(self) -> float:
        """Return the monotonic seconds, which begin at another value."""
        return self._monotonic

    @property
    def sleepers(self) -> int:
        """How many tasks sleep on this clock or wait for something in a scope that it ends."""
        return len(self._sleepers) + sum(until < inf for until in self._scopes.values())

    async def sleep(self, seconds: float) -> None:
        """Return once the clock was advanced by so many seconds."""
        if seconds <= 0:
            await anyio.lowlevel.checkpoint()
            return
        event = anyio.Event()
        self._sleepers.append((self._monotonic + seconds, event))
        await event.wait()

    def move_on_after(self, seconds: float) -> "ClockScope":
        """Cancel a ``with`` block once the clock was advanced by so many seconds."""
        return ClockScope(self._scopes, self._monotonic + seconds, self._end_overdue)

    def advance(self, seconds: float) -> None:
        """Move the clock forward, wake tasks that are due and cancel scopes that are overdue."""
        self._now += seconds
        self._monotonic += seconds
        due = [event for until, event in self._sleepers if until <= self._monotonic]
        self._sleepers = [sleeper for sleeper in self._sleepers if sleeper[0] > self._monotonic]
        for event in due:
            event.set()
        self._end_overdue()

    def jump(self, seconds: float) -> None:
        """Move only the wall clock, as a correction of the system's time does."""
        self._now += seconds

    def _end_overdue(self) -> None:
        """Cancel the scopes whose time has come."""
        for scope, until in list(self._scopes.items()):
            if until <= self._monotonic:
                scope.cancel()


class ClockScope(AbstractContextManager[anyio.CancelScope, bool]):
    """A block that a fake clock cancels at a monotonic second; the clock knows it while it runs."""

    def __init__(
        self,
        running: dict[anyio.CancelScope, float],
        until: float,
        end_overdue: Callable[[], None],
    ) -> None:
        self._scope = anyio.CancelScope()
        self._running = running  # of the clock: the second at which each scope is cancelled
        self._until = until
        self._end_overdue = end_overdue

    def __enter__(self) -> anyio.CancelScope:
        """Enter the scope; it is cancelled at once if its time has come."""
        self._scope.__enter__()
        self._running[self._scope] = self._until
        self._end_overdue()
        return self._scope

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        """Leave the scope; return whether an exception is its own cancellation."""
        del self._running[self._scope]
        return bool(self._scope.__exit__(kind, error, traceback))
