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

from memd.base import limits
from memd.base.clock import Clock
from memd.base.errors import MemdError
from memd.base.events import EventSink
from memd.base.names import INDEX, INDEXES
from memd.base.recent import Recent
from memd.base.settings import Settings
from memd.base.values import Change, CommitResult, MemoryFile, Plan, Project, Provenance, Snapshot
from memd.files.disk import Disk, real_disk
from memd.projects.configuration import Configuration
from memd.projects.projects import Projects
from memd.projects.roots import Roots
from memd.projects.switches import Environ
from memd.state.changes import Baseline, Filter, Journal
from memd.state.database import Database
from memd.state.docs import Docs
from memd.state.teams import TeamTable
from memd.store.changes import BeingWrittenError, ChangeRequest, Changes, OpenFiles
from memd.store.changes import DirectoryBusyError as DirectoryBusyError
from memd.store.changes import StorageFailedError as StorageFailedError
from memd.store.commits import Commits, event_of, make_folder
from memd.store.detection import Detection
from memd.store.drafts import draft_with_lines
from memd.store.headers_file import HeadersFiles
from memd.store.history import Past
from memd.store.purge import Purged, Purger, PurgeRequest
from memd.store.reading import DirectoryReader as DirectoryReader
from memd.store.reading import MemoryNotFoundError as MemoryNotFoundError
from memd.store.replaced import Replaced
from memd.store.still import StillFile as StillFile
from memd.store.still import files_of as files_of
from memd.watch.external import BY as EXTERNAL
from memd.watch.external import Detected, ExternalEdits
from memd.watch.watch import Watch

T = TypeVar("T")
_TEND_SECONDS = 30.0  # between two calls of ``DirectoryReader.tend``
_JUST_NOW_SECONDS = 5.0  # from a tool's write to the hook that tells of it
_FULL_CHECK_TURNS = 20  # of ``_tend``, between comparisons of all files: a watch may miss a change


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
        below_claude_code: Callable[[int], bool] = lambda _: False,
    ) -> None:
        self._journal = Journal(database)
        files = HeadersFiles(headers) if headers else None
        reading = self.reading = DirectoryReader(clock, self._directory_changed, files)  # blocks
        self._past = Past(self._journal, reading.live_bytes, TeamTable(database).author)
        disk = disk or real_disk()
        replaced = self._replaced = Replaced(disk)
        self._changes = Changes(self._journal, disk, reading.recent, replaced, reading.listing)
        external = ExternalEdits(self._journal, Baseline(database))
        self._detection = Detection(external, reading)
        self._commits = Commits(self._journal, self._changes, external, self._detection, replaced)
        self._clock, self._events, self._configuration = clock, events, configuration
        self._purger = Purger(database, reading, replaced)
        own = (Roots(Docs(database)), dict(environ), home)
        self.projects = Projects(configuration, *own, below_claude_code)  # blocks
        # By real path: whoever changes a directory holds its lock.
        self._locks: Recent[str, anyio.Lock] = Recent(in_use=lambda lock: lock.locked())
        self._check_requested = anyio.Event()
        self._watch: Watch | None = None  # this one and the next two exist while ``run`` runs
        self._event_loop: EventLoopToken | None = None
        self._group: TaskGroup | None = None  # of ``run``'s tasks
        self._callers_paths: Recent[str, str] = Recent()  # by real path: the path that callers use
        self._check_errors: Recent[str, str] = Recent()  # by real path: why the last check failed

    async def settings(self, project: Project | None = None) -> tuple[Settings, tuple[str, ...]]:
        """Return the settings in force and a sentence per problem in their files."""
        root = project.root if project else None
        return await to_thread.run_sync(self._configuration.current, root)

    async def where(
        self, cwd: str, environ: Environ, client: str = "", pid: int = 0, *, by_files: bool = False
    ) -> tuple[Project, Settings, tuple[str, ...]]:
        """Return what ``Projects.where`` does; raises NoProjectError (1009)."""
        find = partial(self.projects.where, cwd, environ, client, pid, by_files=by_files)
        return await to_thread.run_sync(find)

    async def directories(self) -> tuple[str, ...]:
        """Return the real paths of all memory directories that memd has ever changed."""
        return await to_thread.run_sync(self._journal.directories)

    async def ensure(self, directory: str, path: str = INDEX) -> str:
        """Make a directory and a path's folder in it, mode 0700; return "" or the problem."""
        return await to_thread.run_sync(make_folder, directory, path)

    async def snapshot(self, directory: str) -> Snapshot:
        """Return headers and index; a missing directory counts as empty.

        Raises PathRefusedError and DirectoryUnusableError. If it differs from the last snapshot,
        a check for external edits is requested; this never delays the answer.
        """
        current = await to_thread.run_sync(self.reading.snapshot, directory)
        if current.changed:
            self._callers_paths[current.real_path] = directory
            self._request_check(current.real_path)
        return current.snapshot

    async def read(self, directory: str, path: str) -> MemoryFile:
        """Return one memory. Raises MemoryNotFoundError and what ``DirectoryReader.read`` does."""
        result = await to_thread.run_sync(self.reading.read, directory, (path,))
        if not result:
            raise MemoryNotFoundError(path)
        return result[0]

    async def read_many(self, directory: str, paths: Sequence[str]) -> tuple[MemoryFile, ...]:
        """Return several memories in the given order, without those that cannot be read."""
        return await to_thread.run_sync(self.reading.read_many, directory, tuple(paths))

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
        query = partial(Past.changes, only=wanted, limit=limit, before=before)
        return await self.consult(query, directory)

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Check directories for external edits until cancelled: at once, then on each request."""
        self._event_loop = current_token()
        watch = self._watch = Watch(self._detection.note_change, self._wake)
        self._detection.use_watch(watch)
        for directory in await to_thread.run_sync(self._commits.directories):
            self._detection.request_check(directory)
        self._check_requested.set()
        task_status.started()
        try:
            async with anyio.create_task_group() as self._group:
                self._group.start_soon(self._tend)
                while True:
                    await self._check_requested.wait()
                    # By then most programs have ended their save.
                    await self._clock.sleep(limits.LOOK_SECONDS)
                    # A new event before the checks: a request during them needs one more round.
                    self._check_requested = anyio.Event()
                    for directory in sorted(self._detection.pending()):
                        await self._check_directory(directory)
        finally:
            self._watch = self._event_loop = self._group = None
            self._detection.use_watch(None)
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(watch.close)
                await to_thread.run_sync(self.reading.tend)
                self._replaced.close()

    async def _tend(self) -> None:
        """Store and drop catalogues every 30 s; request full checks every ten minutes."""
        for turn in count(1):
            await self._clock.sleep(_TEND_SECONDS)
            await to_thread.run_sync(self.reading.tend)
            if turn % _FULL_CHECK_TURNS == 0:
                self._detection.request_full_checks()
                self._check_requested.set()

    def watch_problems(self) -> tuple[str, ...]:
        """Return a sentence for each directory whose external edits are only seen at its use."""
        not_watched = self._watch.problems() if self._watch else ()
        return (*not_watched, *self._check_errors.values())

    async def purge(self, request: PurgeRequest, *, dry_run: bool) -> Purged:
        """Remove text for good from all that memd stores, or return what would be removed.

        No directory can be committed to meanwhile: any may hold the text. Raises as ``Purger.run``.
        """
        async with AsyncExitStack() as locks:
            for real_path in sorted(await to_thread.run_sync(self._commits.directories)):
                await locks.enter_async_context(self._lock(real_path))
                with suppress(OSError, MemdError):
                    await self._detect(real_path)
            return await to_thread.run_sync(partial(self._purger.run, request, dry_run=dry_run))

    async def attribute(
        self, directory: str, paths: Collection[str], by: Provenance
    ) -> CommitResult:
        """Record that ``by`` has written memories itself; index them. Raises as ``commit``."""
        real_path = await self._real_path(directory)
        async with self._lock(real_path):
            await self._detect(real_path, claim=True)
            since = self._clock.now() - _JUST_NOW_SECONDS
            files = {*paths, *INDEXES}
            await to_thread.run_sync(self._journal.attribute, real_path, files, by, since)
        return await self.commit(directory, partial(draft_with_lines, paths), by)

    async def consult(self, query: Callable[[Past], T], directory: str = "") -> T:
        """Run a query of the history in a worker thread and return its result.

        If a directory is given, it is first checked for external edits. Nothing is pruned from the
        history meanwhile. Raises what the query raises.
        """
        if directory:
            await self._check_if_free(directory)
        return await to_thread.run_sync(self._journal.without_pruning, partial(query, self._past))

    async def still(self, directory: str, work: Callable[[str], T]) -> T:
        """Run work with a directory's real path in a thread while memd changes nothing there.

        Raises what the work raises.
        """
        real_path = await self._real_path(directory)
        async with self._lock(real_path):
            return await to_thread.run_sync(work, real_path)

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
        make_plan = partial(plan, self._past)
        return await self._commit(directory, make_plan, by, request_id, dry_run=dry_run)

    async def _commit(
        self,
        directory: str,
        make_plan: Callable[[], Plan],
        by: Provenance,
        request_id: str,
        *,
        dry_run: bool = False,
    ) -> CommitResult:
        """Commit or rehearse a plan, which is made anew for each attempt; publish the change.

        For two seconds it waits for programs that have the same files open for writing.
        """
        real_path = await self._real_path(directory)
        wait_until = self._clock.monotonic() + limits.WRITER_SECONDS

        def work() -> CommitResult:
            at, now = self._clock.now(), self._clock.monotonic()
            writers = OpenFiles.WAIT if now < wait_until else OpenFiles.EMPTIED
            request = ChangeRequest(real_path, make_plan(), by, at, request_id, now, writers)
            return self._changes.rehearse(request) if dry_run else self._commits.change(request)

        committed: CommitResult | None = None
        while committed is None:
            try:
                async with self._lock(real_path):
                    await self._detect(real_path, claim=True)
                    committed = await to_thread.run_sync(self._journal.without_pruning, work)
            except BeingWrittenError:  # most programs finish their save in a moment
                await self._clock.sleep(limits.WRITER_POLL_SECONDS)
        if committed.change and not committed.repeated:
            self._request_check(real_path)  # a program may save into the file just replaced
            self._events.publish(event_of(directory, committed, by))
        return committed

    def _lock(self, real_path: str) -> anyio.Lock:
        """Return the lock that whoever changes a directory holds."""
        return self._locks.setdefault(real_path, anyio.Lock())

    async def _real_path(self, directory: str) -> str:
        """Return a directory's real path; remember the path that the caller used, for events."""
        real_path = await to_thread.run_sync(os.path.realpath, directory)
        self._callers_paths[real_path] = directory
        return real_path

    async def _detect(
        self, real_path: str, *, patient: bool = False, claim: bool = False
    ) -> str | None:
        """Journal external edits and late saves of a directory, and publish them.

        The caller holds the directory's lock. If some files had to be left, a later check is
        planned. ``patient`` and ``claim`` are as in ``DetectionScope``. Returns the id of the last
        change that was journalled, or ``None``.
        """

        def work() -> tuple[Detected, list[CommitResult], bool]:
            at = self._clock.now()
            detected = self._detection.detect(real_path, at, patient=patient, claim=claim)
            now = self._clock.monotonic()
            return detected, *self._commits.commit_late_saves(real_path, at, now)

        detected, late_saves, some_left = await to_thread.run_sync(work)
        self._check_errors.pop(real_path, None)
        pause = self._detection.pause(real_path, again=some_left or bool(detected.unsettled))
        if pause == 0:
            self._request_check(real_path)
        elif pause and self._group:
            self._group.start_soon(self._request_check_after, real_path, pause)
        results = [detected.change.result()] if detected.change else []
        results += late_saves
        directory = self._callers_paths.get(real_path, real_path)
        for result in results:
            self._events.publish(event_of(directory, result, EXTERNAL))
        return results[-1].change if results else None

    async def _check_directory(self, real_path: str) -> None:
        """Check a directory as was requested; an error becomes a sentence of ``watch_problems``.

        A file that looks half saved is left once, and taken as it is by the next check.
        """
        try:
            async with self._lock(real_path):
                patient = not self._detection.may_be_half_saved(real_path)
                await self._detect(real_path, patient=patient)
        except (OSError, MemdError) as error:
            self._check_errors[real_path] = f"{real_path} cannot be looked at: {error}"

    async def _check_if_free(self, directory: str) -> None:
        """Check for external edits, unless a commit holds the lock: it has just checked."""
        real_path = await self._real_path(directory)
        if not self._lock(real_path).locked():
            await self._check_directory(real_path)

    def _directory_changed(self, real_path: str, directory: str) -> None:
        """Request a check of a directory, from any thread but the event loop's."""
        self._callers_paths.setdefault(real_path, directory)
        self._detection.request_check(real_path)
        self._wake()

    async def _request_check_after(self, real_path: str, pause: float) -> None:
        """Request a check of a directory after ``pause`` seconds."""
        await self._clock.sleep(pause)
        self._request_check(real_path)

    def _request_check(self, real_path: str) -> None:
        """Request a check of a directory and wake ``run``, from the event loop's thread."""
        self._detection.request_check(real_path)
        self._check_requested.set()

    def _wake(self) -> None:
        """Wake ``run``, from any thread but the event loop's."""
        event_loop = self._event_loop
        if event_loop is not None:
            # A lambda, since ``run`` replaces the event: the one current in the loop must be set.
            from_thread.run_sync(lambda: self._check_requested.set(), token=event_loop)  # noqa: PLW0108
