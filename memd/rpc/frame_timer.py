"""The time limit of a frame: it must be whole ``limits.FRAME_SECONDS`` after its first byte."""

import anyio

from memd.base import limits
from memd.base.clock import Clock
from memd.base.errors import TooLarge


def frame_too_slow() -> TooLarge:
    """Return the error that a frame was begun and not finished in time."""
    return TooLarge(
        f"a frame must be whole {limits.FRAME_SECONDS:g} s after its first byte",
        hint="send a whole frame at once",
        retryable=True,
        seconds=limits.FRAME_SECONDS,
    )


class FrameTimer:
    """Measures how long one peer needs for the frame that it sends."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._begun_at: float | None = None  # when the frame began, ``None`` between frames
        self._begun = anyio.Event()  # wakes ``expire``; replaced for each wait

    def start(self) -> None:
        """Start the time limit of a frame, unless it runs already."""
        if self._begun_at is None:
            self._begun_at = self._clock.monotonic()
            self._begun.set()

    def stop(self) -> None:
        """End the time limit: the frame is whole, or memd does not read now."""
        self._begun_at = None

    async def expire(self) -> None:
        """Return once a frame has exceeded its time limit."""
        while True:
            if self._begun_at is None:
                self._begun = anyio.Event()
                await self._begun.wait()
                continue
            remaining = self._begun_at + limits.FRAME_SECONDS - self._clock.monotonic()
            if remaining <= 0:
                return
            await self._clock.sleep(remaining)
