"""Prompts before background work: who is being answered, and how long jobs wait for that.

Rules of this file
- A prompt is counted on the event loop, from its begin to its answer.
- Background threads ask between two pieces of work and wait while one is counted, a moment at most:
  prompts that never cease slow the background down and do not stop it.
- A job that was cancelled ends where it asks next: nobody waits for a thread to run to its end.
"""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from anyio import from_thread

MOST_SECONDS = 0.05  # one wait; a prompt takes a few milliseconds


class RequestPriority:
    """Counts prompts in flight; ``yield_to_requests`` and ``checkpoint`` are for other threads."""

    def __init__(self) -> None:
        self._prompts = 0
        self._quiet = threading.Event()
        self._quiet.set()

    @contextmanager
    def prompt(self, step: int = 1) -> Iterator[None]:
        """Count one prompt for the length of the block."""
        self._count(step)
        try:
            yield
        finally:
            self._count(-step)

    def uncounted(self) -> AbstractContextManager[None]:
        """Leave a prompt that only waits for somebody else out of the count, for a block."""
        return self.prompt(-1) if self._prompts else nullcontext()

    @property
    def in_flight(self) -> int:
        """How many prompts are being answered now."""
        return self._prompts

    def yield_to_requests(self) -> None:
        """Wait until no prompt is in flight, or a moment has passed."""
        if self._prompts:
            self._quiet.wait(MOST_SECONDS)

    def checkpoint(self) -> None:
        """Yield, in a worker thread of a job; what cancels the job is raised here."""
        from_thread.check_cancelled()
        self.yield_to_requests()

    def _count(self, step: int) -> None:
        self._prompts += step
        if self._prompts:
            self._quiet.clear()
        else:
            self._quiet.set()
