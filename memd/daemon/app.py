"""The daemon: one process that owns everything, composed here and nowhere else.

Order of a start: the instance lock decides which process serves; the socket is made (or taken over
from systemd or launchd); the state file is opened; what a crash left half done is undone; only then
is the daemon ready, and then it handles the events that it missed. Order of an end: running and
queued jobs are drained for up to 60 s while requests are still served, other jobs wait in the state
file for the next start; then no new connection is accepted and open requests are answered.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial

import anyio
from anyio.abc import TaskStatus
from msgspec import Struct, field

from memd.base import limits
from memd.client import hook_file
from memd.daemon import machine, missed
from memd.daemon.background import Background
from memd.daemon.core import SCHEMAS, Daemon, Ports, make_core
from memd.daemon.log import Log
from memd.daemon.retention import keep_bounded
from memd.daemon.rooms import compose
from memd.daemon.table import handlers
from memd.mcp import server as mcp
from memd.methods.method import forwarded
from memd.rpc.call import Handler
from memd.rpc.server import Hub, serve
from memd.state.database import open_database
from memd.store.convert import convert

__all__ = ["SCHEMAS", "Log", "Ports", "daemon"]


@asynccontextmanager
async def daemon(ports: Ports, ending: anyio.Event | None = None) -> AsyncIterator[anyio.Event]:
    """Serve while the block runs; the yielded event is set once the daemon is asked to end."""
    # ``later``: with a full disk memories can still be read.
    open_state = partial(open_database, ports.places.database, SCHEMAS, later=True, convert=convert)
    database = await anyio.to_thread.run_sync(open_state)
    database.file.log_fault = ports.log.unexpected
    ending = ending or anyio.Event()
    parting = _Parting()
    try:
        whole = await compose(make_core(ports, database, Hub()), ending)
        async with anyio.create_task_group() as group:
            background = Background(group, whole.clock, whole.log, whole.failing)
            await _start_rooms(whole, background)
            methods = handlers(whole)
            served = {**methods, **mcp.handlers(methods, whole.places.home, machine.process)}
            await group.start(_serve, whole, served, parting)

            def in_place() -> bool:
                """Return whether clients reach this daemon, and it its state file. Blocks."""
                return ports.intact() and database.is_in_place()

            check = partial(missed.check_regularly, whole, methods["hook"], in_place)
            background.start_soon("checks", check)
            catch_up = partial(missed.catch_up, whole, methods["extract"])
            background.start_soon("catch-up", catch_up)
            try:
                yield ending
            finally:
                with anyio.CancelScope(shield=True):
                    jobs_left = await whole.jobs.drain(limits.DRAIN_SECONDS)
                    ports.log.note("drained", jobs_left=jobs_left)
                    parting.begun.set()
                    await parting.ended.wait()
                    await whole.recall.flush()
                    await whole.models.aclose()
                group.cancel_scope.cancel()
    finally:
        database.close()


async def _start_rooms(whole: Daemon, background: Background) -> None:
    """Start what runs in the background as long as the daemon does."""
    await background.start("store", whole.store.run)
    await background.start("jobs", partial(whole.jobs.run, whole.runners))
    background.start_soon("models", partial(_warm, whole))
    background.start_soon("hook", partial(_make_native_hook, whole))
    background.start_soon("dreams", whole.dreams.watch)
    background.start_soon("team", whole.team.run)
    background.start_soon("progress", whole.progress.run)
    await background.start("messages", whole.messages.run)
    background.start_soon(
        "retention",
        partial(
            keep_bounded,
            whole.database,
            whole.projects,
            whole.clock,
            whole.log,
            notes=whole.session_notes,
            contexts=whole.contexts,
            forget=whole.messages.forget,
        ),
    )


async def _make_native_hook(whole: Daemon) -> None:
    """Compile the native hook where the Python one stands in, as after an upgrade."""
    try:
        await anyio.to_thread.run_sync(hook_file.make_native, whole.places)
    except OSError as error:  # the Python hook works
        whole.log.warning("hook", detail=f"{hook_file.hook_path(whole.places)}: {error}")


async def _warm(whole: Daemon) -> None:
    """Load what a model needs, so that the first prompt does not wait for it."""
    settings, _ = await whole.projects.settings()
    await whole.models.warm(settings)


class _Parting(Struct, frozen=True):
    """Two events: connections are to end (``begun``), and all have ended (``ended``)."""

    begun: anyio.Event = field(default_factory=anyio.Event)
    ended: anyio.Event = field(default_factory=anyio.Event)


async def _serve(
    whole: Daemon,
    methods: Mapping[str, Handler],
    parting: _Parting,
    *,
    task_status: TaskStatus[None],
) -> None:
    """Serve the methods at the socket until ``parting.begun``, then set ``parting.ended``."""
    serve_methods = partial(serve, whole.ports.listener, methods, whole.hub, whole.log)
    environ = forwarded(whole.ports.environ)
    try:
        await serve_methods(environ=environ, ending=parting.begun, task_status=task_status)
    finally:
        parting.ended.set()
