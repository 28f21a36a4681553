"""How one run of a job ended, and what follows from it."""

from dataclasses import dataclass
from typing import Any

from memd.core.errors import MemdError
from memd.documents.secrets import scrub_error
from memd.jobs import breaker
from memd.jobs.standstill import Standstill
from memd.state.jobs import Job


@dataclass(frozen=True, slots=True)
class Setback:
    """What follows from a failure: ``again`` after ``pause`` seconds, or the end, perhaps parked.

    ``error`` is what the job's row and its events tell of it.
    """

    error: dict[str, Any]
    again: bool
    parked: bool
    pause: float


@dataclass(slots=True)
class Ending:
    """A run while it lasts and when it is over; ``row`` is the job as it was when it began.

    With neither result nor error it was cancelled, or another daemon had ended the job.
    """

    row: Job | None = None
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    retryable: bool = False
    of_model: bool = False
    refused: MemdError | None = None  # what the disk said, if it was the disk

    def failed(self, failure: MemdError) -> None:
        """Note a failure that is told as it is."""
        scrub_error(failure)
        self.error = {"kind": failure.kind, "message": failure.sentence, **failure.facts}
        self.retryable, self.of_model = failure.retryable, failure.of_model
        self.refused = failure if failure.of_disk else None

    def broke(self, number: str) -> None:
        """Note a failure that nobody expected; the log has it under ``number``."""
        message = f"something unexpected went wrong; the log has it under {number}"
        self.error = {"kind": "unexpected", "message": message, "id": number}

    def about_model(self) -> bool:
        """Whether a model was asked, as far as the run tells."""
        return self.of_model or bool(self.result and self.result.get("turns"))

    def tell(self, standstill: Standstill, now: float) -> None:
        """Tell the directory's breaker how the model did. Blocks; raises StateUnusableError."""
        if self.row is None:
            return
        if self.error is not None:
            standstill.model_failed(self.row.directory, str(self.error["message"]), now)
        else:
            standstill.model_worked(self.row.directory)

    def setback(self) -> Setback:
        """Return what follows from the failure that was noted."""
        error = self.error or {}
        before = None if self.row is None else self.row.error
        attempts = 0 if self.row is None else self.row.attempts
        times = breaker.repeated(before, error)
        parked = self.retryable and breaker.parks(times, attempts)
        told = error | {breaker.TIMES: times} if self.retryable else error
        again = self.retryable and not parked
        return Setback(told, again, parked, breaker.pause_before(attempts))
