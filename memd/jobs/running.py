"""A job's request, its run and how that ended, as values."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

from memd.core.errors import MemdError
from memd.documents.secrets import scrub_error
from memd.jobs import breaker
from memd.state.tables import Job, Pauses


class UnknownJobKindError(MemdError):
    """There is no runner for jobs of this kind."""

    code = 1012
    kind = "unknown_job_kind"

    def __init__(self, kind: str) -> None:
        super().__init__(f"this memd does not run jobs of the kind {kind}", job_kind=kind)


@dataclass(frozen=True, slots=True)
class Submitted:
    """The answer to a request: the job's id, and ``accepted`` or ``coalesced``."""

    job: str
    status: Literal["accepted", "coalesced"]


@dataclass(frozen=True, slots=True)
class Running:
    """What a runner gets: the job, what was asked, and how to tell where it is.

    ``progress(phase, **facts)`` publishes at once and never fails; call it on the loop. Unless
    ``model_allowed`` the job is to be done without a model: the directory's breaker is open.
    """

    job: Job
    request: dict[str, Any]
    progress: Callable[..., None]
    model_allowed: bool = True


# The result has ``turns`` above 0 where a model was asked; a failure of a model is an error whose
# class says ``of_model``. Both are what the directory's breaker goes by.
Runner = Callable[[Running], Awaitable[dict[str, Any]]]


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
class RunResult:
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

    def report(self, rows: Pauses, now: float) -> None:
        """Tell the directory's breaker how the model did. Blocks; raises StateUnusableError."""
        if self.row is not None and self.error is not None:
            breaker.model_failed(rows, self.row.directory, str(self.error["message"]), now)
        elif self.row is not None:
            breaker.model_worked(rows, self.row.directory)

    def setback(self) -> Setback:
        """Return what follows from the failure that was noted."""
        error = self.error or {}
        before = None if self.row is None else self.row.error
        attempts = 0 if self.row is None else self.row.attempts
        times = breaker.repeated(before, error)
        parked = self.retryable and breaker.parks(times, attempts)
        facts = error | {breaker.TIMES: times} if self.retryable else error
        again = self.retryable and not parked
        return Setback(facts, again, parked, breaker.pause_before(attempts))
