"""The store as the rooms see it: the only file of this room that waits.

Disk and state file are used in worker threads. A caller that is cancelled gets its cancellation
after the thread has ended, so no change is half reported. Writers of one directory wait for each
other; readers wait for nobody, since a slow disk must not hold up a prompt.
"""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from functools import partial
from itertools import count
from typing import TypeVar

import anyio
from anyio import from_thread, to_thread
from anyio.abc import TaskGroup, TaskStatus
from anyio.lowlevel import EventLoopToken, current_token

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
_TEND_SECONDS = 30.0  # between two looks after the catalogues
_JUST_NOW_SECONDS = 5.0  # from a tool's write to the hook that tells of it
_DOUBT_TURNS = 20  # of these, between two looks at everything where all is told


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
        self._token: EventLoopToken | None = None  # of the loop that looks, while it does
        self._hinted = anyio.Event()
        self._group: TaskGroup | None = None  # of the tasks that look
        self._spelled: Recent[str, str] = Recent()  # real path: the one that callers use
        self._unseen: Recent[str, str] = Recent()  # why a directory could not be looked at

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
        """What reads memory directories in any thread, and blocks there."""
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
        """Return headers and index; a directory that is not there is an empty one.

        Raises PathRefusedError and DirectoryUnusableError. Where something is not what it was
        at the last time, a look at what others did follows the answer; it never delays it.
        """
        current = await to_thread.run_sync(self._reading.snapshot, directory)
        if current.news:
            self._spelled[current.real] = directory
            self._hint(current.real)
        return current.snapshot

    async def read(self, directory: str, path: str) -> MemoryFile:
        """Return one memory. Raises MemoryNotFoundError and what ``DirectoryReader.read`` does."""
        result = await to_thread.run_sync(self._reading.read, directory, (path,))
        if not result:
            raise MemoryNotFoundError(path)
        return result[0]

    async def read_many(self, directory: str, paths: Sequence[str]) -> tuple[MemoryFile, ...]:
        """Return several memories in the order asked for; what cannot be read is left out."""
        return await to_thread.run_sync(self._reading.read_many, directory, tuple(paths))

    async def commit(
        self, directory: str, plan: Plan, by: Provenance, *, request_id: str = ""
    ) -> CommitResult:
        """Run a plan on the live directory and make what it wants true.

        When this returns, the change is on the disk. Raises what ``Changes.commit`` raises.
        """
        return await self._commit(directory, lambda: plan, by, request_id)

    async def recover(self) -> tuple[str, ...]:
        """Finish what a crash left; call it before anything is served. Returns sentences."""
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
        """Return applied changes, newest first: of one file, and older than one change, if named.

        ``directory`` is "" for all directories; ``only`` says more of the changes that are meant.
        Raises ChangeNotFoundError for a ``before`` that is no change's id.
        """
        wanted = replace(only or Filter(), directory=directory, path=path)
        ask = partial(Past.changes, only=wanted, limit=limit, before=before)
        return await self.consult(ask, directory)

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Look at what others do until cancelled: at once, and on each hint. It owns the watch."""
        self._token = current_token()
        watch = self._watch = Watch(self._detection.tell, self._wake)
        self._detection.use(watch)
        for directory in await to_thread.run_sync(self._commits.directories):
            self._detection.hint(directory)
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
            self._detection.use(None)
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(watch.close)
                await to_thread.run_sync(self._reading.tend)
                self._replaced.close()

    async def _tend(self) -> None:
        """See to the catalogues, and now and then look at what nobody has told of."""
        for turn in count(1):
            await self._clock.sleep(_TEND_SECONDS)
            await to_thread.run_sync(self._reading.tend)
            if turn % _DOUBT_TURNS == 0:
                self._detection.doubt()
                self._hinted.set()

    def watching(self) -> tuple[str, ...]:
        """Return a sentence for each directory in which others' work is noticed at its use only."""
        return (*(self._watch.problems() if self._watch else ()), *self._unseen.values())

    async def purge(self, what: PurgeRequest, *, dry_run: bool) -> Purged:
        """Remove text from the history and all that memd keeps for good, or say what that would be.

        Nothing is committed meanwhile: the same text may lie anywhere. Raises as ``Purger.run``.
        """
        async with AsyncExitStack() as locks:
            for real in sorted(await to_thread.run_sync(self._commits.directories)):
                await locks.enter_async_context(self._lock(real))
                with suppress(OSError, MemdError):
                    await self._noticed(real)
            return await to_thread.run_sync(partial(self._purger.run, what, dry_run=dry_run))

    async def attribute(
        self, directory: str, paths: Collection[str], by: Provenance
    ) -> CommitResult:
        """Say who has just written memories without memd, and index them; raises as ``commit``."""
        real = await self._real(directory)
        async with self._lock(real):
            await self._noticed(real, claim=True)
            since = self._clock.now() - _JUST_NOW_SECONDS
            await to_thread.run_sync(self._journal.attribute, real, {*paths, *INDEXES}, by, since)
        return await self.commit(directory, partial(pointing_to, paths), by)

    async def consult(self, question: Callable[[Past], T], directory: str = "") -> T:
        """Ask the history something in a worker thread, after a look at a directory if named.

        Raises what the question and the look do.
        """
        if directory:
            await self._look_if_free(directory)
        return await to_thread.run_sync(self._journal.unpruned, partial(question, self._past))

    async def still(
        self, directory: str, work: Callable[[StillDirectory], T], *, history: bool = False
    ) -> T:
        """Run work in a worker thread while memd changes nothing in a directory.

        With ``history`` what others did is recorded first. Raises what the work does.
        """
        real = await self._real(directory)
        async with self._lock(real):
            if history:
                with suppress(OSError, MemdError):
                    await self._noticed(real)
            return await to_thread.run_sync(StillDirectory(real, self._journal).unpruned, work)

    async def take_back(
        self,
        directory: str,
        plan: Callable[[Past], Plan],
        by: Provenance,
        *,
        request_id: str = "",
        dry_run: bool = False,
    ) -> CommitResult:
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
    ) -> CommitResult:
        """Commit or rehearse a plan under the directory's lock, and publish the change."""
        real = await self._real(directory)
        until = self._clock.monotonic() + limits.WRITER_SECONDS

        def work() -> CommitResult:
            at, now = self._clock.now(), self._clock.monotonic()
            writers = OpenFiles.WAIT if now < until else OpenFiles.EMPTIED
            request = ChangeRequest(real, plan(), by, at, request_id, now, writers)
            return (self._changes.rehearse if dry_run else self._commits.change)(request)

        committed: CommitResult | None = None
        while committed is None:
            try:
                async with self._lock(real):
                    await self._noticed(real, claim=True)
                    committed = await to_thread.run_sync(self._journal.unpruned, work)
            except BeingWrittenError:  # by a program that will be done in a moment
                await self._clock.sleep(limits.WRITER_POLL_SECONDS)
        if committed.change and not committed.repeated:
            self._hint(real)
            self._events.publish(event_of(directory, committed, by))
        return committed

    def _lock(self, real: str) -> anyio.Lock:
        return self._locks.setdefault(real, anyio.Lock())

    async def _real(self, directory: str) -> str:
        real = await to_thread.run_sync(os.path.realpath, directory)
        self._spelled[real] = directory
        return real

    async def _noticed(
        self, real: str, *, patient: bool = False, claim: bool = False
    ) -> str | None:
        """Look at a directory whose lock is held, and tell of what others did."""

        def inspect() -> tuple[Detected, list[CommitResult], bool]:
            at = self._clock.now()
            noticed = self._detection.detect(real, at, patient=patient, claim=claim)
            return noticed, *self._commits.late_saves(real, at, self._clock.monotonic())

        noticed, saved, again = await to_thread.run_sync(inspect)
        self._unseen.pop(real, None)
        pause = self._detection.pause(real, again=again or bool(noticed.unsettled))
        if pause == 0:
            self._hint(real)
        elif pause and self._group:
            self._group.start_soon(self._hint_after, real, pause)
        changes = [noticed.change.result()] if noticed.change else []
        for result in (*changes, *saved):
            self._events.publish(event_of(self._spelled.get(real, real), result, EXTERNAL))
        return (*changes, *saved)[-1].change if changes or saved else None

    async def _look_again(self, real: str) -> None:
        """Look at a directory after a hint; what keeps us out of it is only noted."""
        try:
            async with self._lock(real):
                await self._noticed(real, patient=not self._detection.doubted(real))
        except (OSError, MemdError) as error:
            self._unseen[real] = f"{real} cannot be looked at: {error}"

    async def _look_if_free(self, directory: str) -> None:
        """Look before the history is read, unless a commit is at it: that has looked already."""
        real = await self._real(directory)
        if not self._lock(real).locked():
            await self._look_again(real)

    def _news(self, real: str, directory: str) -> None:
        """Note, in any thread but the loop's, that a directory is worth a look."""
        self._spelled.setdefault(real, directory)
        self._detection.hint(real)
        self._wake()

    async def _hint_after(self, real: str, pause: float) -> None:
        await self._clock.sleep(pause)
        self._hint(real)

    def _hint(self, real: str) -> None:
        self._detection.hint(real)
        self._hinted.set()

    def _wake(self) -> None:
        if (token := self._token) is not None:
            # The event of the moment at which the loop runs this.
            from_thread.run_sync(lambda: self._hinted.set(), token=token)  # noqa: PLW0108
