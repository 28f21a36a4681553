"""Read the operating system's clock."""

import time

import anyio


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
        await anyio.sleep(seconds)

    def move_on_after(self, seconds: float) -> anyio.CancelScope:
        """Return a scope that ends after so many seconds."""
        return anyio.move_on_after(seconds)
