"""hello, subscriptions, status, self-checks and the end of the daemon."""

import os
import sys
from dataclasses import replace
from typing import Any

from anyio import to_thread

from memd import __version__
from memd.api import spending
from memd.api.checks import Check, model_check
from memd.api.method import Method, Params, Result, forwarded, method
from memd.api.services import Services
from memd.core import events
from memd.core.errors import MemdError
from memd.core.text import iso_time
from memd.jobs.service import Jobs
from memd.rpc.connection import Call
from memd.state.pauses import Breaker

CAPABILITIES = (
    "batch",
    "cancel",
    "content-length",
    "history",
    "jobs",
    "newline-delimited",
    "progress",
    "subscribe",
    "undo",
)
PROTOCOL = 1


class UnknownTopicError(MemdError):
    """A subscription names a topic that memd does not have."""

    code = -32602
    kind = "invalid_params"
    hint = f"topics are {', '.join(events.TOPICS)}"
    exit_status = 2

    def __init__(self, topic: str) -> None:
        super().__init__(f"there is no topic {topic}", topic=topic)


class Hello(Params):
    """Parameters of ``hello``; ``environment`` takes only the variables of the documented list."""

    client: str | None = None
    version: str | None = None
    environment: dict[str, str] | None = None


class Welcome(Result):
    """Who answers; a client of any version is served."""

    name: str
    version: str
    protocol: int
    capabilities: list[str]
    pid: int


class Subscribe(Params):
    """Parameters of ``subscribe`` and ``unsubscribe``: all topics and projects by default."""

    topics: list[str] | None = None
    cwd: str | None = None


class Subscribed(Result):
    """The topics that this call named."""

    topics: list[str]


class Nothing(Params):
    """No parameters."""


class Status(Result):
    """How the daemon is; sizes in bytes, times in seconds; ``spend`` is today's.

    ``jobs`` counts the newest by state, and those that are ``parked``. Background work is paused
    since ``paused_since`` (seconds since 1970), or null. ``proposals`` counts what dreams want a
    person to decide, by memory directory, for the directories among ``projects``.
    """

    name: str
    version: str
    pid: int
    uptime: float
    socket: str
    state_dir: str
    connections: int
    rss: int
    jobs: dict[str, int]
    paused_since: float | None
    breakers: tuple[Breaker, ...]
    projects: list[str]
    proposals: dict[str, int]
    model: spending.ModelState
    spend: spending.SpendToday
    notes: list[str]


class DoctorParams(Params):
    """Parameters of ``doctor``; with ``cwd`` the project is looked at too."""

    cwd: str | None = None


class Diagnosis(Result):
    """All self-checks; ``ok`` when none failed."""

    ok: bool
    checks: list[Check]


class Stopping(Result):
    """The daemon drains and ends."""

    stopping: bool


@method("hello", "read")
async def hello(services: Services, call: Call, params: Hello) -> Welcome:
    """Say who calls, learn who answers; any version is served."""
    call.connection.caller = replace(
        call.connection.caller,
        client=(params.client or "")[:100],
        version=(params.version or "")[:100],
        environment=forwarded(params.environment),
    )
    return Welcome(
        name="memd",
        version=__version__,
        protocol=PROTOCOL,
        capabilities=list(CAPABILITIES),
        pid=services.pid,
    )


@method("subscribe", "read", UnknownTopicError)
async def subscribe(services: Services, call: Call, params: Subscribe) -> Subscribed:
    """Send this connection notifications."""
    topics, directory = await _subscription(services, call, params)
    call.connection.subscribe(topics, directory)
    return Subscribed(topics=topics)


@method("unsubscribe", "read", UnknownTopicError)
async def unsubscribe(services: Services, call: Call, params: Subscribe) -> Subscribed:
    """Send no more of them."""
    topics, directory = await _subscription(services, call, params)
    call.connection.unsubscribe(topics, directory)
    return Subscribed(topics=topics)


@method("status", "read")
async def status(services: Services, _call: Call, _params: Nothing) -> Status:
    """Versions, uptime, size, jobs, pauses, projects, the model and its cost today."""
    jobs: dict[str, int] = {}
    for job in await services.jobs.list("", 200):
        jobs[job.state] = jobs.get(job.state, 0) + 1
    parked = len(await services.jobs.list("", 200, parked=True))
    standing = await services.jobs.standing()
    settings, _ = await services.store.settings(None)
    projects = sorted(await services.store.directories())
    waiting = await services.dreams.open_proposals()
    return Status(
        name="memd",
        version=services.version,
        pid=services.pid,
        uptime=round(services.clock.monotonic() - services.started, 3),
        socket=services.places.socket,
        state_dir=services.places.state_dir,
        connections=services.connections(),
        rss=await to_thread.run_sync(_rss),
        jobs=jobs | ({"parked": parked} if parked else {}),
        paused_since=standing.paused_since,
        breakers=standing.breakers,
        projects=projects,
        proposals={directory: waiting[directory] for directory in projects if directory in waiting},
        model=spending.model_state(services, settings),
        spend=await spending.today(services, settings),
        notes=list(services.notes),
    )


@method("doctor", "read")
async def doctor(services: Services, call: Call, params: DoctorParams) -> Diagnosis:
    """Self-checks, each with a remedy."""
    checks = [
        Check(
            name="python",
            state="ok",
            detail=f"{sys.version.split()[0]} at {sys.executable}",
            remedy="",
        ),
        await state_check(services.jobs, services.places.database),
        await to_thread.run_sync(_socket_check, services.places.socket),
    ]
    settings, problems = await services.store.settings(None)
    checks.append(_problems("settings", services.places.config, problems))
    checks.append(await model_check(services.models, settings))
    checks.append(_problems("recovery", "nothing was left half done", tuple(services.notes)))
    noticed = "what others do to memories is noticed at once"
    checks.append(_problems("watching", noticed, services.store.watching()))
    checks.append(await _clock_check(services))
    if params.cwd is not None:
        checks += await _project_checks(services, call, params.cwd)
    return Diagnosis(ok=all(check.state != "failed" for check in checks), checks=checks)


@method("shutdown", "operate")
async def shutdown(services: Services, _call: Call, _params: Nothing) -> Stopping:
    """Drain the jobs and end the daemon.

    The answer goes out before the daemon ends.
    """
    services.stop()
    return Stopping(stopping=True)


async def _subscription(
    services: Services, call: Call, params: Subscribe
) -> tuple[list[str], str | None]:
    topics = params.topics if params.topics is not None else list(events.TOPICS)
    for topic in topics:
        if topic not in events.TOPICS:
            raise UnknownTopicError(topic)
    if params.cwd is None:
        return topics, None
    project = await services.store.project(params.cwd, call.connection.caller.environment)
    return topics, project.memory_dir


async def state_check(jobs: Jobs, path: str) -> Check:
    """Return whether the state file answers."""
    try:
        await jobs.list("", 1)
    except MemdError as error:
        return Check(name="state", state="failed", detail=error.sentence, remedy=error.hint)
    return Check(name="state", state="ok", detail=path, remedy="")


async def _clock_check(services: Services) -> Check:
    clock = services.clock
    try:
        found = await to_thread.run_sync(services.ages.look, clock.now(), clock.monotonic())
    except MemdError as error:
        return Check(name="clock", state="failed", detail=error.sentence, remedy=error.hint)
    waits = "" if found.proved else "; nothing goes by its age before it has run for a day"
    return Check(
        name="clock",
        state="warning" if found.problem else "ok",
        detail=f"{found.problem or iso_time(found.at)}{waits}",
        remedy="see whether the time is right; nothing was removed" if found.problem else "",
    )


def _socket_check(path: str) -> Check:
    try:
        mode = os.stat(path).st_mode & 0o777
        folder = os.stat(os.path.dirname(path)).st_mode & 0o777
    except OSError as error:
        return Check(
            name="socket",
            state="failed",
            detail=f"{path}: {error.strerror}",
            remedy="restart memd; something removed its socket",
        )
    safe = mode & 0o177 == 0 and folder & 0o077 == 0
    return Check(
        name="socket",
        state="ok" if safe else "failed",
        detail=f"{path} has mode {mode:04o} in a directory of mode {folder:04o}",
        remedy="" if safe else "chmod 700 the directory and restart memd",
    )


def _problems(name: str, fine: str, problems: tuple[str, ...]) -> Check:
    return Check(
        name=name,
        state="warning" if problems else "ok",
        detail="; ".join(problems) or fine,
        remedy="mend what the sentence names; no restart is needed" if problems else "",
    )


async def _project_checks(services: Services, call: Call, cwd: str) -> list[Check]:
    try:
        project = await services.store.project(cwd, call.connection.caller.environment)
        snapshot = await services.store.snapshot(project.memory_dir)
    except MemdError as error:
        return [Check(name="project", state="failed", detail=error.sentence, remedy=error.hint)]
    damaged = [header.path for header in snapshot.headers if header.damaged]
    detail = f"{len(snapshot.headers)} memories in {project.memory_dir} ({project.source})"
    return [
        Check(
            name="project",
            state="ok" if project.enabled else "warning",
            detail=detail if project.enabled else f"memory is off: {project.reason}",
            remedy="" if project.enabled else "switch it on in memd.toml or the environment",
        ),
        _problems("paths", project.memory_dir, project.problems),
        _problems(
            "files",
            "every memory can be read",
            snapshot.problems + tuple(f"{path} has broken frontmatter" for path in damaged),
        ),
    ]


def _rss() -> int:
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # pragma: no cover - a system without /proc
        return 0


def discovery(document: dict[str, Any]) -> Method[Nothing, dict[str, Any]]:
    """Return ``rpc.discover``, which serves the document of all methods."""

    @method("rpc.discover", "read")
    async def discover(_services: Services, _call: Call, _params: Nothing) -> dict[str, Any]:
        """This table, as an OpenRPC document."""
        return document

    return discover


METHODS = (hello, subscribe, unsubscribe, status, doctor, shutdown)
