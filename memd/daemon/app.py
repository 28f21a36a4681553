"""The daemon: one process that owns everything, composed here and nowhere else.

Order of a start: the instance lock decides which process serves; the socket is made (or taken over
from systemd or launchd); the state file is opened; what a crash left half done is undone; only then
is the daemon ready, and then it handles the events that it missed. Order of an end: running and
queued jobs are drained for up to 60 s while requests are still served, other jobs wait in the state
file for the next start; then no new connection is accepted and open requests are answered.
"""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from socket import socket

import anyio
from anyio import to_thread
from anyio.abc import TaskStatus
from msgspec import Struct, field

from memd.agent.runs import Runs
from memd.api.dialects import DIALECTS
from memd.api.services import Services
from memd.base import limits
from memd.base.clock import Clock
from memd.base.places import Places
from memd.context.service import Contexts, Summaries
from memd.daemon import machine, missed
from memd.daemon.agents import messages, progress_lines
from memd.daemon.background import Background
from memd.daemon.background_work import BackgroundWork, statements
from memd.daemon.dreaming import DreamStarter
from memd.daemon.log import Log
from memd.daemon.portable import exports, imports
from memd.daemon.retention import keep_bounded
from memd.daemon.runners import runners
from memd.daemon.table import handlers
from memd.daemon.teams import ChangeRelay
from memd.dream.lock import DreamLock
from memd.instructions.service import Instructions
from memd.jobs.priority import RequestPriority
from memd.jobs.service import Jobs, Runner
from memd.mcp import server as mcp
from memd.memories.journal import Journal
from memd.memories.service import Memories
from memd.methods.callers import Callers
from memd.model.configured import ENVIRONMENT, Models, Origin, ProgramRuns
from memd.notes.service import Notes
from memd.projects.configuration import Configuration
from memd.projects.projects import Projects
from memd.projects.switches import CLAUDE_PROGRAM, is_below
from memd.prompt.service import Prompts
from memd.recall.service import Authorship, Recall
from memd.review.service import Reviews
from memd.rpc.call import Handler
from memd.rpc.server import Hub, serve
from memd.rules.service import ToolRules
from memd.state import search
from memd.state.database import Database, StateUnusableError, open_database
from memd.state.docs import Docs
from memd.state.jobs import JobTable
from memd.state.ledger import Ledger
from memd.state.period import Period
from memd.state.proposals import ProposalTable
from memd.state.schemas import SCHEMAS as TABLES
from memd.state.search import WordSearch
from memd.state.spend import SpendTable
from memd.state.suggestions import SuggestionTable
from memd.state.teams import TeamTable
from memd.store import log as change_log
from memd.store import sync as rows
from memd.store.convert import convert
from memd.store.lock import is_alive
from memd.store.log import ChangeLog
from memd.store.store import Store
from memd.suggestions.service import Suggestions
from memd.team.service import Memberships, TeamSyncs

__all__ = ["SCHEMAS", "Log", "Ports", "daemon"]

_NOTES_SHOWN = 100  # by ``status``; the log has all
SCHEMAS = (*TABLES, change_log.SCHEMA, rows.SCHEMA, search.SCHEMA)


class Ports(Struct, frozen=True):
    """What a daemon gets from its caller, which holds the instance lock.

    ``intact`` says whether clients can still reach this daemon: the files at the paths of its lock
    and socket are still its own. It blocks for two ``stat``. ``on_battery`` says how the machine
    runs, and blocks too. ``origin`` says where the variables that name a model are from.
    """

    places: Places
    environ: Mapping[str, str]
    clock: Clock
    log: Log
    listener: socket
    intact: Callable[[], bool] = lambda: True
    on_battery: Callable[[], bool] = machine.on_battery
    origin: Origin = ENVIRONMENT


@asynccontextmanager
async def daemon(ports: Ports, ending: anyio.Event | None = None) -> AsyncIterator[anyio.Event]:
    """Serve while the block runs; the yielded event is set once the daemon is asked to end."""
    # ``later``: with a full disk memories can still be read.
    open_state = partial(open_database, ports.places.database, SCHEMAS, later=True, convert=convert)
    database = await to_thread.run_sync(open_state)
    database.file.log_fault = ports.log.unexpected
    ending = ending or anyio.Event()
    parting = _Parting()
    hub = Hub()
    try:
        services, starter, job_runners = await _compose(ports, database, hub, ending)
        async with anyio.create_task_group() as group:
            background = Background(group, ports.clock, ports.log, services.failing)
            await background.start("store", services.store.run)
            await background.start("jobs", partial(services.jobs.run, job_runners))
            background.start_soon("models", partial(_warm, services))
            background.start_soon("dreams", starter.watch)
            background.start_soon("team", services.team.run)
            background.start_soon("progress", services.progress.run)
            await background.start("messages", services.messages.run)
            prune_records = partial(
                keep_bounded,
                notes=services.session_notes,
                contexts=services.contexts,
                forget=services.messages.forget,
            )
            pruned = (database, services.projects)
            background.start_soon(
                "retention", partial(prune_records, *pruned, ports.clock, ports.log)
            )
            methods = handlers(services)
            served = {**methods, **mcp.handlers(methods, ports.places.home, machine.process)}
            await group.start(_serve, ports, served, hub, parting)

            def in_place() -> bool:
                """Return whether clients reach this daemon, and it its state file. Blocks."""
                return ports.intact() and database.is_in_place()

            check = partial(missed.check_regularly, services, methods["hook"], in_place, ports.log)
            background.start_soon("checks", check)
            catch_up = partial(
                missed.catch_up, services, methods["extract"], Docs(database), ports.log
            )
            background.start_soon("catch-up", catch_up)
            try:
                yield ending
            finally:
                with anyio.CancelScope(shield=True):
                    jobs_left = await services.jobs.drain(limits.DRAIN_SECONDS)
                    ports.log.note("drained", jobs_left=jobs_left)
                    parting.begun.set()
                    await parting.ended.wait()
                    await services.recall.flush()
                    await services.models.aclose()
                group.cancel_scope.cancel()
    finally:
        database.close()


async def _compose(
    ports: Ports, database: Database, hub: Hub, ending: anyio.Event
) -> tuple[Services, DreamStarter, Mapping[str, Runner]]:
    """Return the services of the handlers, the starter of dreams, and a runner by kind of job."""
    clock, places, configuration = ports.clock, ports.places, Configuration(ports.places.config)
    memberships, relay = Memberships(os.path.dirname(places.config)), ChangeRelay(hub)
    store, team, projects, callers = _shared(ports, database, relay, memberships, configuration)
    spent, docs, suggested = SpendTable(database), Docs(database), SuggestionTable(database)
    models, records = _models(ports, database, spent), Runs(docs)
    instructions = Instructions(docs, projects.client_folders, callers)
    proposals, log = ProposalTable(database), ports.log
    joined, priority = memberships.joined, RequestPriority()
    suggestions = Suggestions(store, suggested, clock, callers, instructions.covered)
    make_work = partial(BackgroundWork, database, docs, clock, log, store, models, records)
    work = make_work(proposals, suggested, suggestions, instructions, joined)
    unlock = partial(to_thread.run_sync, DreamLock(docs, clock, is_alive).recover)
    notes = await _recover(database, log, store.recover, unlock, models.recover)
    jobs = Jobs(JobTable(database, os.getpid()), clock, hub, on_unexpected=log.unexpected)
    make_starter = partial(DreamStarter, callers, projects, work.make_dreams, jobs, docs)
    starter = make_starter(clock=clock, priority=priority, on_battery=ports.on_battery, log=log)
    mailboxes = messages(database, clock, hub, configuration, places.socket, callers=callers)
    archives = (database, store, projects, places, callers)
    recall = _recall(ports, database, store, models, joined, priority=priority, callers=callers)
    services = Services(
        callers=callers,
        store=store,
        projects=projects,
        prompts=Prompts(store.reading, joined, callers, instructions.text),
        recall=recall,
        journal=Journal(store, callers, recall.last_surfaced),
        starter=starter,
        reviews=Reviews(store, proposals, clock, callers),
        memories=Memories(store, clock, callers, team, work.proven),
        suggestions=suggestions,
        rules=ToolRules(store, docs, clock, callers),
        exports=exports(*archives),
        imports=imports(*archives, clock=clock, joined=joined, checkpoint=priority.checkpoint),
        instructions=instructions,
        team=team,
        session_notes=_session_notes(ports, models, records),
        contexts=Contexts(clock, docs, callers),
        summaries=Summaries(clock, models, records),
        messages=mailboxes,
        progress=progress_lines(mailboxes.register, clock, models, hub, configuration),
        jobs=jobs,
        models=models,
        spent=spent,
        period=Period(database),
        runs=records,
        priority=priority,
        clock=clock,
        places=places,
        started=clock.monotonic(),
        notes=notes,
        ending=ending,
        hub=hub,
    )
    make_runners = partial(runners, notes=services.session_notes, summaries=services.summaries)
    return services, starter, make_runners(projects, work.make_extractions, starter, hub, priority)


def _models(ports: Ports, database: Database, spent: SpendTable) -> Models:
    """Return the configured models, also those that are a program."""
    programs = ProgramRuns(ports.environ, ports.places.state_dir, Docs(database))
    return Models(ports.environ, ports.clock, spent, ports.origin, programs)


def _shared(
    ports: Ports,
    database: Database,
    relay: ChangeRelay,
    memberships: Memberships,
    configuration: Configuration,
) -> tuple[Store, TeamSyncs, Projects, Callers]:
    """Return the store, the team syncs, which get its changes, the projects and the callers."""
    clock, places = ports.clock, ports.places
    projects = Projects(
        configuration,
        Docs(database),
        dict(ports.environ),
        places.home,
        lambda pid: is_below(machine.process, pid, (CLAUDE_PROGRAM,)),
    )
    callers = Callers(projects, machine.process, clock, hooked=DIALECTS)
    table = TeamTable(database, ChangeLog(database).team_text)
    store = Store(database, clock, relay, author=table.author)
    team = TeamSyncs(
        store,
        table,
        memberships,
        clock,
        relay,
        callers=callers,
        settings=lambda root: configuration.current(root)[0],
        memory_off=projects.off_by_files,
        on_unexpected=ports.log.unexpected,
    )
    relay.noticed = team.noticed
    callers.on_visit = team.visited
    return store, team, projects, callers


def _recall(
    ports: Ports,
    database: Database,
    store: Store,
    models: Models,
    joined: Callable[[str], bool],
    *,
    priority: RequestPriority,
    callers: Callers,
) -> Recall:
    """Return the service that finds memories.

    ``joined`` says whether a memory directory is a team's.
    """
    teams = TeamTable(database)
    authorship = Authorship(store.past.is_own, teams.author, joined)
    return Recall(
        store.reading,
        WordSearch(database),
        Ledger(database),
        ports.clock,
        models,
        priority=priority,
        authorship=authorship,
        callers=callers,
    )


def _session_notes(ports: Ports, models: Models, records: Runs) -> Notes:
    """Return the service of session notes."""
    folder = ports.environ.get("CLAUDE_CONFIG_DIR") or f"{ports.places.home}/.claude"
    return Notes(ports.clock, models, records, config_dir=folder, find_statements=statements)


async def _recover(
    database: Database, log: Log, *steps: Callable[[], Awaitable[tuple[str, ...]]]
) -> list[str]:
    """Finish what a crash left; return sentences about it, which are logged as well.

    A step for which the state file is unusable is skipped; it is done at the file's next use.
    """
    notes: list[str] = []
    for recover in steps:
        with suppress(StateUnusableError):
            notes += await recover()
    notes += database.file.notes
    for note in notes:
        log.warning("recovered", detail=note)
    database.file.tell = partial(_add_note, notes, log)
    return notes


async def _warm(services: Services) -> None:
    """Load what a model needs, so that the first prompt does not wait for it."""
    settings, _ = await services.projects.settings()
    await services.models.warm(settings)


def _add_note(notes: list[str], log: Log, note: str) -> None:
    """Log a note and add it to the latest ones for ``status``; called from any thread."""
    notes.append(note)
    del notes[:-_NOTES_SHOWN]
    log.warning("repaired", detail=note)


class _Parting(Struct, frozen=True):
    """Two events: connections are to end (``begun``), and all have ended (``ended``)."""

    begun: anyio.Event = field(default_factory=anyio.Event)
    ended: anyio.Event = field(default_factory=anyio.Event)


async def _serve(
    ports: Ports,
    methods: Mapping[str, Handler],
    hub: Hub,
    parting: _Parting,
    *,
    task_status: TaskStatus[None],
) -> None:
    """Serve the methods at the socket until ``parting.begun``, then set ``parting.ended``."""
    serve_methods = partial(serve, ports.listener, methods, hub, ports.log)
    try:
        await serve_methods(ending=parting.begun, task_status=task_status)
    finally:
        parting.ended.set()
