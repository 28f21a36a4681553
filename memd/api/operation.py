"""hello, subscriptions, pause, resume and the end of the daemon."""

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from memd import __version__
from memd.api.memory import project_of
from memd.api.method import Method, Result, forwarded, method
from memd.api.services import Services
from memd.core import events
from memd.core.errors import WrongParameterError
from memd.jobs.breaker import WorkState
from memd.rpc.connection import Call

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


class Stopping(Result):
    """The daemon drains and ends."""

    stopping: bool


class Restarting(Result):
    """The daemon gives way to the version that is installed now."""

    restarting: bool


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
        call.caller,
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
    services.ending.stop()
    return Stopping(stopping=True)


@method("restart", "operate")
async def restart(services: Services, _call: Call) -> Restarting:
    """Have the version that is installed now go on in the daemon's process.

    Running jobs have up to a minute, meanwhile everybody is served; requests under way are
    answered, then connections end. Who connects from then on is served by the new version.
    """
    services.ending.restart()
    return Restarting(restarting=True)


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


def discovery(document: Callable[[], dict[str, Any]]) -> Method[[], dict[str, Any]]:
    """Return ``rpc.discover``, which makes the document of all methods when it is called."""

    @method("rpc.discover", "read")
    async def discover(_services: Services, _call: Call) -> dict[str, Any]:
        """This table, as an OpenRPC document."""
        return document()

    return discover


METHODS = (hello, subscribe, unsubscribe, shutdown, restart, pause, resume)
