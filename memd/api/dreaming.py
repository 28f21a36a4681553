"""dream.*: consolidate memories on request, and report on the last and the next dream."""

from typing import Any

import msgspec

from memd.api.services import Services
from memd.api.work import Ended, ended, visit_of
from memd.dream.gates import Gate
from memd.dream.report_page import markdown
from memd.dream.service import DirectorySize, Reasoned
from memd.methods.method import Result, method
from memd.model.port import LOCAL
from memd.rpc.call import Call


class Merged(Result):
    """A memory into which others were merged."""

    into: str
    sources: list[str] = msgspec.field(name="from")


class Dreamed(Ended):
    """The result of a dream. ``proposal`` was not carried out because of ``problems``.

    A person decides about a proposal. ``left`` are memories that stayed because they had been
    changed meanwhile, ``listed`` those that need a person.
    """

    gate: str | None = None
    model_problem: str | None = None
    created: list[str] | None = None
    changed: list[str] | None = None
    merged: list[Merged] | None = None
    removed: list[Reasoned] | None = None
    left: list[Reasoned] | None = None
    listed: list[Reasoned] | None = None
    orphans: list[str] | None = None
    before: DirectorySize | None = None
    after: DirectorySize | None = None
    proposal: str | None = None
    problems: list[str] | None = None
    dollars: float | None = None
    seconds: float | None = None
    said: str | None = None


class LastDream(Result):
    """The newest dream that ran; ``job`` is null where none has.

    ``at`` is when it ended, in seconds since 1970. ``report`` has the members of the result of
    ``dream``; ``error`` says why there is none. ``markdown`` is the same for people.
    """

    job: str | None = None
    state: str | None = None
    at: float | None = None
    report: dict[str, Any] | None = None
    error: str | None = None
    markdown: str = ""


class DreamStatus(Result):
    """When the next dream may begin, and what prevents it; times in seconds since 1970.

    ``enabled``: no switch is off. ``auto``: dreams begin by themselves. ``last`` is when memories
    were last consolidated, null for never. ``due`` is null where enough time has passed. ``gate``
    is the first closed gate or "". ``waits`` says why an automatic dream would wait now, or is "".
    ``running`` is the job of a dream that waits or runs. ``proposals`` counts those that wait for
    a person.
    """

    enabled: bool
    auto: bool
    engine: str
    last: float | None
    due: float | None
    sessions: int
    min_sessions: int
    gate: str
    waits: str
    gates: tuple[Gate, ...]
    running: str | None
    proposals: int


@method("dream", "write")
async def dream(
    services: Services, call: Call, *, cwd: str, force: bool = False, wait: bool = False
) -> Dreamed:
    """Consolidate the memories of a project when the gates are open.

    With ``force`` only another dream that runs prevents it. With ``wait`` the answer comes once the
    dream has ended.
    """
    project, settings, _ = await services.callers.find(call, cwd)
    visit = visit_of(call, cwd, "")
    requested = await services.starter.request(project, settings, visit, force=force)
    if requested.gate:
        return Dreamed(status="skipped", gate=requested.gate)
    if not wait:
        return Dreamed(status="started", job=requested.job)
    return await ended(services, requested.job, Dreamed)


@method("dream.last", "read")
async def dream_last(services: Services, call: Call, *, cwd: str) -> LastDream:
    """What the newest dream did, as data and as a page for people."""
    project = await services.callers.project(call, cwd)
    job = await services.jobs.newest(project.memory_dir, "dream")
    if job is None:
        return LastDream()
    at = job.ended or job.created
    error = str((job.error or {}).get("message", ""))
    page = markdown(job.result or {}, job=job.id, at=at, state=job.state, error=error)
    return LastDream(
        job=job.id, state=job.state, at=at, report=job.result, error=error or None, markdown=page
    )


@method("dream.status", "read")
async def dream_status(services: Services, call: Call, *, cwd: str) -> DreamStatus:
    """When the next dream of a project may begin, and what prevents it.

    The gates are checked as for a dream, but none is started.
    """
    project, settings, _ = await services.callers.find(call, cwd)
    prospect = await services.starter.prospect(project, settings)
    outlook = prospect.outlook
    uses_model = settings.dream.use_model and services.models.for_(settings) is not None
    return DreamStatus(
        enabled=outlook.gates[0].open,  # the first gate is the switch
        auto=settings.dream.auto,
        engine=services.models.name(settings, "dream") if uses_model else LOCAL,
        last=outlook.last,
        due=outlook.due,
        sessions=outlook.sessions,
        min_sessions=settings.dream.min_sessions,
        gate=outlook.gate,
        waits=prospect.waits,
        gates=outlook.gates,
        running=prospect.running,
        proposals=await services.reviews.waiting_in(project.memory_dir),
    )
