"""extract, and the jobs that background work runs as."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from anyio import to_thread

from memd.api.memory import project_of
from memd.api.method import Limit, Result, SessionId, method, shaped
from memd.api.services import Services
from memd.core.covered import CoveredText
from memd.core.errors import WrongParameterError
from memd.core.settings import Settings
from memd.core.values import Project
from memd.projects.project import NoProjectError, transcript_folders
from memd.rpc.connection import Call
from memd.state.tables import JobNotFoundError, JobNotParkedError, Visit
from memd.transcripts import reading
from memd.transcripts.reading import InvalidMessagesError, TranscriptRefusedError

E = TypeVar("E", bound="Ended")


class NothingToReadError(WrongParameterError):
    """A method needs a transcript or messages, one of the two."""

    hint = "give transcript_path (absolute, *.jsonl) or messages, not both"

    def __init__(self) -> None:
        super().__init__("a conversation is given as either transcript_path or messages")


class Ended(Result):
    """What became of a job that a method started; ``change`` undoes it, ``usage`` is in tokens.

    There is no ``job`` where a gate was closed, and nothing after it before the job has ended.
    """

    status: str
    reason: str | None = None
    job: str | None = None
    engine: str | None = None
    turns: int | None = None
    usage: dict[str, int] | None = None
    change: str | None = None


class Extracted(Ended):
    """What became of an extraction."""

    saved: list[str] | None = None
    updated: list[str] | None = None
    removed: list[str] | None = None
    refused: int | None = None
    suggested: int | None = None
    passed_over: dict[str, int] | None = None
    already_said: list[CoveredText] | None = None
    problem: str | None = None
    hit_rate: float | None = None
    prefix_changed: list[str] | None = None


class JobFacts(Result):
    """One job as ``job.*`` show it; times in seconds since 1970.

    A ``parked`` job failed and can be put back. ``holder`` is the PID of the daemon that is at it.
    ``record`` has the turns of its last run of a model, where they were asked for. ``progress`` of
    ``job.get`` has the newest facts that a running job told, its ``phase``, and ``texts``: what
    the model said in its last 30 turns, each with the turn and the tools it called, oldest first.
    """

    job: str
    kind: str
    state: str
    phase: str
    directory: str
    session: str
    attempts: int
    created: float
    started: float | None
    ended: float | None
    result: dict[str, Any] | None
    error: dict[str, Any] | None
    parked: bool
    holder: int | None
    record: list[dict[str, Any]] | None = None
    progress: dict[str, Any] | None = None


class JobPage(Result):
    """The newest jobs first."""

    jobs: list[JobFacts]


class Cancelled(Result):
    """Whether there was something to cancel."""

    cancelled: bool


@method(
    "extract",
    "write",
    NoProjectError,
    NothingToReadError,
    InvalidMessagesError,
    TranscriptRefusedError,
)
async def extract(
    services: Services,
    call: Call,
    *,
    cwd: str,
    session_id: SessionId,
    transcript_path: str | None = None,
    messages: list[Any] | None = None,
    cache: dict[str, Any] | None = None,
    wait: bool = False,
) -> Extracted:
    """Look for what is worth remembering in a conversation; answers at once."""
    if (transcript_path is None) == (messages is None):
        raise NothingToReadError
    project, settings, _ = await services.store.where(cwd, call.caller.environment)
    about = {
        "cwd": cwd,
        "session": session_id,
        "transcript_path": transcript_path,
        "messages": messages,
        "cache": cache,
    }
    services.progress.remember(session_id, cache)
    result = await submit(services, call, project, settings, about)
    if not (wait and result.job):
        return result
    return await ended(services, result.job, Extracted)


async def submit(
    services: Services, call: Call, project: Project, settings: Settings, about: Mapping[str, Any]
) -> Extracted:
    """Submit an extraction unless a gate is closed; ``about`` is what its job has to know.

    Raises TranscriptRefusedError.
    """
    reason = services.extract.gate(settings, project)
    if not reason and not settings.extract.allow_remote:
        reason = _nobody(call)
    if reason:
        return Extracted(status="skipped", reason=reason)
    if about["transcript_path"] is not None:
        await to_thread.run_sync(reading.check, about["transcript_path"])
    request = request_of(call, about["cwd"]) | {"messages": None, "cache": None, **about}
    submitted = await services.jobs.submit("extract", project.memory_dir, about["session"], request)
    return Extracted(status=submitted.status, job=submitted.job)


@method("job.get", "read", JobNotFoundError)
async def job_get(services: Services, _call: Call, *, job: str, record: bool = False) -> JobFacts:
    """One job.

    With ``record`` the answer has what a model did, turn by turn.
    """
    facts = shaped(await services.jobs.get(job), JobFacts)
    facts.progress = services.jobs.progress.of(job)
    if record:
        facts.record = await to_thread.run_sync(services.runs.of, job)
    return facts


@method("job.wait", "read", JobNotFoundError)
async def job_wait(services: Services, _call: Call, *, job: str) -> JobFacts:
    """One job, once it has ended."""
    return shaped(await services.jobs.wait(job), JobFacts)


@method("job.cancel", "write", JobNotFoundError)
async def job_cancel(services: Services, _call: Call, *, job: str) -> Cancelled:
    """End a job now; what it had not committed is as before."""
    return Cancelled(cancelled=await services.jobs.cancel(job))


@method("job.retry", "write", JobNotFoundError, JobNotParkedError)
async def job_retry(services: Services, _call: Call, *, job: str) -> JobFacts:
    """Put a parked job back into the queue, as if it had never failed."""
    return shaped(await services.jobs.retry(job), JobFacts)


@method("job.list", "read")
async def job_list(
    services: Services,
    call: Call,
    *,
    cwd: str | None = None,
    limit: Limit = 50,
    parked: bool = False,
) -> JobPage:
    """The newest jobs, of one project or of all; or those that are parked.

    Without ``cwd`` the jobs of all projects.
    """
    directory, below = "", tuple[str, ...]()
    if cwd is not None:
        project = await project_of(services, call, cwd)
        directory, below = project.memory_dir, transcript_folders(project)  # there are notes
    jobs = await services.jobs.list(directory, limit, parked=parked, below=below)
    return JobPage(jobs=shaped(jobs, list[JobFacts]))


def _nobody(call: Call) -> str:
    """Return the reason if the client says that nobody sits in front of it, else ""."""
    environment = call.caller.environment
    remote = environment.get("CLAUDE_CODE_REMOTE", "").strip().lower()
    if remote not in {"", "0", "false", "no", "off"}:
        return "remote"
    # What `claude -p` tells its hooks, the editors that run it for a person do not.
    return "unattended" if environment.get("CLAUDE_CODE_SESSION_ATTENDED") == "0" else ""


def request_of(call: Call, cwd: str) -> dict[str, Any]:
    """Return what a job has to know of who asked."""
    caller = call.caller
    return {"cwd": cwd, "client": caller.client, "environment": dict(caller.environment)}


def visit_of(call: Call, cwd: str, session: str) -> Visit:
    """Return who is at work where."""
    caller = call.caller
    return Visit(cwd, caller.client, caller.environment, session)


async def ended(services: Services, job: str, shape: type[E]) -> E:
    """Return a job's end as its method answers it, once it has ended."""
    finished = await services.jobs.wait(job)
    facts: dict[str, Any] = {"status": finished.state, "job": job}
    if finished.error:
        facts["reason"] = finished.error.get("message")
    return msgspec.convert(facts | (finished.result or {}), type=shape)


METHODS = (extract, job_get, job_list, job_wait, job_cancel, job_retry)
