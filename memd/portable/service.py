"""Run exports and imports: the only file of this room that waits.

Disk and state file are used in worker threads. One export runs at a time, so that none deletes the
temporary files of another, and one import. A source is read before anything is changed. Each
directory gets one change set; a failed one leaves the earlier ones in place. An import that is
cancelled stops before its next change set; one that is being written is completed.
"""

import os
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Annotated

import anyio
import msgspec
from anyio import from_thread, to_thread
from msgspec import Struct

from memd import __version__
from memd.base.agents import AgentScope
from memd.base.clock import Clock
from memd.base.errors import Invalid, MemdError, NotFound
from memd.base.imports import RawNotes
from memd.base.names import printable
from memd.base.text import one_line, sha256
from memd.base.values import Draft, Provenance, Tree
from memd.base.yielding import yielding
from memd.methods.callers import Callers
from memd.methods.method import method
from memd.portable import collecting
from memd.portable.destination import Destination, check_destination
from memd.portable.errors import kind_unknown
from memd.portable.exporting import DirectoryExport, Export
from memd.portable.importing import EmptyTree, provenance, read_source, restore_notes
from memd.portable.importing import ImportPorts as ImportPorts
from memd.portable.importing import ImportRequest as ImportRequest
from memd.portable.importing import ImportTarget as ImportTarget
from memd.portable.merging import plan_import
from memd.portable.plan import ImportPlan, Incoming
from memd.portable.results import ImportedFolder, ImportReport
from memd.portable.results import ImportResult as ImportResult
from memd.portable.values import (
    ExportPart,
    ExportRequest,
    ExportResult,
    LeftOutFile,
    ReadFile,
)
from memd.portable.values import ImportReading as ImportReading
from memd.portable.values import ReadProject as ReadProject
from memd.portable.values import SourceKind as SourceKind
from memd.portable.writing import Staging
from memd.projects.agents import AgentMemory, agents_in, own_agents
from memd.projects.known import KnownProject, known_project
from memd.projects.project import agent_directory
from memd.projects.remotes import repository_of
from memd.rpc.call import Call
from memd.store.disk import Disk, real_disk
from memd.store.store import Store

FindTargets = Callable[[ImportReading], Awaitable[Mapping[str, ImportTarget]]]
_KIND_CHARACTERS = 40  # of an unknown kind in an error
Places = Annotated[tuple[str, ...], msgspec.Meta(max_length=1000)]
_HAS_NO_TARGET = "nobody said where it goes: --project {}=DIR"
_HAS_NO_PROJECT = "no project here says where it goes: --project DIR"
Report = Callable[[int, int], Awaitable[None]]  # projects done, of how many
_IN_MEMORY_FOLDER = "it lies in a memory directory"
_IN_OWN_FOLDER = "it lies among memd's own files"


class ExportPorts(Struct, frozen=True):
    """Functions of other rooms that exports call; all of them block.

    ``known`` returns all projects, ``notes`` the session notes below folders of transcripts.
    ``own`` are memd's own folders, where exports are not allowed.
    """

    known: Callable[[], tuple[KnownProject, ...]]
    notes: Callable[[Sequence[str]], Sequence[RawNotes]]
    own: tuple[str, ...]


class Exports:
    """Runs the exports of a daemon, one at a time."""

    def __init__(
        self, store: Store, ports: ExportPorts, callers: Callers, disk: Disk | None = None
    ) -> None:
        self._store, self._ports, self._callers = store, ports, callers
        self._disk = disk or real_disk()
        self._lock = anyio.Lock()  # held by the export that runs

    @method("export", "read")
    async def export(
        self,
        call: Call,
        *,
        cwd: str,
        dest: str,
        project: str = "",
        all_: bool = False,
        with_: tuple[ExportPart, ...] = (),
    ) -> ExportResult:
        """Write memories as an archive: a new folder, or a file that ends in .tar.gz.

        ``dest`` is an absolute path that does not exist yet, outside of memory directories. The
        memories are those of the project of ``cwd``, of the directory ``project``, or of ``all``
        projects. Only private memories are exported, and the parts in ``with``. Texts that look
        like a credential are left out and listed. Progress has the number of ``projects`` done,
        ``of`` how many. docs/export-format.md describes the format.
        """
        if project and all_:
            raise Invalid(
                "an export takes one project or all of them",
                hint="name a project, or leave it out with all",
            )
        if all_:
            projects = await to_thread.run_sync(self._ports.known)
        else:
            here = await to_thread.run_sync(self._callers.place, call, project or cwd)
            projects = (await to_thread.run_sync(known_project, here),)
        return await self.write(
            ExportRequest(dest, projects, frozenset(with_), whole=all_), partial(_report, call)
        )

    async def write(self, request: ExportRequest, report: Report) -> ExportResult:
        """Write an archive; it appears at its destination only when it is complete.

        Raises Refused and Storage.
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
            work = DirectoryExport(export, project_id, folder, directory, parts)
            await self._export_memories(work)
            if ExportPart.AGENTS in parts:
                agents = await to_thread.run_sync(agents_in, project.root)
                await self._export_agents(export, project_id, agents)
            if ExportPart.NOTES in parts:
                await to_thread.run_sync(self._export_notes, export, project_id, project)
        if ExportPart.AGENTS in parts:
            for config in sorted({project.config for project in request.projects}):
                agents = await to_thread.run_sync(own_agents, config)
                await self._export_agents(export, "", agents)
        await report(total, total)

    async def _export_agents(
        self, export: Export, project_id: str, agents: Sequence[AgentMemory]
    ) -> None:
        """Export the memories of a project's sub-agents, or of the user's if the id is ""."""
        agents_folder = f"projects/{project_id}/agents" if project_id else "agents"
        for each in agents:
            folder = f"{agents_folder}/{each.scope}/{each.agent}/"
            await self._export_memories(DirectoryExport(export, project_id, folder, each.directory))

    async def _export_memories(self, work: DirectoryExport) -> None:
        """Export a directory's memories while memd changes nothing there."""
        # First without the store's lock: the check for credentials is slow, and its results are
        # cached, so that writers need not wait for it.
        await to_thread.run_sync(work.prepare)
        await self._store.still(work.directory, work.export_memories)

    def _begin(self, staging: Staging, request: ExportRequest) -> Export:
        """Open the staging and return an empty export into it. Blocks."""
        staging.open()
        return Export(staging, request, __version__)

    def _export_notes(self, export: Export, project_id: str, project: KnownProject) -> None:
        """Export the session notes of a project. Blocks."""
        notes = collecting.notes(self._ports.notes(project.sessions))
        export.add(project_id, f"projects/{project_id}/notes/", notes)

    def _check_destination(self, request: ExportRequest) -> Destination:
        """Return the destination, which lies in no folder of memories or of memd. Blocks.

        Raises Refused.
        """
        projects = (*self._ports.known(), *request.projects)
        memory_folders = sorted({project.directory for project in projects})
        forbidden = [(directory, _IN_MEMORY_FOLDER) for directory in memory_folders]
        forbidden += [(directory, _IN_OWN_FOLDER) for directory in self._ports.own]
        return check_destination(request.destination, forbidden)


class Imports:
    """Runs the imports of a daemon, one at a time."""

    def __init__(self, store: Store, clock: Clock, ports: ImportPorts, callers: Callers) -> None:
        self._store, self._clock, self._ports, self._callers = store, clock, ports, callers
        self._lock = anyio.Lock()  # held by the import that runs

    @method("import", "write")
    async def import_(
        self,
        call: Call,
        *,
        cwd: str,
        source: str,
        kind: str | None = None,
        project: Places = (),
        dry_run: bool = False,
        accept: bool = False,
    ) -> ImportResult:
        """Import memories from an export of memd, or from another tool's files.

        ``source`` is the absolute path of a folder, a file, a .tar, .tar.gz or .zip; its ``kind``
        is recognised unless given: memd, claude-code, codex or text. A ``project`` is the absolute
        path of a target directory, or ``id=path`` for one of several projects in the source; by
        default it is ``cwd``. Without ``accept``, or with ``dry_run``, the result says what would
        be done and nothing changes. With it each memory directory gets one change. Progress has the
        number of ``projects`` done, ``of`` how many.
        """
        if kind and kind not in tuple(SourceKind):
            why = f"{one_line(kind, _KIND_CHARACTERS)} is no kind of source"
            raise kind_unknown(source, why)
        known_kind = SourceKind(kind) if kind else None
        request = ImportRequest(source, known_kind, accept and not dry_run, call.caller.client)
        destinations = {"": cwd} | dict(map(_parse_destination, project))
        find = partial(self._targets, call, destinations)
        return await self.run(request, find, partial(_report, call))

    async def run(
        self, request: ImportRequest, find_targets: FindTargets, report: Report
    ) -> ImportResult:
        """Import a source, or rehearse that.

        ``find_targets`` returns the target of each project by its id, and of files without a
        project by "". Raises the errors of reading the source and of the first directory; later
        errors are among the result's problems.
        """
        async with self._lock:
            with yielding(self._ports.checkpoint):
                reading = await to_thread.run_sync(read_source, request, self._ports.staging)
            run = _ImportRun(self, request, reading)
            targets = await find_targets(reading)
            total = len(reading.projects) + 1  # the last one stands for the user's own agents
            for count, project in enumerate(reading.projects):
                await report(count, total)
                await run.import_project(project, targets.get(project.id))
            await report(total - 1, total)
            await run.import_own_agents(targets)
            return run.report.result()

    async def _targets(
        self, call: Call, destinations: dict[str, str], reading: ImportReading
    ) -> dict[str, ImportTarget]:
        """Return the target of each project in the source by id, and under "" that of the rest.

        If ``destinations`` names no project, the only one goes to that of ""; of several, each goes
        to the one project here with the same repository, if there is exactly one. Raises Invalid,
        and what ``writable`` raises.
        """
        source_ids = [project.id for project in reading.projects]
        for key in destinations:
            if key not in ("", *source_ids):
                raise _place_unknown(key, source_ids)
        names_no_project = len(destinations) == 1
        targets: dict[str, ImportTarget] = {}
        for key, directory in destinations.items():
            try:
                targets[key] = await self._target(call, directory)
            except MemdError:
                if key or names_no_project:
                    raise  # else "" is only the default ``cwd``, which need not be usable
        if names_no_project and len(source_ids) == 1:
            return targets | {source_ids[0]: targets[""]}
        if names_no_project:
            every = await to_thread.run_sync(self._ports.known)
            roots = (targets[""].project.root, *(each.root for each in every if each.root))
            matches = await to_thread.run_sync(_roots_by_repository, reading.projects, roots)
            targets |= {key: await self._target(call, root) for key, root in matches.items()}
        return targets

    async def _target(self, call: Call, directory: str) -> ImportTarget:
        """Return the project of a directory as a target. Raises what ``writable`` raises."""
        project = await to_thread.run_sync(self._callers.writable, call, directory)
        joined = await to_thread.run_sync(self._ports.joined, project.memory_dir)
        return ImportTarget(project, call.caller.environment, joined)

    async def rehearse(self, directory: str, incoming: Incoming, by: Provenance) -> ImportPlan:
        """Return the plan of an import into a directory, which need not exist; change nothing."""
        plan = ImportPlan()

        def make_plan(tree: Tree) -> Draft:
            """Keep the plan for this tree in ``plan``; the empty draft changes nothing."""
            nonlocal plan
            plan = plan_import(incoming, tree)
            return Draft()

        try:
            await self._store.take_back(directory, lambda *_: make_plan, by, dry_run=True)
        except NotFound:
            await to_thread.run_sync(make_plan, EmptyTree())
        return plan

    async def commit(
        self, directory: str, incoming: Incoming, by: Provenance
    ) -> tuple[ImportPlan, str | None]:
        """Import files into a directory; return the plan and the id of its change set.

        The id is ``None`` if nothing changed. Raises the errors of ``Store.commit``.
        """
        plan = ImportPlan()

        def make_plan(tree: Tree) -> Draft:
            """Plan the import for this tree; the store may call it more than once."""
            nonlocal plan
            # Nothing is written yet, so an import whose client has gone ends here.
            with yielding(from_thread.check_cancelled):
                plan = plan_import(incoming, tree)
            return plan.draft()

        committed = await self._store.commit(directory, make_plan, by)
        return plan, committed.change

    def was_imported(self, directory: str, path: str, body_hash: str) -> bool:
        """Return whether an import wrote a path last, and the text with this hash. Blocks."""
        return self._store.past.was_imported(os.path.realpath(directory), path, body_hash)

    async def add_notes(
        self, target: ImportTarget, notes: Sequence[ReadFile]
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
        self.report = ImportReport(reading.kind, dry_run=not request.accept)
        self.report.leave_out(reading.left_out, more=reading.left_out_more)

    async def import_project(self, project: ReadProject, target: ImportTarget | None) -> None:
        """Import a project into its target, or leave it out if it has none.

        Raises MemdError if the import of its memories fails and nothing was imported before.
        """
        if target is None:
            self.report.leave_out([LeftOutFile(project.id, _HAS_NO_TARGET.format(project.id))])
            return
        directory = target.project.memory_dir
        memories = self._incoming(directory, project.memories, joined=target.joined)
        await self._import_folder(project.id, directory, memories, self.report.projects)
        for scope_and_agent, files in project.agents.items():
            scope, _, agent = scope_and_agent.partition("/")
            await self._import_agent(target, scope, agent, files)
        if self._request.accept:
            count, left_out = await self._imports.add_notes(target, project.notes)
            self.report.notes += count
            self.report.leave_out(left_out, project.id)

    async def import_own_agents(self, targets: Mapping[str, ImportTarget]) -> None:
        """Import the memories of the user's own sub-agents, which belong to no project.

        Any project's target names the configuration folder in which they lie.
        """
        target = targets.get("") or next(iter(targets.values()), None)
        if target is None:
            names = self._reading.agents
            self.report.leave_out([LeftOutFile(name, _HAS_NO_PROJECT) for name in names])
            return
        for agent, files in self._reading.agents.items():
            await self._import_agent(target, AgentScope.USER, agent, files)

    def _incoming(
        self, directory: str, files: Sequence[ReadFile], *, joined: bool = False
    ) -> Incoming:
        """Return files for a plan; ``joined`` says whether their project here joined a team."""
        was_imported = partial(self._imports.was_imported, directory)
        return Incoming(files, self._imports.now_ns, was_imported, joined)

    async def _import_agent(
        self, target: ImportTarget, scope: str, agent: str, files: Sequence[ReadFile]
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
        incoming = self._incoming(directory, files)
        await self._import_folder(name, directory, incoming, self.report.agents)

    async def _import_folder(
        self, name: str, directory: str, incoming: Incoming, into: list[ImportedFolder]
    ) -> None:
        """Commit or rehearse the import into a directory; add its result to ``into``.

        ``name`` stands for the directory in the report. An error becomes one of the report's
        problems. Raises MemdError if nothing was imported before.
        """
        imports, by = self._imports, self._by
        change: str | None = None  # the id of the change set
        try:
            if self._request.accept:
                plan, change = await imports.commit(directory, incoming, by)
            else:
                plan = await imports.rehearse(directory, incoming, by)
        except MemdError as error:
            if not (self.report.projects or self.report.agents):
                raise
            self.report.problems.append(f"{name}: {error.sentence}")
            return
        into.append(self.report.folder(name, directory, plan, change))


def _parse_destination(text: str) -> tuple[str, str]:
    """Return the id of a project in the source, "" for any other, and its target directory."""
    name, equals, directory = text.partition("=")
    if not equals or text.startswith("/"):  # a path, which may have an equals sign
        return "", text
    return name, directory


def _place_unknown(name: str, known: Sequence[str]) -> Invalid:
    """Return the error that an import names a project that the source does not have."""
    listed = ", ".join(map(printable, known)) or "none that has a name"
    return Invalid(f"the source has no project {printable(name)!r}; it has {listed}", project=name)


def _roots_by_repository(projects: Sequence[ReadProject], roots: Iterable[str]) -> dict[str, str]:
    """Return the one of ``roots`` that has a project's repository, by project id. Blocks.

    A repository that several projects of the source or several roots have is left out.
    """
    by_remote: defaultdict[str, set[str]] = defaultdict(set)
    for root in roots:
        repository = repository_of(root)
        if repository:
            by_remote[sha256(repository.encode())].add(root)
    counts = Counter(each.remote for each in projects)
    return {
        each.id: min(by_remote[each.remote])  # a set of one
        for each in projects
        if counts[each.remote] == len(by_remote[each.remote]) == 1
    }


async def _report(call: Call, done: int, total: int) -> None:
    """Report how many projects are done."""
    await call.progress({"projects": done, "of": total})
