"""Who waits for the ends of jobs, and who need not wait on since the disk refuses.

A job that the disk keeps from ending is tried again for as long as it takes. Nobody waits for
that: who waits, or begins to, is told what the disk said, until it takes something again.
"""

import anyio

from memd.core.errors import MemdError


class Waiting:
    """The events of jobs' ends. Belongs to the event loop."""

    def __init__(self) -> None:
        self.stuck: MemdError | None = None  # what keeps anything from being written down
        self._refusals: dict[str, MemdError] = {}  # why a job is to be tried again
        self._events: dict[str, anyio.Event] = {}

    def event(self, job: str) -> anyio.Event:
        """Return what is set when there is something to tell of a job."""
        return self._events.setdefault(job, anyio.Event())

    def refusal(self, job: str) -> MemdError | None:
        """Return what the disk said, ``None`` where a job goes on."""
        return self._refusals.get(job) or self.stuck

    def tried(self, refusal: MemdError | None) -> None:
        """Note whether the state file took what had to be written down."""
        self.stuck = refusal and _bare(refusal)
        if refusal is not None:
            for job in list(self._events):
                self._tell(job)

    def hold(self, job: str, refusal: MemdError | None) -> None:
        """Note that a job is to be tried again, because of the disk if there is a refusal."""
        if refusal is not None:
            self._refusals[job] = _bare(refusal)
            self._tell(job)

    def goes_on(self, job: str) -> None:
        """Note that a job is tried again."""
        self._refusals.pop(job, None)

    def ended(self, job: str) -> None:
        """Note that a job has ended."""
        self.goes_on(job)
        self._tell(job)

    def _tell(self, job: str) -> None:
        event = self._events.pop(job, None)
        if event is not None:
            event.set()


def _bare(refusal: MemdError) -> MemdError:
    """Return an error without what it holds: its frames would keep the state file open."""
    refusal.__traceback__ = refusal.__cause__ = refusal.__context__ = None
    return refusal
