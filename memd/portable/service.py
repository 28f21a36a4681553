"""Run exports and imports: the only file of this room that waits.

Disk and state file are used in worker threads. One export runs at a time, so that none deletes the
temporary files of another, and one import. A source is read before anything is changed. Each
directory gets one change set; a failed one leaves the earlier ones in place. An import that is
cancelled stops before its next change set; one that is being written is completed.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
from anyio import from_thread, to_thread
from msgspec import Struct

from memd import __version__
from memd.core.agents import AgentScope
from memd.core.clock import Clock
from memd.core.errors import MemdError
from memd.core.imports import PastChange, RawNotes
from memd.core.values import Draft, Provenance, Tree
from memd.core.yielding import yielding
from memd.files.directory import DirectoryMissingError
from memd.files.disk import Disk, real_disk
from memd.portable import collecting
from memd.portable.destination import Destination, check_destination
from memd.portable.exporting import DirectoryExport, Export
from memd.portable.importing import (
    EmptyTree,
    accepted_proposals,
    known_files,
    provenance,
    read_source,
    remember_originals,
    restore_notes,
    store_proposal,
)
from memd.portable.importing import ImportPorts as ImportPorts
from memd.portable.importing import ImportRequest as ImportRequest
from memd.portable.importing import ImportTables as ImportTables
from memd.portable.importing import ImportTarget as ImportTarget
from memd.portable.merging import plan_import
from memd.portable.plan import ImportPlan, Incoming
from memd.portable.results import ImportedFolder, ImportReport
from memd.portable.results import ImportResult as ImportResult
from memd.portable.values import ChatSession as ChatSession
from memd.portable.values import (
    ExportPart,
    ExportRequest,
    ExportResult,
    LeftOutFile,
    ProposedMemory,
)
from memd.portable.values import ImportReading as ImportReading
from memd.portable.values import ReadProject as ReadProject
from memd.portable.values import SourceKind as SourceKind
from memd.portable.writing import Staging
from memd.projects.project import agent_directory
from memd.projects.projects import AgentMemory, KnownProject, agents_in, own_agents
from memd.state.changes import Filter, select_past
from memd.state.tables import ImportTable
from memd.store.service import Store

FindTargets = Callable[[ImportReading], Awaitable[Mapping[str, ImportTarget]]]
_HAS_NO_TARGET = "nobody said where it goes: --project {}=DIR"
_NEEDS_ACCEPT = "agents' memories, session notes and history come with --accept alone"
_TOO_LARGE = "{}: this is too much for a proposal; --accept takes it, and memctl undo takes it back"
Report = Callable[[int, int], Awaitable[None]]  # projects done, of how many
_IN_MEMORY_FOLDER = "it lies in a memory directory"
_IN_OWN_FOLDER = "it lies among memd's own files"


class ExportPorts(Struct, frozen=True):
    """Functions of other rooms that exports call; all of them block.

    ``known`` returns all projects, ``notes`` the session notes below folders of transcripts,
    ``settings`` the options of the user's own settings file and that file's mtime in ns. ``own``
    are memd's own folders, where exports are not allowed.
    """

    known: Callable[[], tuple[KnownProject, ...]]
    notes: Callable[[Sequence[str]], Sequence[RawNotes]]
    settings: Callable[[], tuple[Mapping[str, Any], int]]
    own: tuple[str, ...]


class Exports:
    """Runs the exports of a daemon, one at a time."""

    def __init__(
        self, store: Store, originals: ImportTable, ports: ExportPorts, disk: Disk | None = None
    ) -> None:
        self._store, self._originals, self._ports = store, originals, ports
        self._disk = disk or real_disk()
        self._lock = anyio.Lock()  # held by the export that runs

    async def projects(self) -> tuple[KnownProject, ...]:
        """Return all known projects. Raises StateUnusableError."""
        return await to_thread.run_sync(self._ports.known)

    async def export(self, request: ExportRequest, report: Report) -> ExportResult:
        """Write an archive; it appears at its destination only when it is complete.

        Raises DestinationError, DirectoryUnusableError and StateUnusableError.
        """
        async with self._lock:
            destination = await to_thread.run_sync(self._check_destination, request)
            staging = Staging(destination, self._disk)
            try:
                export = await to_thread.run_sync(self._begin, staging, request)
                await self._export_all(export, request, report)
                return await to_thread.run_sync(export.finish)
            finally:
                with anyio.CancelScope(shield=True):  # temporary files go also if cancelled
                    await to_thread.run_sync(staging.close)

    async def _export_all(self, export: Export, request: ExportRequest, report: Report) -> None:
        """Export all requested projects and parts."""
        parts, total = request.parts, len(request.projects)
        projects_by_id = zip(export.ids, request.projects, strict=True)
        for count, (project_id, project) in enumerate(projects_by_id):
            await report(count, total)
            folder, directory = f"projects/{project_id}/memory/", project.directory
            work = DirectoryExport(export, self._originals, project_id, folder, directory, parts)
            changes = await self._export_memories(work)
            history = collecting.history(changes, self._originals, project_id)
            await to_thread.run_sync(export.add, "", "history/", history)
            if ExportPart.AGENTS in parts:
                agents = await to_thread.run_sync(agents_in, project.root)
                await self._export_agents(export, project_id, agents)
            if ExportPart.NOTES in parts:
                await to_thread.run_sync(self._export_notes, export, project_id, project)
        if ExportPart.AGENTS in parts:
            for config in sorted({project.config for project in request.projects}):
                agents = await to_thread.run_sync(own_agents, config)
                await self._export_agents(export, "", agents)
        if ExportPart.SETTINGS in parts:
            await to_thread.run_sync(self._export_settings, export)
        await report(total, total)

    async def _export_agents(
        self, export: Export, project_id: str, agents: Sequence[AgentMemory]
    ) -> None:
        """Export the memories of a project's sub-agents, or of the user's if the id is ""."""
        agents_folder = f"projects/{project_id}/agents" if project_id else "agents"
        for each in agents:
            folder = f"{agents_folder}/{each.scope}/{each.agent}/"
            await self._export_memories(
                DirectoryExport(export, self._originals, project_id, folder, each.directory)
            )

    async def _export_memories(self, work: DirectoryExport) -> list[PastChange]:
        """Export a directory's memories while memd changes nothing there; return its history."""
        # First without the store's lock: the check for credentials is slow, and its results are
        # cached, so that writers need not wait for it.
        await to_thread.run_sync(work.prepare)
        history = ExportPart.HISTORY in work.parts
        return await self._store.still(work.directory, work.export_memories, history=history)

    def _begin(self, staging: Staging, request: ExportRequest) -> Export:
        """Open the staging and return an empty export into it. Blocks."""
        staging.open()
        return Export(staging, request, __version__)

    def _export_notes(self, export: Export, project_id: str, project: KnownProject) -> None:
        """Export the session notes of a project. Blocks."""
        notes = collecting.notes(self._ports.notes(project.sessions))
        export.add(project_id, f"projects/{project_id}/notes/", notes)

    def _export_settings(self, export: Export) -> None:
        """Export the user's settings. Blocks."""
        options, mtime_ns = self._ports.settings()
        export.add("", "", collecting.settings(options, mtime_ns))

    def _check_destination(self, request: ExportRequest) -> Destination:
        """Return the destination, which lies in no folder of memories or of memd. Blocks.

        Raises DestinationError.
        """
        projects = (*self._ports.known(), *request.projects)
        memory_folders = sorted({project.directory for project in projects})
        forbidden = [(directory, _IN_MEMORY_FOLDER) for directory in memory_folders]
        forbidden += [(directory, _IN_OWN_FOLDER) for directory in self._ports.own]
        return check_destination(request.destination, forbidden)


class Imports:
    """Runs the imports of a daemon, one at a time."""

    def __init__(
        self, store: Store, tables: ImportTables, clock: Clock, ports: ImportPorts
    ) -> None:
        self._store, self._tables, self._clock, self._ports = store, tables, clock, ports
        self._lock = anyio.Lock()  # held by the import that runs

    async def run(
        self, request: ImportRequest, find_targets: FindTargets, report: Report
    ) -> tuple[ImportResult, Sequence[ChatSession]]:
        """Import a source, or rehearse that; return the result and conversations to learn from.

        ``find_targets`` returns the target of each project by its id, and of files without a
        project by "". Raises the errors of reading the source and of the first directory; later
        errors are among the result's problems.
        """
        async with self._lock, self._read_source(request) as reading:
            run = _ImportRun(self, request, reading)
            targets = await find_targets(reading)
            total = len(reading.projects) + 1  # the last one stands for the user's own agents
            for count, project in enumerate(reading.projects):
                await report(count, total)
                await run.import_project(project, targets.get(project.id))
            await report(total - 1, total)
            await run.import_own_agents(targets)
            return run.report.result(), reading.talks

    @asynccontextmanager
    async def _read_source(self, request: ImportRequest) -> AsyncIterator[ImportReading]:
        """Read a source in a worker thread; keep it open until the end."""
        source = read_source(request, self._ports.staging)
        with yielding(self._ports.checkpoint):
            reading = await to_thread.run_sync(source.__enter__)
        try:
            yield reading
        finally:
            with anyio.CancelScope(shield=True):  # files are closed also if cancelled
                await to_thread.run_sync(source.__exit__, None, None, None)

    async def rehearse(self, directory: str, incoming: Incoming, by: Provenance) -> ImportPlan:
        """Return the plan of an import into a directory, which need not exist; change nothing."""
        plan = ImportPlan()

        def make_plan(tree: Tree) -> Draft:
            """Keep the plan for this tree in ``plan``; the empty draft changes nothing."""
            nonlocal plan
            plan = plan_import(incoming, tree, known_files(self._tables, directory))
            return Draft()

        try:
            await self._store.take_back(directory, lambda _: make_plan, by, dry_run=True)
        except DirectoryMissingError:
            await to_thread.run_sync(make_plan, EmptyTree())
        return plan

    async def commit(
        self, directory: str, incoming: Incoming, by: Provenance
    ) -> tuple[ImportPlan, str | None]:
        """Import files into a directory; return the plan and the id of its change set.

        The id is ``None`` if nothing changed. Raises the errors of ``Store.commit``.
        """
        plan, at = ImportPlan(), self._clock.now()

        def make_plan(tree: Tree) -> Draft:
            """Plan the import for this tree; the store may call it more than once."""
            nonlocal plan
            # Nothing is written yet, so an import whose client has gone ends here.
            with yielding(from_thread.check_cancelled):
                plan = plan_import(incoming, tree, known_files(self._tables, directory))
            remember_originals(self._tables.originals, directory, plan, at)
            decided = accepted_proposals(self._tables, directory, plan)
            return plan.draft(decided)

        committed = await self._store.commit(directory, make_plan, by)
        return plan, committed.change

    async def propose(self, directory: str, plan: ImportPlan, by: Provenance) -> str:
        """Store a plan as a proposal for a person; return its id, "" if it is too large."""
        at, tables = self._clock.now(), self._tables
        return await to_thread.run_sync(store_proposal, tables, directory, plan, by, at)

    async def add_past(self, directory: str, project: ReadProject) -> int:
        """Store a project's history, which is only read; return how many changes are new."""
        add, at = self._tables.originals.add_past, self._clock.now()
        return await to_thread.run_sync(add, directory, project.history, project.bodies, at)

    async def past(self, directory: str, only: Filter, limit: int) -> tuple[PastChange, ...]:
        """Return up to ``limit`` past changes that imports brought to a directory, newest first."""
        past = await to_thread.run_sync(self._tables.originals.past, directory)
        return select_past(past, only, limit)

    async def add_notes(
        self, target: ImportTarget, notes: Sequence[ProposedMemory]
    ) -> tuple[int, tuple[LeftOutFile, ...]]:
        """Write notes of sessions that have none; return how many, and the files left out."""
        restore = partial(self._ports.restore_notes, target.project)
        return await to_thread.run_sync(restore_notes, notes, restore, self.now_ns)

    @property
    def now_ns(self) -> int:
        """The current time in ns since 1970."""
        return int(self._clock.now() * 1e9)


class _ImportRun:
    """An import in progress: it imports the parts of a reading and gathers the report."""

    def __init__(self, imports: Imports, request: ImportRequest, reading: ImportReading) -> None:
        self._imports, self._request, self._reading = imports, request, reading
        self._by = provenance(request, reading.kind)  # for the history of each directory
        self.report = ImportReport(reading.kind, dry_run=request.dry_run)
        self.report.leave_out(reading.left_out, more=reading.left_out_more)
        self.report.problems += reading.problems
        self.report.diff = reading.diff

    async def import_project(self, project: ReadProject, target: ImportTarget | None) -> None:
        """Import a project into its target, or leave it out if it has none.

        Without ``accept``, only its memories are imported. Raises MemdError if the import of its
        memories fails and nothing was imported before.
        """
        if target is None:
            self.report.leave_out([LeftOutFile(project.id, _HAS_NO_TARGET.format(project.id))])
            return
        directory = target.project.memory_dir
        memories = self._incoming(project.memories, project, joined=target.joined)
        await self._import_folder(project.id, directory, memories, self.report.projects)
        if not self._request.accept:
            count = len(project.agents) + len(project.notes) + len(project.history)
            self._leave_out_unaccepted(project.id, count)
            return
        for scope_and_agent, files in project.agents.items():
            scope, _, agent = scope_and_agent.partition("/")
            await self._import_agent(target, scope, agent, files)
        if not self._request.dry_run:
            count, left_out = await self._imports.add_notes(target, project.notes)
            self.report.notes += count
            self.report.leave_out(left_out, project.id)
            self.report.past_changes += await self._imports.add_past(directory, project)

    async def import_own_agents(self, targets: Mapping[str, ImportTarget]) -> None:
        """Import the memories of the user's own sub-agents, which belong to no project.

        Any project's target names the configuration folder in which they lie.
        """
        target = targets.get("") or next(iter(targets.values()), None)
        if not self._request.accept or target is None:
            self._leave_out_unaccepted(AgentScope.USER, len(self._reading.agents))
            return
        for agent, files in self._reading.agents.items():
            await self._import_agent(target, AgentScope.USER, agent, files)

    def _incoming(
        self, files: Sequence[ProposedMemory], project: ReadProject, *, joined: bool = False
    ) -> Incoming:
        """Return files, with their project's history, for a plan.

        ``joined`` says whether the project that they come to joined a team.
        """
        kind, now_ns = self._reading.kind, self._imports.now_ns
        return Incoming(files, kind, now_ns, project.history, joined=joined)

    async def _import_agent(
        self, target: ImportTarget, scope: str, agent: str, files: Sequence[ProposedMemory]
    ) -> None:
        """Import the memories of a sub-agent; leave them out if its name cannot be one here."""
        name = f"{scope}/{agent}"
        try:
            directory = await to_thread.run_sync(
                agent_directory, target.project, agent, scope, target.environment
            )
        except MemdError as error:
            self.report.leave_out([LeftOutFile(name, error.sentence)])
            return
        incoming = self._incoming(files, ReadProject())
        await self._import_folder(name, directory, incoming, self.report.agents)

    async def _import_folder(
        self, name: str, directory: str, incoming: Incoming, into: list[ImportedFolder]
    ) -> None:
        """Commit, propose or rehearse the import into a directory; add its result to ``into``.

        ``name`` stands for the directory in the report. An error becomes one of the report's
        problems. Raises MemdError if nothing was imported before.
        """
        imports, by = self._imports, self._by
        change: str | None = None  # the id of the change set
        proposal = ""  # the id of the proposal
        try:
            if self._request.accept and not self._request.dry_run:
                plan, change = await imports.commit(directory, incoming, by)
            else:
                plan = await imports.rehearse(directory, incoming, by)
                if plan.files and not self._request.dry_run:
                    proposal = await imports.propose(directory, plan, by)
        except MemdError as error:
            if not (self.report.projects or self.report.agents):
                raise
            self.report.problems.append(f"{name}: {error.sentence}")
            return
        if plan.files and not (change or proposal or self._request.dry_run):
            self.report.problems.append(_TOO_LARGE.format(name or directory))
        into.append(self.report.folder(name, directory, plan, change, proposal))

    def _leave_out_unaccepted(self, name: str, count: int) -> None:
        """Leave out ``count`` files that are only imported with ``accept``, listed as ``name``."""
        if count:
            self.report.leave_out([LeftOutFile(name, _NEEDS_ACCEPT)], more=count - 1)
