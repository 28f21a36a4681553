"""Give prompts priority over background threads.

Rules of this file
- A prompt is counted on the event loop, from its beginning to its reply.
- Background threads check between two pieces of work and wait while a prompt is counted, 50 ms at
  most, so that constant prompts slow them down but do not stop them.
- A thread of a cancelled job ends at its next check; short work that a job does in a thread of
  ``base/threads`` is done to its end.
"""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress

from anyio import NoEventLoopError, from_thread

MOST_SECONDS = 0.05  # of one wait; a prompt takes a few milliseconds


class RequestPriority:
    """Counts prompts in flight; worker threads call ``yield_to_requests`` and ``checkpoint``."""

    def __init__(self) -> None:
        self._prompts = 0  # in flight
        self._no_prompts = threading.Event()  # set while no prompt is in flight
        self._no_prompts.set()

    @contextmanager
    def prompt(self, step: int = 1) -> Iterator[None]:
        """Add ``step`` to the count of prompts during the block."""
        self._change_count(step)
        try:
            yield
        finally:
            self._change_count(-step)

    def uncounted(self) -> AbstractContextManager[None]:
        """Do not count the current prompt during the block, in which it waits for a model."""
        return self.prompt(-1) if self._prompts else nullcontext()

    @property
    def in_flight(self) -> int:
        """The number of prompts being processed now."""
        return self._prompts

    def yield_to_requests(self) -> None:
        """Wait in a worker thread while a prompt is in flight, 50 ms at most."""
        if self._prompts:
            self._no_prompts.wait(MOST_SECONDS)

    def checkpoint(self) -> None:
        """Yield in a worker thread of a job; raises the cancellation if the job is cancelled."""
        with suppress(NoEventLoopError):
            from_thread.check_cancelled()
        self.yield_to_requests()

    def _change_count(self, step: int) -> None:
        """Change the number of prompts, and wake waiting threads when none is left."""
        self._prompts += step
        if self._prompts:
            self._no_prompts.clear()
        else:
            self._no_prompts.set()
