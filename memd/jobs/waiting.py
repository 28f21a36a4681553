"""Wake callers that wait for the end of a job, also if the disk refuses to save it.

Saving the end of a job is retried without limit. Callers do not wait for that: they get the disk's
error, until saving succeeds again.
"""

import anyio

from memd.base.errors import MemdError


class Waiting:
    """Lets callers wait for the ends of jobs. Use it on the event loop."""

    def __init__(self) -> None:
        self.save_error: MemdError | None = None  # of the last try to save anything
        self._disk_errors: dict[str, MemdError] = {}  # by job: the disk's error it is retried for
        self._events: dict[str, anyio.Event] = {}  # by job: wakes the callers that wait for it

    def event(self, job: str) -> anyio.Event:
        """Return the event that is set when a job ends or the disk refuses."""
        return self._events.setdefault(job, anyio.Event())

    def refusal(self, job: str) -> MemdError | None:
        """Return the disk's error that holds up a job, ``None`` for none."""
        return self._disk_errors.get(job) or self.save_error

    def record_save(self, refusal: MemdError | None) -> None:
        """Record the result of a try to save something: its error, or ``None``."""
        if refusal is None:
            self.save_error = None
            return
        self.save_error = _bare(refusal)
        for job in list(self._events):
            self._wake(job)

    def hold(self, job: str, refusal: MemdError | None) -> None:
        """Record that a job waits for its next try; ``refusal`` is the disk's error, if any."""
        if refusal is not None:
            self._disk_errors[job] = _bare(refusal)
            self._wake(job)

    def record_start(self, job: str) -> None:
        """Record that a job runs again, so that nobody gets the earlier error."""
        self._disk_errors.pop(job, None)

    def record_end(self, job: str) -> None:
        """Record that a job has ended, and wake its callers."""
        self.record_start(job)
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
