"""status: how the daemon is, what it does and what waits for a person."""

import os
import sys
from contextlib import suppress

from anyio import to_thread

from memd import __version__
from memd.api import spending
from memd.api.doctor import Check, quick_checks
from memd.api.measuring import resident_bytes
from memd.api.method import Result, method
from memd.api.services import SeenSession, Services
from memd.core.errors import MemdError
from memd.model.configured import ModelState
from memd.projects.project import is_of_agent
from memd.rpc.connection import Call
from memd.rules.values import RuleCounts
from memd.state.tables import Breaker, ContextTotals, RunningRow, SuggestionCounts

_COUNTED = ("created", "changed", "merged", "removed", "questions")  # of a dream's report


class RunningJob(Result):
    """A job that runs, since when (seconds since 1970), and the numbers that it told of itself."""

    job: str
    kind: str
    directory: str
    phase: str
    since: float | None
    progress: dict[str, float]


class DreamEnded(Result):
    """The newest dream that ran: when it ended, and what it did to how many memories."""

    job: str
    directory: str
    state: str
    at: float
    counts: dict[str, int]


class Status(Result):
    """How the daemon is; sizes in bytes, times in seconds; ``spend`` is today's.

    ``jobs`` counts the newest by state, and those that are ``parked``; ``running`` are those at
    work. Background work is paused since ``paused_since`` (seconds since 1970), or null.
    ``proposals`` counts what dreams want a person to decide, by memory directory, for the
    directories among ``projects``. ``suggestions`` counts those of all projects that wait, went out
    to a session, or were decided of late. ``held`` are messages between agents that wait for the
    person. ``contexts`` counts conversations, stored results and their bytes, and lost prompt
    caches with the tokens that were paid again. ``teams`` has the state of each directory that
    joined a team, as ``team.status`` has it, and ``conflicts`` how many files wait there. ``rules``
    counts those of all projects by whether they hold.
    ``sessions`` are those that were heard of last, the newest first. ``health`` are the self-checks
    that are not ok, of those that ask no server; ``doctor`` has all. ``program`` is the Python that
    runs the daemon, and its next version.
    """

    name: str
    version: str
    pid: int
    program: str
    uptime: float
    socket: str
    state_dir: str
    connections: int
    rss: int
    jobs: dict[str, int]
    running: list[RunningJob]
    paused_since: float | None
    breakers: tuple[Breaker, ...]
    projects: list[str]
    proposals: dict[str, int]
    suggestions: SuggestionCounts
    held: int
    contexts: ContextTotals
    teams: dict[str, str]
    conflicts: dict[str, int]
    rules: RuleCounts
    sessions: list[SeenSession]
    last_dream: DreamEnded | None
    model: ModelState
    spend: spending.SpendToday
    health: list[Check]
    notes: list[str]


@method("status", "read")
async def status(services: Services, _call: Call) -> Status:
    """Versions, uptime, size, jobs, pauses, what waits for a person, the model and its cost."""
    counts = await to_thread.run_sync(services.figures.counts)
    state = await services.jobs.state()
    settings, problems = await services.store.settings(None)
    directories = await services.store.directories()
    projects = sorted(one for one in directories if not is_of_agent(one))
    waiting = await services.reviews.waiting()
    teams, conflicts = await _teams(services)
    checks = await quick_checks(services, problems)
    return Status(
        name="memd",
        version=__version__,
        pid=os.getpid(),
        program=sys.executable,
        uptime=round(services.clock.monotonic() - services.started, 3),
        socket=services.places.socket,
        state_dir=services.places.state_dir,
        connections=services.hub.connections(),
        rss=await to_thread.run_sync(resident_bytes),
        jobs=counts.jobs,
        running=[_running(services, row) for row in counts.running],
        paused_since=state.paused_since,
        breakers=state.breakers,
        projects=projects,
        proposals={directory: waiting[directory] for directory in projects if directory in waiting},
        suggestions=await services.suggestions.counts(),
        held=counts.held,
        contexts=await services.contexts.totals(),
        teams=teams,
        conflicts=conflicts,
        rules=await services.rules.counts(),
        sessions=list(reversed(services.sessions.values())),
        last_dream=await _last_dream(services),
        model=services.models.state(settings),
        spend=await spending.today(services, settings),
        health=[check for check in checks if check.state != "ok"],
        notes=list(services.notes),
    )


def _running(services: Services, row: RunningRow) -> RunningJob:
    facts = services.jobs.progress.of(row.job) or {}
    numbers = {name: value for name, value in facts.items() if type(value) in {int, float}}
    return RunningJob(
        job=row.job,
        kind=row.kind,
        directory=row.directory,
        phase=services.jobs.progress.phase(row.job),
        since=row.since,
        progress=numbers,
    )


async def _last_dream(services: Services) -> DreamEnded | None:
    job = await services.jobs.newest("", "dream")
    if job is None:
        return None
    report = job.result or {}
    lists = {name: report.get(name) for name in _COUNTED}
    return DreamEnded(
        job=job.id,
        directory=job.directory,
        state=job.state,
        at=job.ended or job.created,
        counts={name: len(value) for name, value in lists.items() if isinstance(value, list)},
    )


async def _teams(services: Services) -> tuple[dict[str, str], dict[str, int]]:
    """Return the state of each directory that joined a team, and how many files wait there."""
    states, conflicts = {}, {}
    for membership in await to_thread.run_sync(services.memberships.all):
        with suppress(MemdError):  # it has just left, or its directory cannot be read
            team = await services.team.status(membership.directory)
            states[membership.directory] = team.state
            if waiting := len(team.conflicts) + len(team.held):
                conflicts[membership.directory] = waiting
    return states, conflicts


METHODS = (status,)
