"""job.*, pause and resume, and what a method answers that starts a job."""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from memd.jobs.service import Jobs, WorkState
from memd.methods.callers import Callers
from memd.methods.method import Limit, Result, method
from memd.projects.project import transcript_folders
from memd.rpc.call import Call
from memd.state.jobs import Job

E = TypeVar("E", bound="Ended")


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


class JobMethods:
    """Answers methods about jobs; ``turns_of`` returns the turns of one's last run, and blocks."""

    def __init__(
        self, jobs: Jobs, callers: Callers, turns_of: Callable[[str], list[dict[str, Any]]]
    ) -> None:
        self._jobs = jobs
        self._callers = callers
        self._turns_of = turns_of

    @method("job.wait", "read")
    async def job_wait(self, _call: Call, *, job: str) -> JobFacts:
        """One job, once it has ended."""
        return _facts(await self._jobs.wait(job))

    @method("job.cancel", "write")
    async def job_cancel(self, _call: Call, *, job: str) -> Cancelled:
        """Cancel a job now; changes that it has not committed are dropped."""
        return Cancelled(cancelled=await self._jobs.cancel(job))

    @method("job.list", "read")
    def job_list(
        self,
        call: Call,
        *,
        cwd: str | None = None,
        job: str | None = None,
        parked: bool = False,
        record: bool = False,
        limit: Limit = 50,
    ) -> JobPage:
        """The newest jobs, or the ``parked`` ones, of the project of ``cwd`` or of all projects.

        With ``job`` it is that one, with its progress, and with ``record`` the turns of its last
        run of a model.
        """
        if job is not None:
            facts = _facts(self._jobs.get(job))
            facts.progress = self._jobs.progress(job) or None
            if record:
                facts.record = self._turns_of(job)
            return JobPage(jobs=[facts])
        directory, below = "", tuple[str, ...]()
        if cwd is not None:
            project = self._callers.place(call, cwd)
            directory = project.memory_dir
            below = transcript_folders(project)  # jobs of notes have their folders there
        jobs = self._jobs.list(directory, limit, parked=parked, below=below)
        return JobPage(jobs=[_facts(each) for each in jobs])

    @method("pause", "operate")
    async def pause(self, _call: Call, *, now: bool = False) -> WorkState:
        """Start no background work until ``resume``, even after a restart; prompts are still
        answered.

        With ``now`` running jobs are put back into the queue.
        """
        return await self._jobs.pause(now=now)

    @method("resume", "operate")
    async def resume(self, _call: Call) -> WorkState:
        """Let background work continue, and allow requests to models that failed before."""
        return await self._jobs.resume()


def request_of(call: Call, cwd: str) -> dict[str, Any]:
    """Return the facts about the caller that a job stores."""
    caller = call.caller
    return {"cwd": cwd, "client": caller.client, "environment": dict(caller.environment)}


async def result_of(jobs: Jobs, job: str, shape: type[E]) -> E:
    """Wait until a job has ended, and return its result, or its error, as ``shape``."""
    return ended_as(shape, await jobs.wait(job))


def ended_as(shape: type[E], job: Job) -> E:
    """Return the result of a job, or its error, as ``shape``."""
    facts: dict[str, Any] = {"status": job.state, "job": job.id}
    if job.error:
        facts["reason"] = job.error.get("message")
    return msgspec.convert(facts | (job.result or {}), type=shape)


def _facts(job: Job) -> JobFacts:
    """Return a job without its request, which may hold a conversation."""
    return msgspec.convert(job, type=JobFacts, from_attributes=True)
