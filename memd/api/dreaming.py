"""dream: consolidation that a client asks for, and that begins by itself."""

import os

import msgspec
from anyio import to_thread

from memd.api.method import Method, Params, Result
from memd.api.services import Services
from memd.api.work import ended, request_of
from memd.core.values import Project
from memd.rpc.connection import Call
from memd.store.project import NoProjectError


class Dream(Params):
    """Parameters of ``dream``."""

    cwd: str
    force: bool | None = None
    wait: bool | None = None


class Removed(Result):
    """A memory that a dream took away, and why."""

    path: str
    reason: str


class Merged(Result):
    """A memory that took others in."""

    into: str
    sources: list[str] = msgspec.field(name="from")


class Dreamed(Result):
    """What became of a dream; all after ``job`` is there once it has ended."""

    status: str
    gate: str | None = None
    reason: str | None = None
    job: str | None = None
    merged: list[Merged] | None = None
    removed: list[Removed] | None = None
    changed: list[str] | None = None
    change: str | None = None
    proposal: str | None = None


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
)
