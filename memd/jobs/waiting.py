"""Wake callers that wait for the end of a job, also if the disk refuses to save it.

Saving the end of a job is retried without limit. Callers do not wait for that: they get the disk's
error, until saving succeeds again.
"""

import anyio

from memd.core.errors import MemdError


class Waiting:
    """Lets callers wait for the ends of jobs. Use it on the event loop."""

    def __init__(self) -> None:
        self.stuck: MemdError | None = None  # the error of the last try to save anything
        self._refusals: dict[str, MemdError] = {}  # by job: the disk's error it is retried for
        self._events: dict[str, anyio.Event] = {}

    def event(self, job: str) -> anyio.Event:
        """Return the event that is set when a job ends or the disk refuses."""
        return self._events.setdefault(job, anyio.Event())

    def refusal(self, job: str) -> MemdError | None:
        """Return the disk's error that holds up a job, ``None`` for none."""
        return self._refusals.get(job) or self.stuck

    def tried(self, refusal: MemdError | None) -> None:
        """Record the result of a try to save something: its error, or ``None``."""
        self.stuck = refusal and _bare(refusal)
        if refusal is not None:
            for job in list(self._events):
                self._wake(job)

    def hold(self, job: str, refusal: MemdError | None) -> None:
        """Record that a job waits for its next try; ``refusal`` is the disk's error, if any."""
        if refusal is not None:
            self._refusals[job] = _bare(refusal)
            self._wake(job)

    def goes_on(self, job: str) -> None:
        """Record that a job runs again, so that nobody gets the earlier error."""
        self._refusals.pop(job, None)

    def ended(self, job: str) -> None:
        """Record that a job has ended, and wake its callers."""
        self.goes_on(job)
        self._wake(job)

    def _wake(self, job: str) -> None:
        """Wake the callers that wait for a job."""
        event = self._events.pop(job, None)
        if event is not None:
            event.set()


def _bare(refusal: MemdError) -> MemdError:
    """Return an error without traceback and causes, whose frames would keep the file open."""
    refusal.__traceback__ = refusal.__cause__ = refusal.__context__ = None
    return refusal
