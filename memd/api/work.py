"""extract and job.*: look for memories in a conversation, and manage background jobs."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from anyio import to_thread

from memd.api.services import Services
from memd.base.covered import CoveredText
from memd.base.errors import Invalid
from memd.base.settings import Settings
from memd.base.values import Project
from memd.extract.requests import gate
from memd.jobs.service import Jobs
from memd.methods.method import Limit, Result, SessionId, method, shaped
from memd.projects.known import Visit
from memd.projects.project import transcript_folders
from memd.rpc.call import Call
from memd.transcripts import reading

E = TypeVar("E", bound="Ended")


def nothing_to_read() -> Invalid:
    """Return the error that a request has both a transcript and messages, or neither."""
    return Invalid(
        "a conversation is given as either transcript_path or messages",
        hint="give transcript_path (absolute, *.jsonl) or messages, not both",
    )


class Ended(Result):
    """The state of a job that a method started; ``change`` is the one to undo, ``usage`` tokens.

    ``job`` is null where a gate was closed. The members after it are null until the job has ended.
    """

    status: str
    reason: str | None = None
    job: str | None = None
    engine: str | None = None
    turns: int | None = None
    usage: dict[str, int] | None = None
    change: str | None = None


class Extracted(Ended):
    """The result of an extraction."""

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
    """One job as ``job.*`` return it; times in seconds since 1970.

    A ``parked`` job failed, and its request is kept. ``holder`` is the PID of the daemon that runs
    it. ``record`` has the turns of its last run of a model, if they were requested. ``progress`` is
    filled where one running job was asked for: its newest facts and its ``phase``.
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
    """Whether the job was cancelled; one that has ended cannot be."""

    cancelled: bool


@method("extract", "write")
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
    """Look for memories in a conversation, by a job; answers at once unless ``wait`` is given."""
    if (transcript_path is None) == (messages is None):  # both or neither
        raise nothing_to_read()
    project, settings, _ = await services.callers.find(call, cwd)
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
    return await ended(services.jobs, result.job, Extracted)


async def submit(
    services: Services, call: Call, project: Project, settings: Settings, about: Mapping[str, Any]
) -> Extracted:
    """Submit an extraction, or return the gate that is closed; ``about`` has the job's facts.

    Raises Refused.
    """
    reason = gate(settings, project)
    if not reason and not settings.extract.allow_remote:
        reason = _unattended_reason(call)
    if reason:
        return Extracted(status="skipped", reason=reason)
    if about["transcript_path"] is not None:
        await to_thread.run_sync(reading.check, about["transcript_path"])
    request = request_of(call, about["cwd"]) | {"messages": None, "cache": None, **about}
    submitted = await services.jobs.submit("extract", project.memory_dir, about["session"], request)
    return Extracted(status=submitted.status, job=submitted.job)


@method("job.wait", "read")
async def job_wait(services: Services, _call: Call, *, job: str) -> JobFacts:
    """One job, once it has ended."""
    return shaped(await services.jobs.wait(job), JobFacts)


@method("job.cancel", "write")
async def job_cancel(services: Services, _call: Call, *, job: str) -> Cancelled:
    """Cancel a job now; changes that it has not committed are dropped."""
    return Cancelled(cancelled=await services.jobs.cancel(job))


@method("job.list", "read")
async def job_list(
    services: Services,
    call: Call,
    *,
    cwd: str | None = None,
    job: str | None = None,
    parked: bool = False,
    record: bool = False,
    limit: Limit = 50,
) -> JobPage:
    """The newest jobs, or the ``parked`` ones, of the project of ``cwd`` or of all projects.

    With ``job`` it is that one, with its progress, and with ``record`` the turns of its last run of
    a model.
    """
    if job is not None:
        facts = shaped(await services.jobs.get(job), JobFacts)
        facts.progress = services.jobs.progress(job) or None
        if record:
            facts.record = await to_thread.run_sync(services.runs.of, job)
        return JobPage(jobs=[facts])
    directory, below = "", tuple[str, ...]()
    if cwd is not None:
        project = await services.callers.project(call, cwd)
        directory = project.memory_dir
        below = transcript_folders(project)  # jobs of notes have their folders there
    jobs = await services.jobs.list(directory, limit, parked=parked, below=below)
    return JobPage(jobs=shaped(jobs, list[JobFacts]))


def _unattended_reason(call: Call) -> str:
    """Return "remote" or "unattended" if the client says that no person uses it, else ""."""
    environment = call.caller.environment
    remote = environment.get("CLAUDE_CODE_REMOTE", "").strip().lower()
    if remote not in {"", "0", "false", "no", "off"}:
        return "remote"
    # `claude -p` sets this to 0 for its hooks; editors that run it for a person do not.
    return "unattended" if environment.get("CLAUDE_CODE_SESSION_ATTENDED") == "0" else ""


def request_of(call: Call, cwd: str) -> dict[str, Any]:
    """Return the facts about the caller that a job stores."""
    caller = call.caller
    return {"cwd": cwd, "client": caller.client, "environment": dict(caller.environment)}


def visit_of(call: Call, cwd: str, session: str) -> Visit:
    """Return a visit: the caller's session and client in a working directory."""
    caller = call.caller
    return Visit(cwd, caller.client, caller.environment, session)


async def ended(jobs: Jobs, job: str, shape: type[E]) -> E:
    """Wait until a job has ended, and return its result, or its error, as ``shape``."""
    finished = await jobs.wait(job)
    facts: dict[str, Any] = {"status": finished.state, "job": job}
    if finished.error:
        facts["reason"] = finished.error.get("message")
    return msgspec.convert(facts | (finished.result or {}), type=shape)
