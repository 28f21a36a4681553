"""The store as the rooms see it: the only file of this room that waits.

Everything that touches the disk or the state file runs in a worker thread that is never left
behind: a caller that is cancelled meanwhile gets its cancellation after the thread has ended, so
no change is ever half reported. Writers of one directory wait for each other; readers wait for
nobody, for a slow disk must not hold up a prompt.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import anyio
from anyio import to_thread

from memd.core.clock import Clock
from memd.core.errors import MemdError
from memd.core.events import MEMORY_CHANGED, Event, EventSink
from memd.core.settings import Settings
from memd.core.values import (
    Change,
    Header,
    MemoryFile,
    Outcome,
    Plan,
    Project,
    Provenance,
    Snapshot,
)
from memd.state.database import Database
from memd.state.history import Filter
from memd.state.journal import Journal
from memd.store import catalogue, claude_code
from memd.store.changes import Changes, Committed, Request
from memd.store.configuration import Configuration
from memd.store.exchange import Disk, real_disk
from memd.store.history import Past
from memd.store.names import INDEX, NameRefusedError, check_name
from memd.store.paths import Directory, DirectoryMissingError
from memd.store.project import find_project, find_root
from memd.store.tree import Found, memory_file, read_file

T = TypeVar("T")


class MemoryNotFoundError(MemdError):
    """There is no memory of this name."""

    code = 1001
    kind = "not_found"
    hint = "list the memories to see their paths"
    exit_status = 66

    def __init__(self, path: str) -> None:
        super().__init__(f"there is no memory {path}", path=path)


class Store:
    """All memory directories of this user. One per process; call it on the event loop."""

    def __init__(
        self,
        database: Database,
        configuration: Configuration,
        clock: Clock,
        events: EventSink,
        *,
        home: str,
        environ: Mapping[str, str],
        disk: Disk | None = None,
    ) -> None:
        self._journal = Journal(database)
        self._past = Past(self._journal, self._live)
        self._changes = Changes(self._journal, disk or real_disk())
        self._configuration = configuration
        self._clock = clock
        self._events = events
        self._home = home
        self._environ = dict(environ)
        self._locks: dict[str, anyio.Lock] = {}
        self._known: dict[str, dict[str, Header]] = {}

    async def project(self, cwd: str, environ: Mapping[str, str]) -> Project:
        """Return where a working directory keeps its memories (spec 1.1 to 1.3).

        ``environ`` is what the client forwarded. Raises NoProjectError (1009).
        """

        def find() -> Project:
            settings, _ = self._configuration.current(find_root(cwd))
            return find_project(cwd, settings, self._environ, environ, self._home)

        return await to_thread.run_sync(find)

    async def settings(self, project: Project | None = None) -> tuple[Settings, tuple[str, ...]]:
        """Return the settings in force and a sentence per problem in their files."""
        root = project.root if project else None
        return await to_thread.run_sync(self._configuration.current, root)

    async def directories(self) -> tuple[str, ...]:
        """Return the real paths of all memory directories that memd has ever changed."""
        return await to_thread.run_sync(self._journal.directories)

    async def client_loads_memory(self, project: Project, environ: Mapping[str, str]) -> bool:
        """Return whether Claude Code loads this project's memory by itself.

        ``environ`` is what the client forwarded.
        """
        return await to_thread.run_sync(claude_code.loads_memory, project, environ, self._home)

    async def ensure(self, directory: str) -> str:
        """Make a memory directory, mode 0700; return "" or the problem in words."""

        def make() -> str:
            try:
                Directory(directory, create=True).close()
            except MemdError as error:
                return error.sentence
            return ""

        return await to_thread.run_sync(make)

    async def snapshot(self, directory: str) -> Snapshot:
        """Return headers and index; a directory that is not there is an empty one.

        Raises PathRefusedError and DirectoryUnusableError.
        """
        return await to_thread.run_sync(self._snapshot, directory)

    async def read(self, directory: str, path: str) -> MemoryFile:
        """Return one memory. Raises MemoryNotFoundError, NameRefusedError, PathRefusedError,
        FileTooLargeError and FileUnreadableError.
        """  # noqa: D205 - the errors are one list
        found = await to_thread.run_sync(self._read, directory, (path,))
        if not found:
            raise MemoryNotFoundError(path)
        return found[0]

    async def read_many(self, directory: str, paths: Sequence[str]) -> tuple[MemoryFile, ...]:
        """Return several memories in the order asked for; what cannot be read is left out."""
        return await to_thread.run_sync(self._read_many, directory, tuple(paths))

    async def commit(
        self, directory: str, plan: Plan, by: Provenance, *, request_id: str = ""
    ) -> Outcome:
        """Run a plan on the live directory and make what it wants true (spec 1.9).

        When this returns, the change is on the medium. Raises what ``Changes.commit`` raises.
        """
        return (await self._commit(directory, lambda: plan, by, request_id)).outcome

    async def recover(self) -> tuple[str, ...]:
        """Finish what a crash left; call it before anything is served. Returns sentences."""
        return await to_thread.run_sync(self._changes.recover, self._clock.now())

    async def history(
        self,
        directory: str,
        *,
        path: str = "",
        limit: int = 50,
        before: str = "",
        only: Filter | None = None,
    ) -> tuple[Change, ...]:
        """Return applied changes, newest first: of one file, and older than one change, if named.

        ``directory`` is "" for all directories; ``only`` says more of the changes that are meant.
        Raises ChangeNotFoundError for a ``before`` that is no change's id.
        """
        wanted = replace(only or Filter(), directory=directory, path=path)
        return await self.consult(lambda past: past.changes(wanted, limit=limit, before=before))

    async def diff(self, directory: str, change: str) -> tuple[tuple[str, str], ...]:
        """Return each file of a change with its unified diff. Raises ChangeNotFoundError."""
        return await self.consult(lambda past: past.diff(directory, change))

    async def consult(self, question: Callable[[Past], T]) -> T:
        """Ask the history something in a worker thread. Raises what the question does."""
        return await to_thread.run_sync(question, self._past)

    async def undo(
        self, directory: str, change: str, by: Provenance, *, request_id: str = ""
    ) -> tuple[Outcome, tuple[str, ...]]:
        """Take one change back; return the outcome and the paths that had to be left alone.

        Raises ChangeNotFoundError and what ``commit`` raises.
        """
        committed = await self.take_back(
            directory, lambda past: past.undo(directory, change), by, request_id=request_id
        )
        return committed.outcome, committed.conflicts

    async def take_back(
        self,
        directory: str,
        plan: Callable[[Past], Plan],
        by: Provenance,
        *,
        request_id: str = "",
        dry_run: bool = False,
    ) -> Committed:
        """Commit a plan made from the history; ``dry_run`` only says what it would do.

        Raises what making the plan raises, and what ``commit`` raises.
        """
        return await self._commit(
            directory, lambda: plan(self._past), by, request_id, dry_run=dry_run
        )

    async def _commit(
        self,
        directory: str,
        plan: Callable[[], Plan],
        by: Provenance,
        request_id: str,
        *,
        dry_run: bool = False,
    ) -> Committed:
        real = await to_thread.run_sync(os.path.realpath, directory)
        async with self._locks.setdefault(real, anyio.Lock()):

            def work() -> Committed:
                request = Request(real, plan(), by, self._clock.now(), request_id)
                act = self._changes.rehearse if dry_run else self._changes.commit
                return act(request, self._known.get(real, {}))

            committed = await to_thread.run_sync(work)
        outcome = committed.outcome
        if outcome.change and not outcome.repeated:
            self._events.publish(_event(directory, outcome, by))
        return committed

    def _snapshot(self, directory: str) -> Snapshot:
        real = os.path.realpath(directory)
        try:
            with Directory(directory) as opened:
                headers, problems = catalogue.scan(opened, self._known.get(real, {}))
                index, more = _index(opened)
        except DirectoryMissingError:
            return Snapshot(directory, (), None)
        self._known[real] = {header.path: header for header in headers}
        return Snapshot(directory, headers, index, problems + more)

    def _read(self, directory: str, paths: tuple[str, ...]) -> tuple[MemoryFile, ...]:
        try:
            with Directory(directory) as opened:
                found = [(path, self._found(opened, path)) for path in paths]
        except DirectoryMissingError:
            return ()
        return tuple(memory_file(path, file) for path, file in found if file is not None)

    def _found(self, directory: Directory, path: str) -> Found | None:
        try:
            check_name(path, index=True)
        except NameRefusedError:
            # A person's own file may have any name, if it is one that a scan has met.
            if path not in self._known.get(os.path.realpath(directory.path), {}):
                raise
        return read_file(directory, path)

    def _read_many(self, directory: str, paths: tuple[str, ...]) -> tuple[MemoryFile, ...]:
        found: list[MemoryFile] = []
        for path in paths:
            try:
                found += self._read(directory, (path,))
            except MemdError:
                continue
        return tuple(found)

    def _live(self, directory: str, path: str) -> bytes | None:
        found = self._read(directory, (path,))
        return found[0].content if found else None


def _index(directory: Directory) -> tuple[bytes | None, tuple[str, ...]]:
    try:
        found = read_file(directory, INDEX)
    except MemdError as error:
        return None, (error.sentence,)
    return (found.content if found else None), ()


def _event(directory: str, outcome: Outcome, by: Provenance) -> Event:
    files = [{"path": file.path, "action": file.action} for file in outcome.files]
    params = {
        "change": outcome.change,
        "actor": by.actor.value,
        "client": by.client,
        "files": files,
    }
    return Event(MEMORY_CHANGED, directory, params)
