"""The store's interface for other rooms: the only file of this room that awaits.

Disk and state file are used in worker threads. A caller that is cancelled gets its cancellation
after the thread has ended, so no change is half reported. Writers of one directory wait for each
other; readers wait for no writer, since a slow disk must not delay a prompt.
"""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from itertools import count
from typing import TypeVar

import anyio
from anyio import from_thread, to_thread
from anyio.abc import TaskGroup, TaskStatus
from anyio.lowlevel import EventLoopToken, current_token
from msgspec.structs import replace

from memd.core import limits
from memd.core.clock import Clock
from memd.core.errors import MemdError
from memd.core.events import EventSink
from memd.core.names import INDEX, INDEXES
from memd.core.recent import Recent
from memd.core.settings import Settings
from memd.core.values import Change, CommitResult, MemoryFile, Plan, Project, Provenance, Snapshot
from memd.files.disk import Disk, real_disk
from memd.projects.configuration import Configuration
from memd.projects.projects import Projects
from memd.state.changes import Baseline, Filter, Journal
from memd.state.database import Database
from memd.state.tables import Roots, TeamTable
from memd.store.changes import BeingWrittenError, ChangeRequest, Changes, OpenFiles
from memd.store.changes import DirectoryBusyError as DirectoryBusyError
from memd.store.changes import StorageFailedError as StorageFailedError
from memd.store.commits import Commits, event_of, make_folder
from memd.store.detection import Detection
from memd.store.drafts import pointing_to
from memd.store.headers_file import HeadersFiles
from memd.store.history import Past
from memd.store.purge import Purged, Purger, PurgeRequest
from memd.store.reading import DirectoryReader as DirectoryReader
from memd.store.reading import MemoryNotFoundError as MemoryNotFoundError
from memd.store.replaced import Replaced
from memd.store.still import StillDirectory as StillDirectory
from memd.store.still import StillFile as StillFile
from memd.store.still import files_of as files_of
from memd.watch.external import BY as EXTERNAL
from memd.watch.external import Detected, ExternalEdits
from memd.watch.watch import Watch

T = TypeVar("T")
_TEND_SECONDS = 30.0  # between two calls of ``DirectoryReader.tend``
_JUST_NOW_SECONDS = 5.0  # from a tool's write to the hook that tells of it
_DOUBT_TURNS = 20  # of ``_tend``, between two comparisons of all files, in case a watch missed one


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
        headers: str = "",
    ) -> None:
        self._journal = Journal(database)
        files = HeadersFiles(headers) if headers else None
        reading = self._reading = DirectoryReader(clock, self._news, files)
        self._past = Past(self._journal, reading.live, TeamTable(database).author)
        disk = disk or real_disk()
        replaced = self._replaced = Replaced(disk)
        self._changes = Changes(self._journal, disk, reading.recent, replaced, reading.listing)
        external = ExternalEdits(self._journal, Baseline(database))
        self._detection = Detection(external, reading)
        self._commits = Commits(self._journal, self._changes, external, self._detection, replaced)
        self._clock, self._events, self._configuration = clock, events, configuration
        self._purger = Purger(database, reading, replaced)
        self.projects = Projects(configuration, Roots(database), dict(environ), home)  # blocks
        self._locks: Recent[str, anyio.Lock] = Recent(in_use=lambda lock: lock.locked())
        self._watch: Watch | None = None
        self._token: EventLoopToken | None = None  # of the event loop, while ``run`` runs
        self._hinted = anyio.Event()
        self._group: TaskGroup | None = None  # of ``run``'s tasks
        self._spelled: Recent[str, str] = Recent()  # by real path: the path that callers use
        self._unseen: Recent[str, str] = Recent()  # by real path: why it could not be looked at

    async def project(self, cwd: str, environ: Mapping[str, str]) -> Project:
        """Return where a directory keeps its memories; ``environ`` is what the client forwarded.

        Raises NoProjectError (1009).
        """
        return (await self.where(cwd, environ))[0]

    async def settings(self, project: Project | None = None) -> tuple[Settings, tuple[str, ...]]:
        """Return the settings in force and a sentence per problem in their files."""
        root = project.root if project else None
        return await to_thread.run_sync(self._configuration.current, root)

    @property
    def reading(self) -> DirectoryReader:
        """Return the reader of memory directories, whose methods block in any thread."""
        return self._reading

    async def where(
        self, cwd: str, environ: Mapping[str, str]
    ) -> tuple[Project, Settings, tuple[str, ...]]:
        """Return ``project`` and its ``settings`` in one visit to a worker thread.

        Raises NoProjectError (1009).
        """
        return await to_thread.run_sync(self.projects.where, cwd, environ)

    async def directories(self) -> tuple[str, ...]:
        """Return the real paths of all memory directories that memd has ever changed."""
        return await to_thread.run_sync(self._journal.directories)

    async def ensure(self, directory: str, path: str = INDEX) -> str:
        """Make a directory and a path's folder in it, mode 0700; return "" or the problem."""
        return await to_thread.run_sync(make_folder, directory, path)

    async def snapshot(self, directory: str) -> Snapshot:
        """Return headers and index; a missing directory counts as empty.

        Raises PathRefusedError and DirectoryUnusableError. If it differs from the last snapshot,
        a look for external edits is requested; this never delays the answer.
        """
        current = await to_thread.run_sync(self._reading.snapshot, directory)
        if current.news:
            self._spelled[current.real_path] = directory
            self._hint(current.real_path)
        return current.snapshot

    async def read(self, directory: str, path: str) -> MemoryFile:
        """Return one memory. Raises MemoryNotFoundError and what ``DirectoryReader.read`` does."""
        result = await to_thread.run_sync(self._reading.read, directory, (path,))
        if not result:
            raise MemoryNotFoundError(path)
        return result[0]

    async def read_many(self, directory: str, paths: Sequence[str]) -> tuple[MemoryFile, ...]:
        """Return several memories in the given order, without those that cannot be read."""
        return await to_thread.run_sync(self._reading.read_many, directory, tuple(paths))

    async def commit(
        self, directory: str, plan: Plan, by: Provenance, *, request_id: str = ""
    ) -> CommitResult:
        """Run a plan on the live directory and commit the changes that it returns.

        When this returns, the change is on the disk. Raises what ``Changes.commit`` raises.
        """
        return await self._commit(directory, lambda: plan, by, request_id)

    async def recover(self) -> tuple[str, ...]:
        """Finish change sets that a crash left, before serving; return sentences about them."""
        at, now = self._clock.now(), self._clock.monotonic()
        return await to_thread.run_sync(self._changes.recover, at, now)

    async def history(
        self,
        directory: str,
        *,
        path: str = "",
        limit: int = 50,
        before: str = "",
        only: Filter | None = None,
    ) -> tuple[Change, ...]:
        """Return applied changes, newest first, of ``path`` and older than ``before`` if given.

        ``directory`` is "" for all directories; ``only`` filters the changes further.
        Raises ChangeNotFoundError for a ``before`` that is no change's id.
        """
        wanted = replace(only or Filter(), directory=directory, path=path)
        question = partial(Past.changes, only=wanted, limit=limit, before=before)
        return await self.consult(question, directory)

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Detect external edits until cancelled: at once, then on each hint. It owns the watch."""
        self._token = current_token()
        watch = self._watch = Watch(self._detection.note_change, self._wake)
        self._detection.use_watch(watch)
        for directory in await to_thread.run_sync(self._commits.directories):
            self._detection.request_check(directory)
        self._hinted.set()
        task_status.started()
        try:
            async with anyio.create_task_group() as self._group:
                self._group.start_soon(self._tend)
                while True:
                    await self._hinted.wait()
                    await self._clock.sleep(limits.LOOK_SECONDS)
                    self._hinted = anyio.Event()
                    for directory in sorted(self._detection.pending()):
                        await self._look_again(directory)
        finally:
            self._watch = self._token = self._group = None
            self._detection.use_watch(None)
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(watch.close)
                await to_thread.run_sync(self._reading.tend)
                self._replaced.close()

    async def _tend(self) -> None:
        """Tend the catalogues; every ten minutes request a comparison of all files."""
        for turn in count(1):
            await self._clock.sleep(_TEND_SECONDS)
            await to_thread.run_sync(self._reading.tend)
            if turn % _DOUBT_TURNS == 0:
                self._detection.request_full_checks()
                self._hinted.set()

    def watching(self) -> tuple[str, ...]:
        """Return a sentence for each directory whose external edits are only seen at its use."""
        return (*(self._watch.problems() if self._watch else ()), *self._unseen.values())

    async def purge(self, what: PurgeRequest, *, dry_run: bool) -> Purged:
        """Remove text for good from all that memd stores, or return what would be removed.

        No directory can be committed to meanwhile: any may hold the text. Raises as ``Purger.run``.
        """
        async with AsyncExitStack() as locks:
            for real_path in sorted(await to_thread.run_sync(self._commits.directories)):
                await locks.enter_async_context(self._lock(real_path))
                with suppress(OSError, MemdError):
                    await self._detect(real_path)
            return await to_thread.run_sync(partial(self._purger.run, what, dry_run=dry_run))

    async def attribute(
        self, directory: str, paths: Collection[str], by: Provenance
    ) -> CommitResult:
        """Record who just wrote memories without memd, and index them; raises as ``commit``."""
        real_path = await self._real(directory)
        async with self._lock(real_path):
            await self._detect(real_path, claim=True)
            since = self._clock.now() - _JUST_NOW_SECONDS
            await to_thread.run_sync(
                self._journal.attribute, real_path, {*paths, *INDEXES}, by, since
            )
        return await self.commit(directory, partial(pointing_to, paths), by)

    async def consult(self, question: Callable[[Past], T], directory: str = "") -> T:
        """Run a query of the history in a worker thread, after a look at a directory if given.

        Raises what the query raises.
        """
        if directory:
            await self._look_if_free(directory)
        return await to_thread.run_sync(self._journal.unpruned, partial(question, self._past))

    async def still(
        self, directory: str, work: Callable[[StillDirectory], T], *, history: bool = False
    ) -> T:
        """Run work in a worker thread while memd changes nothing in a directory.

        With ``history`` external edits are recorded first. Raises what the work raises.
        """
        real_path = await self._real(directory)
        async with self._lock(real_path):
            if history:
                with suppress(OSError, MemdError):
                    await self._detect(real_path)
            return await to_thread.run_sync(StillDirectory(real_path, self._journal).unpruned, work)

    async def take_back(
        self,
        directory: str,
        plan: Callable[[Past], Plan],
        by: Provenance,
        *,
        request_id: str = "",
        dry_run: bool = False,
    ) -> CommitResult:
        """Commit a plan made from the history; ``dry_run`` only returns what it would do.

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
    ) -> CommitResult:
        """Commit or rehearse a plan under the directory's lock, and publish the change."""
        real_path = await self._real(directory)
        until = self._clock.monotonic() + limits.WRITER_SECONDS

        def work() -> CommitResult:
            at, now = self._clock.now(), self._clock.monotonic()
            writers = OpenFiles.WAIT if now < until else OpenFiles.EMPTIED
            request = ChangeRequest(real_path, plan(), by, at, request_id, now, writers)
            return (self._changes.rehearse if dry_run else self._commits.change)(request)

        committed: CommitResult | None = None
        while committed is None:
            try:
                async with self._lock(real_path):
                    await self._detect(real_path, claim=True)
                    committed = await to_thread.run_sync(self._journal.unpruned, work)
            except BeingWrittenError:  # most programs finish their save in a moment
                await self._clock.sleep(limits.WRITER_POLL_SECONDS)
        if committed.change and not committed.repeated:
            self._hint(real_path)
            self._events.publish(event_of(directory, committed, by))
        return committed

    def _lock(self, real_path: str) -> anyio.Lock:
        return self._locks.setdefault(real_path, anyio.Lock())

    async def _real(self, directory: str) -> str:
        """Return a directory's real path; remember the path that the caller used, for events."""
        real_path = await to_thread.run_sync(os.path.realpath, directory)
        self._spelled[real_path] = directory
        return real_path

    async def _detect(
        self, real_path: str, *, patient: bool = False, claim: bool = False
    ) -> str | None:
        """Journal external edits and late saves (lock held); return the id of the last change."""

        def inspect() -> tuple[Detected, list[CommitResult], bool]:
            at = self._clock.now()
            detected = self._detection.detect(real_path, at, patient=patient, claim=claim)
            return detected, *self._commits.commit_late_saves(
                real_path, at, self._clock.monotonic()
            )

        detected, saved, again = await to_thread.run_sync(inspect)
        self._unseen.pop(real_path, None)
        pause = self._detection.pause(real_path, again=again or bool(detected.unsettled))
        if pause == 0:
            self._hint(real_path)
        elif pause and self._group:
            self._group.start_soon(self._hint_after, real_path, pause)
        changes = [detected.change.result()] if detected.change else []
        for result in (*changes, *saved):
            self._events.publish(
                event_of(self._spelled.get(real_path, real_path), result, EXTERNAL)
            )
        return (*changes, *saved)[-1].change if changes or saved else None

    async def _look_again(self, real_path: str) -> None:
        """Look for external edits after a hint; an error becomes a sentence of ``watching``."""
        try:
            async with self._lock(real_path):
                await self._detect(
                    real_path, patient=not self._detection.may_be_half_saved(real_path)
                )
        except (OSError, MemdError) as error:
            self._unseen[real_path] = f"{real_path} cannot be looked at: {error}"

    async def _look_if_free(self, directory: str) -> None:
        """Look for external edits, unless a commit holds the lock: it has looked already."""
        real_path = await self._real(directory)
        if not self._lock(real_path).locked():
            await self._look_again(real_path)

    def _news(self, real_path: str, directory: str) -> None:
        """Request a look at a directory, from any thread but the event loop's."""
        self._spelled.setdefault(real_path, directory)
        self._detection.request_check(real_path)
        self._wake()

    async def _hint_after(self, real_path: str, pause: float) -> None:
        await self._clock.sleep(pause)
        self._hint(real_path)

    def _hint(self, real_path: str) -> None:
        self._detection.request_check(real_path)
        self._hinted.set()

    def _wake(self) -> None:
        """Wake ``run``, from any thread but the event loop's."""
        if (token := self._token) is not None:
            # A lambda, since ``run`` replaces the event: the one current in the loop must be set.
            from_thread.run_sync(lambda: self._hinted.set(), token=token)  # noqa: PLW0108
