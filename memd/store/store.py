"""The memory directories of this user: the only file of this room that awaits.

Disk and state file are used in worker threads. A caller that is cancelled gets its cancellation
after the thread has ended, so no change is half reported. Writers of one directory wait for each
other; readers wait for no writer, since a slow disk must not delay a prompt.
"""

import os
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar

import anyio
from anyio import from_thread, to_thread
from anyio.abc import TaskGroup, TaskStatus
from anyio.lowlevel import EventLoopToken, current_token
from msgspec.structs import replace

from memd.base import limits
from memd.base.clock import Clock
from memd.base.errors import MemdError, Storage
from memd.base.events import MEMORY_CHANGED, Event, EventSink
from memd.base.names import INDEXES
from memd.base.recent import Recent
from memd.base.team import Author
from memd.base.values import (
    Actor,
    Change,
    CommitResult,
    Draft,
    MemoryFile,
    Plan,
    Provenance,
    Tree,
)
from memd.state.database import Database
from memd.store.check import no_memory
from memd.store.disk import Disk, real_disk
from memd.store.draft import mend_index
from memd.store.forget import Purged, PurgeRequest, purge
from memd.store.log import ChangeLog, ChangeRecord
from memd.store.moved import FormerHistory, find_former, take_over
from memd.store.past import Filter, Past
from memd.store.read import MemoryReader
from memd.store.sync import Rows
from memd.store.watch import Watch
from memd.store.words import renew_words
from memd.store.write import BeingWrittenError, ChangeRequest, MovedError, Writer

T = TypeVar("T")
_JUST_NOW_SECONDS = 5.0  # from a tool's write to the hook that tells of it
_LOOK_AT_ALL_SECONDS = 600.0  # between looks at directories that no event was about


class Store:
    """All memory directories of this user. One per process.

    Functions that await are called on the event loop, the others in threads: they block.
    ``author`` returns which member of a team wrote a file, by directory and path.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        events: EventSink,
        *,
        disk: Disk | None = None,
        author: Callable[[str, str], Author | None] = lambda *_: None,
    ) -> None:
        self._watch = Watch()
        self._log = log = ChangeLog(database)
        self._rows = Rows(log, clock, self._watch)
        self.reading = MemoryReader(self._rows, self._noticed)  # blocks
        self.past = Past(log, self.reading.content, author)  # blocks
        self._writer = Writer(self._rows, disk or real_disk(), clock)
        self._clock, self._events = clock, events
        # By real path: whoever changes a directory holds its lock.
        self._locks: Recent[str, anyio.Lock] = Recent(in_use=lambda lock: lock.locked())
        self._pending: set[str] = set()  # directories to look at
        self._replaced: set[str] = set()  # directories whose replaced files may be removed
        self._pauses: dict[str, float] = {}  # by directory: seconds until the next look
        self._half_saved: set[str] = set()  # where the last look left a file that may be half saved
        self._scan_requested = anyio.Event()
        self._event_loop: EventLoopToken | None = None  # while ``run`` runs
        self._group: TaskGroup | None = None
        # By the path that callers use: the real one, when it was last seen.
        self._real_paths: Recent[str, str] = Recent()
        self._scan_errors: Recent[str, str] = Recent()  # by real path: why the last look failed

    async def directories(self) -> tuple[str, ...]:
        """Return the real paths of all memory directories that memd knows."""
        return await to_thread.run_sync(self._log.directories)

    def read(self, directory: str, path: str) -> MemoryFile:
        """Return one memory. Blocks. Raises NotFound and what ``MemoryReader.read`` does."""
        result = self.reading.read(directory, (path,))
        if not result:
            raise no_memory(path)
        return result[0]

    async def commit(
        self,
        directory: str,
        plan: Plan,
        by: Provenance,
        *,
        request_id: str = "",
        listing: bool = False,
    ) -> CommitResult:
        """Run a plan on the live directory and make the change that it wants.

        When this returns, the change is on the medium. For two seconds it waits for programs that
        have the same files open for writing. With ``listing`` the plan needs no headers, only
        which files there are. Raises what ``Writer.commit`` raises.
        """
        wait_until = self._clock.monotonic() + limits.WRITER_SECONDS
        while True:
            real = self._real_paths.get(directory) or await self._real_path(directory)
            wait = self._clock.monotonic() < wait_until
            request = ChangeRequest(
                real, plan, by, request_id, wait=wait, listing=listing, path=directory
            )
            try:
                async with self._lock(real):
                    result, others = await to_thread.run_sync(self._writer.commit, request)
            except BeingWrittenError:  # most programs finish their save in a moment
                await self._clock.sleep(limits.WRITER_POLL_SECONDS)
                continue
            except MovedError:
                self._real_paths.pop(directory, None)
                continue
            if others:
                self._publish(real, others)
            if result.change and not result.repeated:
                self._events.publish(_event(directory, result, by))
                self._replaced.add(real)  # a program may save into the file just replaced
                self._scan_requested.set()
            return result

    async def take_back(
        self,
        directory: str,
        plan: Callable[[Past, str], Plan],
        by: Provenance,
        *,
        request_id: str = "",
        dry_run: bool = False,
    ) -> CommitResult:
        """Commit a plan made from the past of the directory (its real path).

        ``dry_run`` only returns what it would do. Raises what making the plan raises, and what
        ``commit`` raises.
        """
        real = await self._real_path(directory)

        def plan_now(tree: Tree) -> Draft:
            """Make the plan from what the past is now, and run it. Blocks."""
            return plan(self.past, real)(tree)

        if not dry_run:
            return await self.commit(directory, plan_now, by, request_id=request_id)
        async with self._lock(real):
            request = ChangeRequest(real, plan_now, by)
            return await to_thread.run_sync(self._writer.rehearse, request)

    async def recover(self) -> tuple[str, ...]:
        """Undo the changes that a crash left, before serving; return sentences about them."""
        sentences = await to_thread.run_sync(self._writer.recover)
        await to_thread.run_sync(renew_words, self._log)
        return sentences

    def history(
        self,
        directory: str,
        *,
        path: str = "",
        limit: int = 50,
        before: str = "",
        only: Filter | None = None,
    ) -> tuple[Change, ...]:
        """Return changes, newest first, of ``path`` and older than ``before`` if given.

        ``directory`` is "" for all directories; ``only`` filters further. Blocks. Raises NotFound
        for a ``before`` that is no change's id.
        """
        chosen = replace(only or Filter(), path=path)

        def query(past: Past, real: str) -> tuple[Change, ...]:
            return past.changes(replace(chosen, directory=real), limit=limit, before=before)

        return self.consult(query, directory)

    def consult(self, query: Callable[[Past, str], T], directory: str = "") -> T:
        """Return the result of a query of the past, which gets the directory's real path.

        The directory is looked at first. Blocks. Raises what the query raises.
        """
        real = ""
        if directory:
            self._real_paths[directory] = real = os.path.realpath(directory)
            self._watch.add(real)  # before the look, which then sees all that was before it
            with suppress(OSError, MemdError):
                self.reading.headers(directory, real)
        return query(self.past, real)

    async def still(self, directory: str, work: Callable[[str], T]) -> T:
        """Run work with a directory's real path in a thread while memd changes nothing there."""
        real = await self._real_path(directory)
        async with self._lock(real):
            return await to_thread.run_sync(work, real)

    async def attribute(
        self, directory: str, paths: Collection[str], by: Provenance
    ) -> CommitResult:
        """Record that ``by`` has written memories itself; index them. Raises as ``commit``."""
        real = await self._real_path(directory)
        since, written = self._clock.now() - _JUST_NOW_SECONDS, {*paths, *INDEXES}

        def work() -> None:
            """Find the external changes of a moment ago that touch only these files. Blocks."""
            with self._rows.of(real).lock:
                self._writer.scan(real, claim=True)
            condition, values = "d.path = ? AND c.actor = ? AND c.at >= ?", (real, Actor.EXTERNAL)
            records = self._log.select(condition, (*values, since))
            own = [each for each in records if {step.path for step in each.steps} <= written]
            self._log.attribute([each.number for each in own], by)

        async with self._lock(real):
            await to_thread.run_sync(work)
        return await self.commit(directory, mend_index(paths), by)

    def former_history(self, directory: str) -> FormerHistory | None:
        """Return the history that a moved directory can take over. Blocks. Raises Storage."""
        return find_former(self._log, os.path.realpath(directory))

    async def take_over(self, directory: str) -> FormerHistory | None:
        """Give a moved directory the history that it had before, if there is one.

        Raises Storage.
        """
        former = await self.still(directory, partial(take_over, self._log))
        self._rows.forget()  # those of the old path are gone
        return former

    async def purge(self, request: PurgeRequest, *, dry_run: bool) -> Purged:
        """Remove texts for good from the history, or return what would be removed."""
        real = await self._real_path(request.directory)
        for directory in await self.directories():
            await self._scan(directory)
        wanted = replace(request, directory=real)
        return await to_thread.run_sync(partial(purge, self._rows, wanted, dry_run=dry_run))

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Look at directories until cancelled: at once, after each event and each change."""
        self._event_loop = current_token()
        self._watch.start(self._wake)
        with suppress(Storage):  # each is looked at when it is used
            self._pending |= set(await self.directories())
        self._scan_requested.set()
        task_status.started()
        try:
            async with anyio.create_task_group() as self._group:
                self._group.start_soon(self._scan_all)
                while True:
                    await self._scan_requested.wait()
                    # By then most programs have ended their save.
                    await self._clock.sleep(limits.LOOK_SECONDS)
                    # A new event before the looks: a request during them needs one more round.
                    self._scan_requested = anyio.Event()
                    pending = self._pending | self._watch.flagged()
                    replaced = self._replaced - pending
                    self._pending.clear()
                    self._replaced.clear()
                    for real in sorted(pending):
                        await self._scan(real, patient=real not in self._half_saved)
                    for real in sorted(replaced):
                        await self._scan(real, only_replaced=True)
        finally:
            self._event_loop = self._group = None
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(self._end)

    def watch_problems(self) -> tuple[str, ...]:
        """Return a sentence for each directory whose external edits are only seen at its use."""
        return (*self._watch.problems(), *self._scan_errors.values())

    async def _scan(self, real: str, *, patient: bool = False, only_replaced: bool = False) -> None:
        """Look at what others did in a directory; an error becomes a sentence.

        A file that looks half saved is left by a patient look, and taken as it is by the next one.
        With ``only_replaced`` only the files that memd replaced are looked at.
        """

        def work() -> tuple[list[ChangeRecord], bool]:
            """Look. Blocks."""
            if not only_replaced:
                self._watch.add(real)  # before the look, which then sees all that was before it
            with self._rows.of(real).lock:
                if only_replaced:
                    return self._writer.clear(real)
                return self._writer.scan(real, patient=patient)

        try:
            async with self._lock(real):
                others, again = await to_thread.run_sync(work)
        except (OSError, MemdError) as error:
            self._scan_errors[real] = f"{real} cannot be looked at: {error}"
            return
        self._scan_errors.pop(real, None)
        self._publish(real, others)
        if not only_replaced:
            self._half_saved.discard(real)
        if not again:
            self._pauses.pop(real, None)
            return
        if not only_replaced:
            self._half_saved.add(real)
        # A program may keep a file open for hours, so the pauses become longer.
        pause = self._pauses.get(real, 0.0)
        self._pauses[real] = min(max(2 * pause, limits.LOOK_SECONDS), limits.LOOK_SECONDS_MOST)
        if self._group:
            waiting = self._replaced if only_replaced else self._pending
            self._group.start_soon(self._scan_after, real, pause, waiting)

    async def _scan_after(self, real: str, pause: float, waiting: set[str]) -> None:
        """Add a directory to those that wait for a look, after some seconds."""
        await self._clock.sleep(pause)
        waiting.add(real)
        self._scan_requested.set()

    async def _scan_all(self) -> None:
        """Look at all known directories every ten minutes: an event may have been missed."""
        while True:
            await self._clock.sleep(_LOOK_AT_ALL_SECONDS)
            self._pending |= set(self._real_paths.values())
            self._scan_requested.set()

    def _end(self) -> None:
        """Stop watching, and remove replaced files that nobody has open. Blocks."""
        self._watch.stop()
        for real in set(self._real_paths.values()):
            try:
                with self._rows.of(real).lock:
                    self._writer.scan(real, last=True)
                    self._rows.write_stamps(real, self._rows.of(real))
            except (OSError, MemdError):
                continue  # the next start does it

    def _lock(self, real: str) -> anyio.Lock:
        """Return the lock that whoever changes a directory holds."""
        return self._locks.setdefault(real, anyio.Lock(fast_acquire=True))

    async def _real_path(self, directory: str) -> str:
        """Return a directory's real path; remember the path that the caller used, for events."""
        self._real_paths[directory] = real = await to_thread.run_sync(os.path.realpath, directory)
        return real

    def _noticed(self, directory: str, records: Sequence[ChangeRecord]) -> None:
        """Publish what a reader found that others changed, from the reader's thread."""
        event_loop = self._event_loop
        if event_loop is not None:
            real = os.path.realpath(directory)
            self._real_paths.setdefault(directory, real)
            from_thread.run_sync(self._publish, real, list(records), token=event_loop)

    def _publish(self, real: str, records: Sequence[ChangeRecord]) -> None:
        """Publish what others changed in a directory."""
        real_paths = list(self._real_paths.items())  # a copy, since threads set entries
        paths = [path for path, leads_to in real_paths if leads_to == real]
        directory = paths[-1] if paths else real
        for record in records:
            self._events.publish(_event(directory, record.result(), record.by))

    def _wake(self) -> None:
        """Wake ``run``, from a thread of the watch."""
        event_loop = self._event_loop
        if event_loop is not None:
            # A lambda, since ``run`` replaces the event: the one current in the loop must be set.
            from_thread.run_sync(lambda: self._scan_requested.set(), token=event_loop)  # noqa: PLW0108


def _event(directory: str, result: CommitResult, by: Provenance) -> Event:
    """Return the event that tells subscribers of a change.

    ``directory`` is the path that callers use, which need not be the real one.
    """
    files = [{"path": file.path, "action": file.action} for file in result.files]
    facts = {"change": result.change, "actor": by.actor.value, "client": by.client, "files": files}
    return Event(MEMORY_CHANGED, directory, facts)
