"""The daemon: one process, one owner of everything, put together here and nowhere else.

Order of a start: the instance lock decides who serves; the socket is made (or taken over from
systemd or launchd); the state file is opened; what a crash left half done is rolled forward; the
memories of the last projects are made ready to be searched; only then is the daemon ready, and then
it works off what it missed. Order of an end: no new connections, running and queued jobs are
drained for up to 60 s, the rest waits in the state file for the next start.
"""

import os
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from socket import socket

import anyio
from anyio.abc import TaskStatus

from memd import __version__
from memd.api.services import Services
from memd.api.table import handlers
from memd.context.service import Contexts, Summaries
from memd.core import limits
from memd.core.clock import Clock
from memd.core.errors import MemdError
from memd.core.places import Places
from memd.daemon import machine, missed, notify
from memd.daemon.agents import messages, progress_lines
from memd.daemon.dreaming import DreamStarter
from memd.daemon.learning import extractions, tool_rules
from memd.daemon.log import Log
from memd.daemon.peers import PeerRelay
from memd.daemon.portable import exports, imports
from memd.daemon.retention import keep_bounded
from memd.daemon.runners import runners
from memd.daemon.teams import ChangeRelay
from memd.dream.gates import Pressure
from memd.dream.service import Dreams
from memd.extract.candidates import statements
from memd.instructions.service import Instructions
from memd.jobs.priority import RequestPriority
from memd.jobs.service import Jobs, Runner
from memd.memories.service import Memories
from memd.model.configured import ENVIRONMENT, Models, Origin, ProgramRuns
from memd.notes.service import Notes
from memd.projects.configuration import Configuration
from memd.projects.project import NoProjectError
from memd.prompt.service import Prompts
from memd.recall.indexes import Indexes
from memd.recall.service import Authorship, Recall
from memd.review.service import Reviews
from memd.rpc.connection import Handler
from memd.rpc.server import Hub, serve
from memd.search.meaning import Meaning
from memd.state.changes import Journal, ProposalTable, migrate
from memd.state.database import Database, StateUnusableError, open_database
from memd.state.tables import (
    SCHEMAS,
    Ages,
    Approvals,
    ContextTable,
    Cursors,
    DreamTable,
    Figures,
    JobTable,
    Ledger,
    Programs,
    Runs,
    SpendTable,
    SuggestionTable,
    Tally,
    TeamTable,
    UsageTable,
    Visits,
)
from memd.store.service import Store
from memd.suggestions.service import Suggestions
from memd.team.service import Memberships, TeamSyncs

__all__ = ["SCHEMAS", "Log", "Ports", "daemon", "run"]

_OPEN = 3  # projects that were visited last; a start opens their index before it serves
_OPEN_SECONDS = 0.5  # and waits no longer for that: the rest is done in the background
_NOTES = 100  # that ``status`` tells; all of them are in the log
_LOOK_SECONDS = 5.0  # what a removed socket costs its users at most


@dataclass(frozen=True, slots=True)
class Ports:
    """What a daemon is given from outside; the caller holds the instance lock.

    ``intact`` says whether clients can still find this daemon: its lock and its socket are those
    at their paths. Blocks for two ``stat``. ``pressure`` says how busy the machine is; blocks too.
    ``origin`` is about the variables of ``environ`` that name a model.
    """

    places: Places
    environ: Mapping[str, str]
    clock: Clock
    log: Log
    listener: socket
    intact: Callable[[], bool] = lambda: True
    pressure: Callable[[], Pressure] = machine.pressure
    origin: Origin = ENVIRONMENT


@asynccontextmanager
async def daemon(ports: Ports, stop: anyio.Event | None = None) -> AsyncIterator[anyio.Event]:
    """Serve for the length of the block; the event is set once somebody asks it to stop.

    Raises StateTooNewError.
    """
    # A full disk must not keep anybody from reading memories.
    opened = partial(open_database, ports.places.database, SCHEMAS, later=True, migrate=migrate)
    database = await anyio.to_thread.run_sync(opened, ports.clock.monotonic)
    stop = stop or anyio.Event()
    hub = Hub()
    try:
        services, starter, by_kind = await _compose(ports, database, hub, stop)
        async with anyio.create_task_group() as group:
            await group.start(services.store.run)
            await group.start(services.recall.run)
            await _open_last(services, Visits(database))
            await group.start(services.jobs.run, by_kind)
            group.start_soon(_warm, services)
            group.start_soon(starter.watch)
            group.start_soon(services.team.run)
            group.start_soon(services.progress.run)
            await group.start(services.messages.run)
            relay = PeerRelay(services.messages, ports.clock, ports.places.socket)
            group.start_soon(relay.run)
            notes, contexts = services.session_notes, services.contexts
            bounded = partial(keep_bounded, database, services.store, services.ages, notes=notes)
            bounded = partial(bounded, contexts=contexts, forget=services.messages.forget)
            group.start_soon(bounded, ports.clock, ports.log)
            methods = handlers(services)
            scope: anyio.CancelScope = await group.start(_serve, ports, methods, hub)
            group.start_soon(missed.work_off, services, methods["hook"], ports.log)
            known = (Cursors(database), Visits(database))
            group.start_soon(missed.catch_up, services, methods["extract"], known, ports.log)
            try:
                yield stop
            finally:
                with anyio.CancelScope(shield=True):
                    scope.cancel()
                    left = await services.jobs.drain(limits.DRAIN_SECONDS)
                    ports.log.note("drained", jobs_left=left)
                    await services.models.aclose()
                group.cancel_scope.cancel()
    finally:
        database.close()


async def run(ports: Ports) -> None:
    """Serve until SIGTERM, SIGINT or ``shutdown``; say when ready, feed systemd's watchdog.

    Raises what ``daemon`` does.
    """
    try:
        await _run(ports)
    except ExceptionGroup as several:
        alone = several.exceptions[0]
        # What keeps it from starting has a sentence and a status; the group would hide both.
        if len(several.exceptions) == 1 and isinstance(alone, MemdError):
            raise alone from None
        raise


async def _run(ports: Ports) -> None:
    stop = anyio.Event()
    async with anyio.create_task_group() as group:
        await group.start(_signals, ports.log, stop)
        async with daemon(ports, stop):
            group.start_soon(_watchdog, ports.environ, ports.clock)
            group.start_soon(_look_after_itself, ports, stop)
            notify.notify(ports.environ, notify.READY)
            socket_path = ports.places.socket
            ports.log.note("ready", socket=socket_path, version=__version__, pid=os.getpid())
            await stop.wait()
            notify.notify(ports.environ, notify.STOPPING)
            ports.log.note("stopping")
        group.cancel_scope.cancel()


async def _compose(
    ports: Ports, database: Database, hub: Hub, stop: anyio.Event
) -> tuple[Services, DreamStarter, Mapping[str, Runner]]:
    """Return what handlers call, what begins dreams, and what jobs do."""
    clock, places, configuration = ports.clock, ports.places, Configuration(ports.places.config)
    memberships, relay = Memberships(os.path.dirname(places.config)), ChangeRelay(hub)
    store, team = _shared(ports, database, relay, memberships, configuration)
    spent, records = SpendTable(database, Tally(places.spent)), Runs(database)
    models, proposals = _models(ports, database, spent), ProposalTable(database)
    instructions = Instructions(Approvals(database), store.projects.client_folders)
    covered, log, locks = instructions.covered, ports.log, DreamTable(database)
    suggestions = Suggestions(store, SuggestionTable(database), clock, covered)
    learns = partial(extractions, database, store, clock, models, records, covered=covered)
    extract = learns(waiting=suggestions.open_ones, note=log.note, joined=memberships.joined)
    dreams = partial(Dreams, store, locks, proposals, clock, note=log.note, covered=covered)
    dreaming = dreams(models=models, runs=records)
    notes = await _recovered(database, log, store.recover, dreaming.recover, models.recover)
    database.on_note(tell := partial(_tell, notes, log))
    work = Jobs(JobTable(database, os.getpid()), clock, hub, on_unexpected=log.unexpected)
    last_visits, busy, priority = Visits(database), ports.pressure, RequestPriority()
    starter = DreamStarter(
        store, dreaming, work, last_visits, clock=clock, priority=priority, pressure=busy, log=log
    )
    mailboxes = messages(database, clock, hub, configuration)
    services = Services(
        store=store,
        prompts=Prompts(store, memberships.joined),
        recall=_recall(ports, database, store, models, memberships, priority=priority, tell=tell),
        extract=extract,
        starter=starter,
        reviews=Reviews(store, proposals, clock),
        memories=Memories(store, clock),
        suggestions=suggestions,
        rules=tool_rules(database, store, clock),
        exports=exports(database, store, configuration, places),
        imports=imports(database, store, clock, places, priority),
        instructions=instructions,
        team=team,
        memberships=memberships,
        session_notes=_session_notes(ports, models, records),
        contexts=Contexts(clock, ContextTable(database)),
        summaries=Summaries(clock, models, records),
        messages=mailboxes,
        progress=progress_lines(mailboxes.register, clock, models, hub, configuration),
        jobs=work,
        models=models,
        spent=spent,
        usage=UsageTable(database),
        ages=Ages(database),
        figures=Figures(database, SCHEMAS),
        runs=records,
        priority=priority,
        clock=clock,
        places=places,
        started=clock.monotonic(),
        notes=notes,
        stop=stop.set,
        hub=hub,
    )
    work_on = partial(runners, store, extract, starter, hub, priority)
    return services, starter, work_on(notes=services.session_notes, summaries=services.summaries)


def _models(ports: Ports, database: Database, spent: SpendTable) -> Models:
    programs = ProgramRuns(ports.environ, ports.places.state_dir, Programs(database))
    return Models(ports.environ, ports.clock, spent, ports.origin, programs)


def _shared(
    ports: Ports,
    database: Database,
    relay: ChangeRelay,
    memberships: Memberships,
    configuration: Configuration,
) -> tuple[Store, TeamSyncs]:
    """Return the store, and the syncs that hear of its changes through the relay."""
    clock, places = ports.clock, ports.places
    store = Store(
        database,
        configuration,
        clock,
        relay,
        home=places.home,
        environ=ports.environ,
        headers=places.headers,
    )
    team = TeamSyncs(
        store,
        TeamTable(database),
        memberships,
        clock,
        relay,
        settings=lambda root: configuration.current(root)[0],
        on_unexpected=ports.log.unexpected,
    )
    relay.noticed = team.noticed
    return store, team


def _recall(
    ports: Ports,
    database: Database,
    store: Store,
    models: Models,
    memberships: Memberships,
    *,
    priority: RequestPriority,
    tell: Callable[[str], None],
) -> Recall:
    # What the indices keep on disk is made anew when it is lost.
    folder = f"{ports.places.state_dir}/index"
    indexes = Indexes(store.reading, threading.Lock, folder, meaning=Meaning(tell))
    teams = TeamTable(database)
    authorship = Authorship(Journal(database).wrote, teams.author, memberships.joined)
    return Recall(
        store.reading,
        Ledger(database),
        ports.clock,
        indexes,
        models,
        priority=priority,
        authorship=authorship,
    )


def _session_notes(ports: Ports, models: Models, records: Runs) -> Notes:
    folder = ports.environ.get("CLAUDE_CONFIG_DIR") or f"{ports.places.home}/.claude"
    return Notes(ports.clock, models, records, config_dir=folder, find_statements=statements)


async def _recovered(
    database: Database, log: Log, *steps: Callable[[], Awaitable[tuple[str, ...]]]
) -> list[str]:
    """Finish what a crash left and return what was done; it is logged.

    A step that cannot use the state file now is done at the file's next use.
    """
    notes: list[str] = []
    for recover in steps:
        with suppress(StateUnusableError):
            notes += await recover()
    notes += database.file.notes
    for note in notes:
        log.warning("recovered", detail=note)
    return notes


async def _open_last(services: Services, last_visits: Visits) -> None:
    """Have the memories of the last projects ready for the first prompt, where that is quick."""
    with suppress(StateUnusableError), anyio.move_on_after(_OPEN_SECONDS):
        for visit in (await anyio.to_thread.run_sync(last_visits.all))[:_OPEN]:
            with suppress(NoProjectError):  # moved or removed
                project, settings, _ = await services.store.where(visit.cwd, visit.environment)
                await services.recall.open(project, settings)


async def _warm(services: Services) -> None:
    """Load what a model needs, so that the first prompt does not wait for it."""
    settings, _ = await services.store.settings()
    await services.models.warm(settings)


def _tell(notes: list[str], log: Log, note: str) -> None:
    """Keep a note for ``status`` and log it; called from whichever thread met the trouble."""
    notes.append(note)
    del notes[:-_NOTES]
    log.warning("repaired", detail=note)


async def _serve(
    ports: Ports,
    methods: Mapping[str, Handler],
    hub: Hub,
    *,
    task_status: TaskStatus[anyio.CancelScope] = anyio.TASK_STATUS_IGNORED,
) -> None:
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            await group.start(
                partial(serve, ports.listener, methods, hub, ports.log, clock=ports.clock)
            )
            task_status.started(scope)


async def _signals(
    log: Log, stop: anyio.Event, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    wanted = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    with anyio.open_signal_receiver(*wanted) as received:
        task_status.started()
        async for number in received:
            if number == signal.SIGHUP:
                log.note("settings", detail="read again at the next use, as after any change")
            else:
                stop.set()


async def _watchdog(environ: Mapping[str, str], clock: Clock) -> None:
    seconds = notify.watchdog_seconds(environ, os.getpid())
    while seconds:
        notify.notify(environ, notify.WATCHDOG)
        await clock.sleep(seconds)


async def _look_after_itself(ports: Ports, stop: anyio.Event) -> None:
    """End the daemon when nobody can find it any more, so that the next client starts another."""
    while await anyio.to_thread.run_sync(ports.intact):
        await ports.clock.sleep(_LOOK_SECONDS)
    ports.log.warning("unreachable", detail="the socket or the lock file was removed; ending")
    stop.set()
