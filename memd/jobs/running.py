"""What is asked of jobs and of those who run them, as values."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from memd.core.errors import MemdError
from memd.state.jobs import Job

ACCEPTED = "accepted"
COALESCED = "coalesced"


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
    status: str


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


def runner_of(runners: Mapping[str, Runner], kind: str) -> Runner:
    """Return the runner of a kind. Raises UnknownJobKindError: rows may be of another memd."""
    runner = runners.get(kind)
    if runner is None:
        raise UnknownJobKindError(kind)
    return runner
