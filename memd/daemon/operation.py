"""hello, subscribe, pause, resume and shutdown."""

import os
from functools import cache
from typing import Any

from anyio import to_thread
from msgspec.structs import replace

from memd import __version__
from memd.base import events
from memd.base.errors import Invalid
from memd.daemon.core import Daemon
from memd.methods.discover import openrpc, rows
from memd.methods.method import Result, forwarded, method
from memd.rpc.call import Call

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


class Welcome(Result):
    """The daemon's name, version and capabilities; a client of any version is served."""

    name: str
    version: str
    protocol: int
    capabilities: list[str]
    pid: int


class Subscribed(Result):
    """The topics that this call named."""

    topics: list[str]


class Stopping(Result):
    """The daemon finishes its jobs and ends."""

    stopping: bool


@method("hello", "read")
async def hello(
    _daemon: Daemon,
    call: Call,
    *,
    client: str = "",
    version: str = "",
    environment: dict[str, str] | None = None,
) -> Welcome:
    """Introduce a client, and return the daemon's version; clients of any version are served.

    Of ``environment`` only the variables of the documented list are used.
    """
    call.connection.caller = replace(
        call.caller,
        client=client[:100],  # a bound: the name is stored with each change
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


@method("subscribe", "read")
async def subscribe(
    daemon: Daemon, call: Call, *, topics: list[str] | None = None, cwd: str | None = None
) -> Subscribed:
    """Send notifications of these topics to this connection.

    Without ``topics`` all topics are meant, and without ``cwd`` all projects.
    """
    wanted = list(events.TOPICS) if topics is None else topics
    for topic in wanted:
        if topic not in events.TOPICS:
            raise Invalid(
                f"there is no topic {topic}",
                hint=f"topics are {', '.join(events.TOPICS)}",
                topic=topic,
            )
    directory = (
        None
        if cwd is None
        else (await to_thread.run_sync(daemon.callers.place, call, cwd)).memory_dir
    )
    call.connection.subscribe(wanted, directory)
    if events.AGENT_PROGRESS in wanted:
        daemon.progress.subscribed()
    return Subscribed(topics=wanted)


@method("shutdown", "operate")
async def shutdown(daemon: Daemon, _call: Call) -> Stopping:
    """Finish the running jobs and end the daemon.

    The answer goes out before the daemon ends.
    """
    daemon.ending.set()
    return Stopping(stopping=True)


@method("rpc.discover", "read")
async def discover(_daemon: Daemon, _call: Call) -> dict[str, Any]:
    """All methods, as an OpenRPC document."""
    return _document()


@cache
def _document() -> dict[str, Any]:
    """Return what ``rpc.discover`` answers: all methods but itself."""
    return openrpc([row for row in rows() if row.name != "rpc.discover"])
