"""A clock that moves only when it is told to."""

import anyio


class FakeClock:
    """A clock for tests: ``advance`` moves it and wakes who sleeps on it."""

    def __init__(self, now: float = 1_760_000_000.0) -> None:
        self._now = now
        self._monotonic = 1000.0
        self._sleepers: list[tuple[float, anyio.Event]] = []

    def now(self) -> float:
        """Return the time that was set."""
        return self._now

    def monotonic(self) -> float:
        """Return the time that was set, from another start."""
        return self._monotonic

    @property
    def sleepers(self) -> int:
        """How many wait for this clock."""
        return len(self._sleepers)

    async def sleep(self, seconds: float) -> None:
        """Return once the clock was advanced so far."""
        if seconds <= 0:
            await anyio.lowlevel.checkpoint()
            return
        event = anyio.Event()
        self._sleepers.append((self._monotonic + seconds, event))
        await event.wait()

    def advance(self, seconds: float) -> None:
        """Move the clock forward and wake every sleeper whose time has come."""
        self._now += seconds
        self._monotonic += seconds
        due = [item for item in self._sleepers if item[0] <= self._monotonic]
        self._sleepers = [item for item in self._sleepers if item[0] > self._monotonic]
        for _, event in due:
            event.set()

    def jump(self, seconds: float) -> None:
        """Move the wall clock alone, as a correction of the system's time does."""
        self._now += seconds
