"""The daemon as one value, and its core: state file, store, projects, callers, models and jobs.

Whoever composes a room takes from the core what the room needs. Methods that look across all rooms
are functions of the whole daemon.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from socket import socket

import anyio
from msgspec import Struct, field

from memd.agent.runs import Runs
from memd.base.clock import Clock
from memd.base.places import Places
from memd.base.settings import Settings
from memd.context.service import Contexts
from memd.daemon import machine
from memd.daemon.dreaming import DreamStarter
from memd.daemon.log import Log
from memd.daemon.teams import ChangeRelay
from memd.extract.starting import ExtractionStarter
from memd.hooks.dialects import DIALECTS
from memd.instructions.service import Instructions
from memd.jobs.priority import RequestPriority
from memd.jobs.service import Jobs, Runner
from memd.messages.service import Messages
from memd.methods.callers import Callers
from memd.model.configured import ENVIRONMENT, Models, Origin, ProgramRuns
from memd.notes.service import Notes
from memd.progress.service import ProgressLines
from memd.projects.configuration import Configuration
from memd.projects.projects import Projects
from memd.projects.switches import CLAUDE_PROGRAM, is_below
from memd.recall.service import Recall
from memd.rpc.server import Hub
from memd.rules.service import ToolRules
from memd.state import search
from memd.state.database import Database
from memd.state.docs import Docs
from memd.state.jobs import JobTable
from memd.state.schemas import SCHEMAS as TABLES
from memd.state.spend import SpendTable
from memd.state.teams import TeamTable
from memd.store import log as change_log
from memd.store import sync as rows
from memd.store.log import ChangeLog
from memd.store.store import Store
from memd.team.service import Memberships, TeamSyncs

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


class Core(Struct, frozen=True):
    """The parts of the daemon that several rooms use; ``joined`` says if a directory is a team's.

    ``settings_of`` returns the settings of a project's root, and blocks, as ``joined`` does.
    """

    ports: Ports
    clock: Clock
    log: Log
    places: Places
    database: Database
    docs: Docs
    hub: Hub
    projects: Projects
    settings_of: Callable[[str], Settings]
    callers: Callers
    store: Store
    team: TeamSyncs
    joined: Callable[[str], bool]
    spent: SpendTable
    models: Models
    programs: ProgramRuns
    runs: Runs
    jobs: Jobs
    priority: RequestPriority


class Daemon(Core, frozen=True):
    """The whole daemon: its core, and the rooms that are asked about or run as long as it does.

    ``methods`` are the services whose functions are methods. ``started`` is in monotonic seconds.
    ``notes`` are sentences about repairs; more may come while the daemon runs. ``ending`` is set to
    end the daemon. ``failing`` has a sentence about each background service that failed and waits
    to be started again, by its name. These two are used on the event loop only.
    """

    recall: Recall
    rules: ToolRules
    instructions: Instructions
    session_notes: Notes
    contexts: Contexts
    messages: Messages
    progress: ProgressLines
    extractions: ExtractionStarter
    dreams: DreamStarter
    methods: tuple[object, ...]
    runners: Mapping[str, Runner]
    started: float
    notes: Sequence[str]
    ending: anyio.Event
    failing: dict[str, str] = field(default_factory=dict)


def make_core(ports: Ports, database: Database, hub: Hub) -> Core:
    """Return the core of a daemon; nothing of it runs yet."""
    clock, log, places, docs = ports.clock, ports.log, ports.places, Docs(database)
    configuration = Configuration(places.config)
    projects = Projects(
        configuration,
        docs,
        dict(ports.environ),
        places.home,
        lambda pid: is_below(machine.process, pid, (CLAUDE_PROGRAM,)),
    )
    callers = Callers(projects, machine.process, clock, hooked=DIALECTS)
    relay, memberships = ChangeRelay(hub), Memberships(os.path.dirname(places.config))
    teams, spent = TeamTable(database, ChangeLog(database).team_text), SpendTable(database)
    store = Store(database, clock, relay, author=teams.author)

    def settings_of(root: str) -> Settings:
        return configuration.current(root)[0]

    team = TeamSyncs(
        store,
        teams,
        memberships,
        clock,
        relay,
        callers=callers,
        settings=settings_of,
        memory_off=projects.off_by_files,
        on_unexpected=log.unexpected,
    )
    relay.noticed, callers.on_visit = team.noticed, team.visited
    programs = ProgramRuns(ports.environ, places.state_dir, docs)  # models that are a program
    return Core(
        ports=ports,
        clock=clock,
        log=log,
        places=places,
        database=database,
        docs=docs,
        hub=hub,
        projects=projects,
        settings_of=settings_of,
        callers=callers,
        store=store,
        team=team,
        joined=memberships.joined,
        spent=spent,
        models=Models(ports.environ, clock, spent, ports.origin, programs),
        programs=programs,
        runs=Runs(docs),
        jobs=Jobs(JobTable(database, os.getpid()), clock, hub, on_unexpected=log.unexpected),
        priority=RequestPriority(),
    )
