"""Define what a job's runner gets and returns, and what follows from a failure."""

from collections.abc import Awaitable, Callable
from typing import Any, Literal

from msgspec import Struct

from memd.base.errors import MemdError
from memd.jobs import breaker
from memd.state.docs import Docs
from memd.state.jobs import Job
from memd.store.secret import scrub_error


class Submitted(Struct, frozen=True):
    """The reply to a request: the job's id, and ``accepted`` or ``coalesced``."""

    job: str
    status: Literal["accepted", "coalesced"]


class Running(Struct, frozen=True):
    """The arguments of a runner: the job, its request, and a function to report progress.

    ``progress(phase, **facts)`` publishes at once and never fails; call it on the event loop.
    Without ``model_allowed`` no model may be used, as the directory's breaker is open.
    """

    job: Job
    request: dict[str, Any]
    progress: Callable[..., None]
    model_allowed: bool = True


# The result has ``turns`` above 0 if a model was used. A model's failure is an error whose class
# has ``of_model``. The directory's breaker depends on both.
Runner = Callable[[Running], Awaitable[dict[str, Any]]]


class Setback(Struct, frozen=True):
    """What follows from a failure.

    ``again`` says that the job is tried again after ``pause`` seconds; else it ends, and ``parked``
    says whether a person can put it back.
    ``error`` is stored in the job's row and sent in its events.
    """

    error: dict[str, Any]
    again: bool
    parked: bool
    pause: float


class RunResult(Struct):
    """The result of a run; ``row`` is the job as it was at the start.

    A run with neither result nor error was cancelled, or another daemon had ended the job.
    """

    row: Job | None = None
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    retryable: bool = False
    of_model: bool = False
    disk_error: MemdError | None = None  # the error, if the disk caused it

    def record_failure(self, failure: MemdError) -> None:
        """Record an expected failure."""
        scrub_error(failure)
        self.error = {"kind": failure.kind, "message": failure.sentence, **failure.facts}
        self.retryable, self.of_model = failure.retryable, failure.of_model
        self.disk_error = failure if failure.of_disk else None

    def record_unexpected(self, number: str) -> None:
        """Record an unexpected failure; ``number`` is the id of its log entry."""
        message = f"something unexpected went wrong; the log has it under {number}"
        self.error = {"kind": "unexpected", "message": message, "id": number}

    def used_model(self) -> bool:
        """Return whether a model was used, as the result or the error shows."""
        return self.of_model or bool(self.result and self.result.get("turns"))

    def report(self, table: Docs, now: float) -> None:
        """Record the model's success or failure for the breaker. Blocks.

        Raises StateUnusableError.
        """
        if self.row is not None and self.error is not None:
            breaker.model_failed(table, self.row.directory, str(self.error["message"]), now)
        elif self.row is not None:
            breaker.model_worked(table, self.row.directory)

    def setback(self) -> Setback:
        """Return what follows from the recorded failure: another try, parking or the end.

        A parked job is not tried again unless a person retries it. The pause is that before
        another try, if there is one.
        """
        error = self.error or {}
        previous_error = None if self.row is None else self.row.error
        attempts = 0 if self.row is None else self.row.attempts
        times = breaker.failures_in_a_row(previous_error, error)
        pause = breaker.pause_before(attempts)
        if not self.retryable:
            return Setback(error, again=False, parked=False, pause=pause)
        facts = error | {breaker.TIMES: times}
        parked = breaker.must_park(times, attempts)
        return Setback(facts, again=not parked, parked=parked, pause=pause)
