"""status: the state of the daemon, its running work, and what waits for a person."""

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from anyio import to_thread
from msgspec.structs import replace

from memd import __version__
from memd.base.errors import MemdError
from memd.base.settings import Settings
from memd.daemon.core import Daemon
from memd.daemon.doctor import CLAUDE_CODE_CHECK, Check, quick_checks
from memd.daemon.portable import known_projects
from memd.extract.starting import ExtractionStarter
from memd.methods.callers import SeenSession
from memd.methods.method import Result, method
from memd.model.breaker import Breaker
from memd.model.configured import COMMAND, ModelState
from memd.projects.known import working_directory
from memd.projects.project import is_of_agent
from memd.rpc.call import Call
from memd.rules.values import RuleCounts
from memd.state.jobs import Job
from memd.state.proposals import ProposalTable
from memd.state.spend import Sum
from memd.state.suggestions import SuggestionCounts, SuggestionTable

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_COUNTED_LISTS = ("created", "changed", "merged", "removed")  # of a dream's report


class RunningJob(Result):
    """A running job, ``since`` when (seconds since 1970), and the numbers of its progress."""

    job: str
    kind: str
    directory: str
    phase: str
    since: float | None
    progress: dict[str, float]


class DreamEnded(Result):
    """The newest dream that ran: when it ended, and how many memories each of its lists has."""

    job: str
    directory: str
    state: str
    at: float
    counts: dict[str, int]


class SpendToday(Result):
    """Today's spending and its cap; ``caps`` has the cap for each kind of work that it stopped.

    ``runs_per_day`` is the cap where a program on the person's own plan is the model, else null.
    """

    used: Sum
    dollars_per_day: float
    caps: dict[str, str]
    runs_per_day: int | None = None


class PassedOver(Result):
    """How many conversations were not learnt from since memd began, and the setting to change."""

    conversations: int
    reason: str
    setting: str


class Status(Result):
    """The state of the daemon; sizes in bytes, times in seconds; ``spend`` is today's.

    ``jobs`` counts the newest jobs by state, and the ``parked`` ones; ``running`` are those that
    run. ``paused_since`` is when background work was paused (seconds since 1970), or null.
    ``projects`` are memory directories, ``proposals`` the open proposals in them. ``folders`` has
    the working directories by memory directory where they are known, the last used first.
    ``suggestions`` counts those of all projects that wait, were shown to a session, or were decided
    lately. ``held`` counts messages between agents that wait for the person. ``teams`` has
    the state of each directory that joined a team, as in ``team.status``, and ``conflicts`` the
    number of files that wait there. ``rules`` counts the rules of all projects by state.
    ``sessions`` are the last active ones, the newest first. ``passed_over`` counts conversations
    that nothing is learnt from. ``health`` are the self-checks that are
    not ok, of those that ask no server; ``doctor`` has all. ``program`` is the Python that runs the
    daemon and will run its next version.
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
    folders: dict[str, str]
    proposals: dict[str, int]
    suggestions: SuggestionCounts
    held: int
    teams: dict[str, str]
    conflicts: dict[str, int]
    rules: RuleCounts
    sessions: list[SeenSession]
    passed_over: list[PassedOver]
    last_dream: DreamEnded | None
    model: ModelState
    spend: SpendToday
    health: list[Check]
    notes: list[str]


@method("status", "read")
async def status(daemon: Daemon, call: Call) -> Status:
    """Versions, uptime, size, jobs, pauses, what waits for a person, the model and its cost."""
    running = await daemon.jobs.running()
    state = await daemon.jobs.state()
    settings, problems = await daemon.projects.settings(None)
    directories = await daemon.store.directories()
    projects = sorted(directory for directory in directories if not is_of_agent(directory))
    waiting = await to_thread.run_sync(ProposalTable(daemon.database).waiting)
    teams, conflicts = await _teams(daemon)
    checks = await quick_checks(daemon, call, settings, problems)
    is_ok = {check.name: check.detail for check in checks if check.state == "ok"}
    takes_over = [is_ok[CLAUDE_CODE_CHECK]] if CLAUDE_CODE_CHECK in is_ok else []
    return Status(
        name="memd",
        version=__version__,
        pid=os.getpid(),
        program=sys.executable,
        uptime=round(daemon.clock.monotonic() - daemon.started, 3),
        socket=daemon.places.socket,
        state_dir=daemon.places.state_dir,
        connections=daemon.hub.connections(),
        rss=await to_thread.run_sync(_resident_bytes),
        jobs=await daemon.jobs.counts(),
        running=[_running_job(row, daemon.jobs.progress(row.id)) for row in running],
        paused_since=state.paused_since,
        breakers=state.breakers,
        projects=projects,
        folders=await _folders(daemon),
        proposals={directory: waiting[directory] for directory in projects if directory in waiting},
        suggestions=await to_thread.run_sync(SuggestionTable(daemon.database).counts),
        held=await daemon.messages.held_count(),
        teams=teams,
        conflicts=conflicts,
        rules=await daemon.rules.counts(),
        sessions=list(reversed(daemon.callers.sessions.values())),
        passed_over=_passed_over(daemon.extractions),
        last_dream=await _last_dream(daemon),
        model=daemon.models.state(settings),
        spend=await _spent_today(daemon, settings),
        health=[check for check in checks if check.state != "ok"],
        notes=[*daemon.notes, *takes_over],
    )


def _resident_bytes() -> int:
    """Return the resident memory of this process in bytes, 0 on a system without /proc."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * _PAGE_BYTES  # the second number: resident pages
    except OSError:  # pragma: no cover - a system without /proc
        return 0


def _running_job(row: Job, facts: Mapping[str, Any]) -> RunningJob:
    """Return a running job with the numbers of its progress; its texts are left out."""
    # ``type``, because a bool is an instance of int.
    numbers = {name: value for name, value in facts.items() if type(value) in {int, float}}
    return RunningJob(
        job=row.job,
        kind=row.kind,
        directory=row.directory,
        phase=row.phase,
        since=row.started,
        progress=numbers,
    )


def _passed_over(extractions: ExtractionStarter) -> list[PassedOver]:
    """Return how many conversations were passed over because nobody sat in front of them."""
    count = len(extractions.passed_over)
    row = PassedOver(conversations=count, reason="not interactive", setting="extract.allow_remote")
    return [row] if count else []


async def _last_dream(daemon: Daemon) -> DreamEnded | None:
    """Return the newest dream that ran in any project, ``None`` where none has."""
    job = await daemon.jobs.newest("", "dream")
    if job is None:
        return None
    report = job.result or {}
    lists = {name: report.get(name) for name in _COUNTED_LISTS}
    return DreamEnded(
        job=job.id,
        directory=job.directory,
        state=job.state,
        at=job.ended or job.created,
        counts={name: len(value) for name, value in lists.items() if isinstance(value, list)},
    )


async def _folders(daemon: Daemon) -> dict[str, str]:
    """Return the working directory of each known project by its memory directory."""
    known = sorted(await known_projects(daemon), key=lambda project: -project.at)

    def find() -> dict[str, str]:
        places = ((project.directory, working_directory(project)) for project in known)
        return {directory: cwd for directory, cwd in places if cwd}

    return await to_thread.run_sync(find)


async def _teams(daemon: Daemon) -> tuple[dict[str, str], dict[str, int]]:
    """Return the state of each directory that joined a team, and how many files wait there."""
    states, conflicts = {}, {}
    for membership in await to_thread.run_sync(daemon.team.memberships.all):
        with suppress(MemdError):  # it has just left, or its directory cannot be read
            team = await daemon.team.status_of(membership.directory)
            states[membership.directory] = team.state
            waiting = len(team.conflicts) + len(team.held)
            if waiting:
                conflicts[membership.directory] = waiting
    return states, conflicts


async def _spent_today(daemon: Daemon, settings: Settings) -> SpendToday:
    """Return today's spending and the caps that it reached."""
    now = daemon.clock.now()
    used = await to_thread.run_sync(daemon.spent.today, now)
    by_runs = settings.model.provider == COMMAND
    caps = partial(daemon.spent.caps, settings.spend, now, by_runs=by_runs)
    return SpendToday(
        used=replace(used, dollars=round(used.dollars, 6)),
        dollars_per_day=settings.spend.dollars_per_day,
        caps=await to_thread.run_sync(caps),
        runs_per_day=settings.spend.runs_per_day if by_runs else None,
    )
