"""The clock as a port: what time it is, and waiting.

The daemon brings the real one (``daemon/clock.py``), tests a fake one.
"""

from contextlib import AbstractContextManager
from typing import Protocol


class Clock(Protocol):
    """Time as the rest of the program sees it."""

    def now(self) -> float:
        """Seconds since 1970 (UTC), as ``time.time`` counts them; may jump."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back, for durations."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after so many seconds of this clock; soon if the number is negative.

        The seconds until a time are negative after the process, or the machine, was stopped.
        """
        ...

    def move_on_after(self, seconds: float) -> AbstractContextManager[object, bool]:
        """Cancel a ``with`` block after so many seconds of this clock, and continue after it."""
        ...
