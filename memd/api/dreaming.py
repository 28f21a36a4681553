"""dream: consolidation that a client asks for, and that begins by itself."""

import os
from typing import Any

import msgspec
from anyio import to_thread

from memd.api.method import Method, Params, Result
from memd.api.services import Services
from memd.api.work import ended, request_of
from memd.core.values import Project
from memd.dream.morning import markdown
from memd.rpc.connection import Call
from memd.store.project import NoProjectError


class Dream(Params):
    """Parameters of ``dream``."""

    cwd: str
    force: bool | None = None
    wait: bool | None = None


class Removed(Result):
    """A memory that a dream took away, left alone or could not help, and why."""

    path: str
    reason: str


class Merged(Result):
    """A memory that took others in."""

    into: str
    sources: list[str] = msgspec.field(name="from")


class Denied(Result):
    """A sentence that went from a memory because one that stays denies it."""

    path: str
    gone: str
    stays: str


class Sizes(Result):
    """What a memory directory holds."""

    memories: int
    memory_bytes: int
    index_lines: int
    index_bytes: int


class Dreamed(Result):
    """What became of a dream; all after ``job`` is there once it has ended, if there is any.

    ``change`` undoes it. ``proposal`` was kept back for its ``problems``; ``dream.review`` shows
    it. ``left`` stayed since somebody changed it meanwhile, ``listed`` needs a person. ``usage`` is
    in tokens.
    """

    status: str
    gate: str | None = None
    reason: str | None = None
    job: str | None = None
    engine: str | None = None
    model_problem: str | None = None
    created: list[str] | None = None
    changed: list[str] | None = None
    merged: list[Merged] | None = None
    removed: list[Removed] | None = None
    left: list[Removed] | None = None
    listed: list[Removed] | None = None
    contradictions: list[Denied] | None = None
    orphans: list[str] | None = None
    before: Sizes | None = None
    after: Sizes | None = None
    change: str | None = None
    proposal: str | None = None
    problems: list[str] | None = None
    turns: int | None = None
    usage: dict[str, int] | None = None
    dollars: float | None = None
    seconds: float | None = None
    said: str | None = None


class LastOf(Params):
    """Parameters of ``dream.last``."""

    cwd: str


class LastDream(Result):
    """The newest dream that ran; no ``job`` where there was none.

    ``at`` is when it ended, in seconds since 1970. ``report`` has the members that ``dream``
    answers, as the dream left them; ``error`` says why it has none. ``markdown`` is for people.
    """

    job: str | None = None
    state: str | None = None
    at: float | None = None
    report: dict[str, Any] | None = None
    error: str | None = None
    markdown: str = ""


async def dream(services: Services, call: Call, params: Dream) -> Dreamed:
    """Answer ``dream``: the gates, then a job; with ``force`` only the lock can say no."""
    project = await services.store.project(params.cwd, call.connection.caller.environment)
    settings, _ = await services.store.settings(project)
    gate = await services.dreams.gate(project, settings, force=bool(params.force), session="")
    if gate:
        return Dreamed(status="skipped", gate=gate)
    job = await _start_dream(services, call, project, "")
    if not params.wait:
        return Dreamed(status="started", job=job)
    return await ended(services, job, Dreamed)


async def dream_last(services: Services, call: Call, params: LastOf) -> LastDream:
    """Answer ``dream.last``: what the newest dream did, for programs and for people."""
    project = await services.store.project(params.cwd, call.connection.caller.environment)
    job = await services.jobs.newest(project.memory_dir, "dream")
    if job is None:
        return LastDream()
    at = job.ended or job.created
    error = str((job.error or {}).get("message", ""))
    page = markdown(job.result or {}, job=job.id, at=at, state=job.state, error=error)
    return LastDream(
        job=job.id, state=job.state, at=at, report=job.result, error=error or None, markdown=page
    )


async def dream_if_due(services: Services, call: Call, cwd: str, session: str) -> None:
    """Start an automatic dream when every gate is open (spec 5.1); a closed gate is no news."""
    project = await services.store.project(cwd, call.connection.caller.environment)
    settings, _ = await services.store.settings(project)
    if not settings.dream.auto:
        return
    if not await services.dreams.gate(project, settings, force=False, session=session):
        await _start_dream(services, call, project, session)


async def _start_dream(services: Services, call: Call, project: Project, session: str) -> str:
    request = request_of(call, project.cwd) | {"session": session}
    lane = await to_thread.run_sync(os.path.realpath, project.memory_dir)
    submitted = await services.jobs.submit(
        "dream", lane, "", request, lane_directory=project.memory_dir
    )
    return submitted.job


METHODS = (
    Method(
        name="dream",
        summary="Consolidate the memories of a project when the gates are open.",
        params=Dream,
        result=Dreamed,
        permission="write",
        handler=dream,
        errors=(NoProjectError,),
    ),
    Method(
        name="dream.last",
        summary="What the newest dream did, as data and as a page for people.",
        params=LastOf,
        result=LastDream,
        permission="read",
        handler=dream_last,
        errors=(NoProjectError,),
    ),
)
