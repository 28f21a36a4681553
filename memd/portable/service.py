"""Exports as the api sees them: the only file of this room that waits.

Disk and state file are used in worker threads. One export runs at a time, so that none takes what
another is making for left over.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
from anyio import to_thread

from memd import __version__
from memd.core.imports import RawNotes
from memd.files.disk import Disk, real_disk
from memd.portable import collecting
from memd.portable.destination import Destination, check_destination
from memd.portable.exporting import Export
from memd.portable.values import ExportPart, ExportRequest, ExportResult, Originals
from memd.portable.writing import Staging
from memd.projects.projects import AgentMemory, KnownProject, agents_in, own_agents
from memd.store.service import StillDirectory, Store

Report = Callable[[int, int], Awaitable[None]]  # projects done, of how many
_OF_MEMORIES = "it lies in a memory directory"
_OF_MEMD = "it lies among memd's own files"


@dataclass(frozen=True, slots=True)
class ExportPorts:
    """What exports are given from outside; all functions block.

    ``known`` returns all projects, ``notes`` the session notes below folders of transcripts,
    ``settings`` the options of the user's own file and its mtime in ns. ``own`` are folders of memd
    itself.
    """

    known: Callable[[], tuple[KnownProject, ...]]
    notes: Callable[[Sequence[str]], Sequence[RawNotes]]
    settings: Callable[[], tuple[Mapping[str, Any], int]]
    own: tuple[str, ...]


class Exports:
    """Exports of one daemon."""

    def __init__(
        self, store: Store, originals: Originals, ports: ExportPorts, disk: Disk | None = None
    ) -> None:
        self._store, self._originals, self._ports = store, originals, ports
        self._disk = disk or real_disk()
        self._lock = anyio.Lock()

    async def projects(self) -> tuple[KnownProject, ...]:
        """Return all projects that are known. Raises StateUnusableError."""
        return await to_thread.run_sync(self._ports.known)

    async def export(self, request: ExportRequest, report: Report) -> ExportResult:
        """Write an archive; nothing is there until it is whole.

        Raises DestinationError, DirectoryUnusableError and StateUnusableError.
        """
        async with self._lock:
            staging = Staging(await to_thread.run_sync(self._destination, request), self._disk)
            try:
                export = await to_thread.run_sync(self._begin, staging, request)
                await self._take(export, request, report)
                return await to_thread.run_sync(export.finish)
            finally:
                with anyio.CancelScope(shield=True):
                    await to_thread.run_sync(staging.close)

    async def _take(self, export: Export, request: ExportRequest, report: Report) -> None:
        """Take all that is asked for, each directory while memd changes nothing in it."""
        parts, total = request.parts, len(request.projects)
        for done, (key, project) in enumerate(zip(export.ids, request.projects, strict=True)):
            await report(done, total)
            work = partial(self._memories, export, key, project, parts)
            with_history = ExportPart.HISTORY in parts
            await self._store.still(project.directory, work, history=with_history)
            if ExportPart.AGENTS in parts:
                agents = await to_thread.run_sync(agents_in, project.root)
                await self._agents(export, key, agents)
            if ExportPart.NOTES in parts:
                await to_thread.run_sync(self._notes, export, key, project)
        if ExportPart.AGENTS in parts:
            for config in sorted({project.config for project in request.projects}):
                await self._agents(export, "", await to_thread.run_sync(own_agents, config))
        if ExportPart.SETTINGS in parts:
            await to_thread.run_sync(self._settings, export)
        await report(total, total)

    async def _agents(self, export: Export, key: str, agents: Sequence[AgentMemory]) -> None:
        for agent in agents:
            await self._store.still(agent.directory, partial(self._of_agent, export, key, agent))

    def _begin(self, staging: Staging, request: ExportRequest) -> Export:
        staging.open()
        return Export(staging, request, __version__)

    def _memories(
        self,
        export: Export,
        key: str,
        project: KnownProject,
        parts: frozenset[ExportPart],
        still: StillDirectory,
    ) -> None:
        directory = project.directory
        files = collecting.memories(still, self._originals, directory, parts)
        export.take(key, f"projects/{key}/memory/", files)
        if ExportPart.HISTORY in parts:
            past = self._originals.past(directory)
            changes = collecting.changes(still.changes(), past, parts)
            export.take("", "history/", collecting.history(changes, self._originals, key))

    def _of_agent(
        self, export: Export, key: str, agent: AgentMemory, still: StillDirectory
    ) -> None:
        folder = f"projects/{key}/agents" if key else "agents"
        files = collecting.memories(still, self._originals, agent.directory)
        export.take(key, f"{folder}/{agent.scope}/{agent.agent}/", files)

    def _notes(self, export: Export, key: str, project: KnownProject) -> None:
        files = self._ports.notes(project.sessions)
        export.take(key, f"projects/{key}/notes/", collecting.notes(files))

    def _settings(self, export: Export) -> None:
        export.take("", "", collecting.settings(*self._ports.settings()))

    def _destination(self, request: ExportRequest) -> Destination:
        memories = {project.directory for project in (*self._ports.known(), *request.projects)}
        closed = [(directory, _OF_MEMORIES) for directory in sorted(memories)]
        closed += [(directory, _OF_MEMD) for directory in self._ports.own]
        return check_destination(request.destination, closed)
