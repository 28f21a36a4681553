"""hello, subscriptions, status, pause, resume and the end of the daemon."""

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from anyio import to_thread

from memd import __version__
from memd.api import spending
from memd.api.memory import project_of
from memd.api.method import Method, Result, forwarded, method
from memd.api.services import Services
from memd.core import events
from memd.core.errors import MemdError, WrongParameterError
from memd.jobs.breaker import WorkState
from memd.model.configured import ModelState
from memd.projects.project import is_of_agent
from memd.rpc.connection import Call
from memd.state.tables import Breaker, ContextTotals, SuggestionCounts

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


class UnknownTopicError(WrongParameterError):
    """A subscription names a topic that memd does not have."""

    hint = f"topics are {', '.join(events.TOPICS)}"

    def __init__(self, topic: str) -> None:
        super().__init__(f"there is no topic {topic}", topic=topic)


class Welcome(Result):
    """Who answers; a client of any version is served."""

    name: str
    version: str
    protocol: int
    capabilities: list[str]
    pid: int


class Subscribed(Result):
    """The topics that this call named."""

    topics: list[str]


class Status(Result):
    """How the daemon is; sizes in bytes, times in seconds; ``spend`` is today's.

    ``jobs`` counts the newest by state, and those that are ``parked``. Background work is paused
    since ``paused_since`` (seconds since 1970), or null. ``proposals`` counts what dreams want a
    person to decide, by memory directory, for the directories among ``projects``. ``suggestions``
    counts those of all projects that wait, went out to a session, or were decided of late.
    ``contexts`` counts conversations, stored results and their bytes, and lost prompt caches with
    the tokens that were paid again. ``teams`` has the state of each directory that joined a team,
    as ``team.status`` has it.
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
    suggestions: SuggestionCounts
    contexts: ContextTotals
    teams: dict[str, str]
    model: ModelState
    spend: spending.SpendToday
    notes: list[str]


class Stopping(Result):
    """The daemon drains and ends."""

    stopping: bool


@method("hello", "read")
async def hello(
    _services: Services,
    call: Call,
    *,
    client: str = "",
    version: str = "",
    environment: dict[str, str] | None = None,
) -> Welcome:
    """Say who calls, learn who answers; any version is served.

    ``environment`` takes only the variables of the documented list.
    """
    call.connection.caller = replace(
        call.connection.caller,
        client=client[:100],
        version=version[:100],
        environment=forwarded(environment),
    )
    return Welcome(
        name="memd",
        version=__version__,
        protocol=PROTOCOL,
        capabilities=list(CAPABILITIES),
        pid=os.getpid(),
    )


@method("subscribe", "read", UnknownTopicError)
async def subscribe(
    services: Services, call: Call, *, topics: list[str] | None = None, cwd: str | None = None
) -> Subscribed:
    """Send this connection notifications.

    All topics and projects are meant unless given, here and in ``unsubscribe``.
    """
    named, directory = await _subscription(services, call, topics, cwd)
    call.connection.subscribe(named, directory)
    if events.AGENT_PROGRESS in named:
        services.progress.subscribed()
    return Subscribed(topics=named)


@method("unsubscribe", "read", UnknownTopicError)
async def unsubscribe(
    services: Services, call: Call, *, topics: list[str] | None = None, cwd: str | None = None
) -> Subscribed:
    """Send no more of them."""
    named, directory = await _subscription(services, call, topics, cwd)
    call.connection.unsubscribe(named, directory)
    return Subscribed(topics=named)


@method("status", "read")
async def status(services: Services, _call: Call) -> Status:
    """Versions, uptime, size, jobs, pauses, projects, the model and its cost today."""
    jobs: dict[str, int] = {}
    for job in await services.jobs.list("", 200):
        jobs[job.state] = jobs.get(job.state, 0) + 1
    parked = len(await services.jobs.list("", 200, parked=True))
    state = await services.jobs.state()
    settings, _ = await services.store.settings(None)
    directories = await services.store.directories()
    projects = sorted(one for one in directories if not is_of_agent(one))
    waiting = await services.reviews.waiting()
    return Status(
        name="memd",
        version=__version__,
        pid=os.getpid(),
        uptime=round(services.clock.monotonic() - services.started, 3),
        socket=services.places.socket,
        state_dir=services.places.state_dir,
        connections=services.connections(),
        rss=await to_thread.run_sync(_rss),
        jobs=jobs | ({"parked": parked} if parked else {}),
        paused_since=state.paused_since,
        breakers=state.breakers,
        projects=projects,
        proposals={directory: waiting[directory] for directory in projects if directory in waiting},
        suggestions=await services.suggestions.counts(),
        contexts=await services.contexts.totals(),
        teams=await _teams(services),
        model=services.models.state(settings),
        spend=await spending.today(services, settings),
        notes=list(services.notes),
    )


@method("pause", "operate")
async def pause(services: Services, _call: Call, *, now: bool = False) -> WorkState:
    """Start no background work until resume, also after a restart; prompts go on.

    With ``now`` running jobs are put back into the queue.
    """
    return await services.jobs.pause(now=now)


@method("resume", "operate")
async def resume(services: Services, _call: Call) -> WorkState:
    """Let background work go on, and ask models again that failed."""
    return await services.jobs.resume()


@method("shutdown", "operate")
async def shutdown(services: Services, _call: Call) -> Stopping:
    """Drain the jobs and end the daemon.

    The answer goes out before the daemon ends.
    """
    services.stop()
    return Stopping(stopping=True)


async def _subscription(
    services: Services, call: Call, topics: list[str] | None, cwd: str | None
) -> tuple[list[str], str | None]:
    named = list(events.TOPICS) if topics is None else topics
    for topic in named:
        if topic not in events.TOPICS:
            raise UnknownTopicError(topic)
    if cwd is None:
        return named, None
    return named, (await project_of(services, call, cwd)).memory_dir


async def _teams(services: Services) -> dict[str, str]:
    """Return the state of each directory that joined a team."""
    states = {}
    for membership in await to_thread.run_sync(services.memberships.all):
        with suppress(MemdError):  # it has just left, or its directory cannot be read
            state = await services.team.status(membership.directory)
            states[membership.directory] = state.state
    return states


def _rss() -> int:
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # pragma: no cover - a system without /proc
        return 0


def discovery(document: Callable[[], dict[str, Any]]) -> Method[[], dict[str, Any]]:
    """Return ``rpc.discover``, which makes the document of all methods when it is called."""

    @method("rpc.discover", "read")
    async def discover(_services: Services, _call: Call) -> dict[str, Any]:
        """This table, as an OpenRPC document."""
        return document()

    return discover


METHODS = (hello, subscribe, unsubscribe, status, shutdown, pause, resume)
