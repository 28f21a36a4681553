"""Sync the team memory of all directories and carry out the ``team.*`` methods. Async.

A sync runs in a worker thread, one at a time for each repository on a server. The thread calls back
to the loop for the network and the store's commits, so no directory's lock is held while it waits
for the network. A directory has a task only while a sync is due there.
"""

import random
from collections.abc import Callable, Collection, Coroutine, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from functools import partial
from typing import Annotated, Any, Literal, TypeVar
from uuid import uuid4

import anyio
import msgspec
from anyio import from_thread, to_thread
from anyio.abc import TaskGroup

from memd.base.clock import Clock
from memd.base.errors import MemdError, Refused, Unavailable
from memd.base.events import TEAM_CHANGED, TEAM_CONFLICT, TEAM_SUPPRESSED, Event, EventSink
from memd.base.inbox import Decided, InboxItem, ItemDecision, PlacedItem
from memd.base.names import TEAM, check_name
from memd.base.recent import Recent
from memd.base.settings import Settings
from memd.base.team import SyncState
from memd.base.values import Actor, Project, Provenance
from memd.methods.callers import Callers
from memd.methods.method import Limit, method
from memd.remote.link import HttpRequest, HttpResponse, Link
from memd.rpc.call import Call
from memd.state.teams import TeamTable
from memd.store.store import Store
from memd.team import acts, entering, joining, pausing, syncing, views
from memd.team.errors import team_held, team_not_joined, team_refused
from memd.team.exchange import Exchange, SyncPorts
from memd.team.local import LocalFiles
from memd.team.membership import Memberships as Memberships
from memd.team.place import Due, SyncPlace, place_of
from memd.team.results import (
    Joined,
    LeftTeam,
    SyncResult,
    TeamJoin,
    TeamLog,
    TeamStatus,
)
from memd.team.values import Membership

Progress = Callable[[int], Coroutine[Any, Any, None]]
T = TypeVar("T")
Word = Annotated[str, msgspec.Meta(max_length=1000)]
Reason = Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
Revision = Annotated[int, msgspec.Meta(ge=1, lt=10**17)]  # a server reads 18 digits
_TEAM_OFF = "team.enabled is false"
_THREADS = 4  # syncs at once: each waits for its server in a thread


class TeamSyncs:
    """The syncs of all team directories of this user. One per process; call it on the event loop.

    Both functions of a project's root block: ``settings`` returns its settings, ``memory_off`` why
    memory is off there or "". ``on_unexpected`` gets each unexpected exception. Methods raise
    Off, Unavailable, Refused, errors of store and state file.
    """

    def __init__(
        self,
        store: Store,
        table: TeamTable,
        memberships: Memberships,
        clock: Clock,
        events: EventSink,
        *,
        callers: Callers,
        settings: Callable[[str], Settings],
        memory_off: Callable[[str], str] = lambda _: "",
        on_unexpected: Callable[[BaseException], str],
        link: Callable[[str, str], Link] = Link,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._store = store
        self._table = table
        self.memberships = memberships
        self._clock = clock
        self._callers = callers
        self._events = events
        self._settings = settings
        self._memory_off = memory_off
        self._on_unexpected = on_unexpected
        self._link = link
        self._random = chance
        self._files: Recent[str, LocalFiles] = Recent()  # by directory
        # By server and repository: one sync at a time holds the lock.
        self._locks: Recent[str, anyio.Lock] = Recent(in_use=lambda lock: lock.locked())
        self._threads = anyio.CapacityLimiter(_THREADS)
        self._schedules: dict[str, Due] = {}  # of each directory that has a task
        self._wakeups: dict[str, anyio.Event] = {}  # wake the task of a directory
        self._group: TaskGroup | None = None  # of the tasks, ``None`` unless ``run`` is running

    async def run(self) -> None:
        """Sync directories after changes, and in sessions every few minutes, until cancelled."""
        await to_thread.run_sync(self.memberships.all)  # so that ``Memberships.any`` is known
        try:
            async with anyio.create_task_group() as self._group:
                await anyio.sleep_forever()
        finally:
            self._group = None

    def noticed(self, directory: str, paths: Collection[str]) -> None:
        """Note that files of a directory changed; those below ``team/`` are sent soon."""
        changed = {path for path in paths if path.startswith(TEAM)}
        if changed and (due := self._wake_task(directory)):
            due.noticed(changed, self._clock.monotonic())

    def visited(self, directory: str) -> None:
        """Note that a session is active; its directory is pulled every few minutes."""
        if self.memberships.any and (due := self._wake_task(directory)):
            due.visited(self._clock.monotonic())

    def joined(self, directory: str) -> bool:
        """Return whether a memory directory joined a team. Blocks."""
        return self.memberships.joined(directory)

    async def check_used(self, project: Project) -> None:
        """Check that a project uses a team's memories. Raises Off, Refused."""

        def check() -> None:
            """Check it. Blocks."""
            directory, team = project.memory_dir, self._settings(project.root).team
            if team.enabled == "false":
                raise team_refused(directory, _TEAM_OFF)
            if not team.used(joined=self.memberships.joined(directory)):
                raise team_not_joined(directory)

        await to_thread.run_sync(check)

    @method("team.sync", "write")
    async def sync(self, call: Call, *, cwd: str) -> SyncResult:
        """Fetch what other members wrote and send what changed here, now.

        Also what the server refused before is sent. Progress has the number of ``files`` that came.
        """
        directory = (await to_thread.run_sync(self._callers.writable, call, cwd)).memory_dir
        return await self._act(directory, progress=partial(_report_files, call))

    @method("team.status", "read")
    async def status(self, call: Call, *, cwd: str, path: str = "") -> TeamStatus:
        """How far a project is in step with its team, and what waits for a person; asks no server.

        With ``path`` it also says in ``files`` how that memory differs from what was fetched last.
        """
        directory = (await to_thread.run_sync(self._callers.place, call, cwd)).memory_dir
        return await self.status_of(directory, _path(path) if path else "")

    async def status_of(self, directory: str, path: str = "") -> TeamStatus:
        """Return the state of a directory's sync, and how one path differs; asks no server."""
        place = await self._place(directory, off=True)
        off = place.off or await to_thread.run_sync(self._memory_off, place.membership.root)
        return await self._view(place, partial(views.status, off=off, path=path))

    @method("team.log", "read")
    async def log(
        self,
        call: Call,
        *,
        cwd: str,
        path: str = "",
        limit: Limit = 50,
        before: Revision | None = None,
    ) -> TeamLog:
        """The versions of one memory on the server, newest first, those ``before`` a revision.

        Without ``path`` the members whose memories are here; that asks no server.
        """
        directory = (await to_thread.run_sync(self._callers.place, call, cwd)).memory_dir
        if not path:
            await self._place(directory, off=True)
            bases = await to_thread.run_sync(self._table.bases, directory)
            return TeamLog(members=views.members(bases))
        key = _path(path).removeprefix(TEAM)
        view = partial(views.log, key=key, before=before, limit=limit)
        return TeamLog(versions=await self._view(await self._place(directory), view))

    @method("team.remove", "write")
    async def remove(self, call: Call, *, cwd: str, path: str, reason: Reason) -> SyncResult:
        """Remove a memory for all members; it stays in the server's history."""
        directory = (await to_thread.run_sync(self._callers.writable, call, cwd)).memory_dir
        act = partial(acts.remove, path=_path(path), reason=reason)
        return await self._act(directory, act, send=False)

    @method("team.resolve", "write")
    async def resolve(
        self,
        call: Call,
        *,
        cwd: str,
        path: str = "",
        how: Literal["ours", "theirs", "edit", "restore", "accept"],
        text: str | None = None,
        revision: Revision | None = None,
    ) -> SyncResult:
        """Decide what waits for a person, and sync.

        Of a conflict or a held file ``ours`` sends the text here, ``theirs`` takes the server's
        state, and ``edit`` sends the ``text``. ``restore`` brings back an older version from the
        server's history: the last one before a removal, or that of the ``revision``. ``accept``
        needs no path: it goes on with a server that removes many memories or looks wrong.
        """
        directory = (await to_thread.run_sync(self._callers.writable, call, cwd)).memory_dir
        return await self._resolve(directory, path, how, text, revision)

    async def items(self, project: Project | None, id_: str = "") -> Sequence[PlacedItem]:
        """Return what waits in team directories, each with its directory; paths are the ids."""
        find = partial(views.waiting, self._table, self.memberships)
        every = await to_thread.run_sync(find, project.memory_dir if project else "")
        return [(directory, each) for directory, each in every if id_ in ("", each.id)]

    async def decide(self, directory: str, item: InboxItem, decision: ItemDecision) -> Decided:
        """Decide a conflict or a held file, or accept a server, and sync. Raises NotFound."""
        path = item.files[0].path if item.files else ""
        result = await self._resolve(directory, path, decision.answer.value, decision.text)
        return Decided(item.id, "decided", path, result.change or None)

    async def _resolve(
        self,
        directory: str,
        path: str,
        how: str,
        text: str | None,
        revision: int | None = None,
    ) -> SyncResult:
        """Decide what waits, as ``team.resolve`` does, and sync."""
        if how == "accept":
            return await self._accept(directory)
        path = _path(path)
        act = partial(acts.resolve, path=path, how=how, text=text)
        if how == "restore":
            act = partial(acts.restore, path=path, revision=revision)
        return await self._act(directory, act, path)

    async def _accept(self, directory: str) -> SyncResult:
        """Accept a server that seemed wrong, or a pull that removes many files, and sync."""

        def accept(exchange: Exchange) -> None:
            acts.accept(exchange)
            syncing.sync(exchange, push=True, requested=True)

        return await self._run(await self._place(directory), accept)

    @method("team.join", "write")
    async def join(
        self,
        call: Call,
        *,
        cwd: str,
        url: Word,
        code: Word = "",
        repo: Word = "",
        preview: bool = False,
    ) -> TeamJoin:
        """Join the team of a project's repository, or say what that would do.

        ``repo`` is the repository, by default the one that ``origin`` names in ``.git/config``. The
        ``code`` of an invitation is needed where this device has no token for the server. The
        project's memory directory joins; no file of a repository can make it join.
        """
        project = await to_thread.run_sync(self._callers.writable, call, cwd)
        find = partial(joining.prospect, self.memberships, project, url, repo)
        prospect = await to_thread.run_sync(find)
        now, directory = self._clock.now(), project.memory_dir
        expect = partial(views.preview, project, prospect, self._local_files(directory))
        expected = await to_thread.run_sync(expect)
        if preview:
            return TeamJoin(preview=expected, joined=None)
        enter = partial(entering.enter, self.memberships, project, prospect, code, now=now)
        membership, role = await to_thread.run_sync(
            partial(enter, ask=self._ask_from_thread), limiter=self._threads
        )
        result = await self._act(directory, progress=partial(_report_files, call))
        place = (membership.server, membership.remote, membership.member, membership.device)
        return TeamJoin(preview=expected, joined=Joined(*place, role, result))

    @method("team.leave", "write")
    async def leave(self, call: Call, *, cwd: str, remove: bool = False) -> LeftTeam:
        """Leave the team; this device's token is revoked unless another directory needs it.

        The team's files stay here, or with ``remove`` are deleted, as a change.
        """
        directory = (await to_thread.run_sync(self._callers.place, call, cwd)).memory_dir
        place = await self._place(directory, off=True)
        membership = place.membership
        async with self._repository_lock(membership):
            leaving = partial(entering.leave, self.memberships, membership, self._ask_from_thread)
            why = await to_thread.run_sync(leaving, limiter=self._threads)
            await to_thread.run_sync(self._table.forget, directory)
            change = None
            if remove:
                by = Provenance(Actor.CLIENT, reason=f"left the team of {membership.remote}")
                change = (await self._store.commit(directory, entering.without_team, by)).change
        return LeftTeam(membership.server, membership.remote, not why, why, change or "")

    def _wake_task(self, directory: str) -> Due | None:
        """Wake a directory's task, starting it if needed, and return its schedule."""
        if self._group is None:
            return None
        if directory not in self._schedules:
            self._schedules[directory] = Due()
            self._group.start_soon(self._sync_when_due, directory, self._schedules[directory])
        self._wakeups.setdefault(directory, anyio.Event()).set()
        return self._schedules[directory]

    async def _sync_when_due(self, directory: str, due: Due) -> None:
        """Sync a directory whenever it is due, until nothing is due or it has left its team."""
        try:
            while await to_thread.run_sync(self.memberships.joined, directory):
                wakeup = self._wakeups[directory] = anyio.Event()
                now = self._clock.monotonic()
                at = due.next(now)
                if at is None:
                    return
                if at > now:  # wait for the time or a change, then look at the schedule again
                    async with anyio.create_task_group() as group:
                        group.start_soon(self._set_after, at - now, wakeup)
                        await wakeup.wait()
                        group.cancel_scope.cancel()
                    continue
                changed, due.changed = due.changed, set()
                state = await self._sync_automatically(directory, changed)
                now = self._clock.monotonic()
                due.pull = now + pausing.jittered_interval(self._random)
                wait = state.until - self._clock.now() if state else 0.0
                due.retry = now + wait if wait > 0 else 0.0
        finally:
            del self._schedules[directory]
            self._wakeups.pop(directory, None)

    async def _set_after(self, seconds: float, wakeup: anyio.Event) -> None:
        """Set an event after ``seconds`` of the clock."""
        await self._clock.sleep(seconds)
        wakeup.set()

    async def _sync_automatically(self, directory: str, changed: set[str]) -> SyncState | None:
        """Sync without a person's request; return the state after it, ``None`` if unknown."""
        try:
            place = await self._place(directory, off=True)
            root = place.membership.root
            if place.off or await to_thread.run_sync(self._memory_off, root):
                return None
            with suppress(Unavailable, Refused):
                sync = partial(syncing.sync, push=True, changed=changed)
                await self._run(place, sync)
            return await to_thread.run_sync(self._table.state, directory)
        except MemdError:
            return None  # a failing disk, or the directory has just left its team
        except Exception as error:  # noqa: BLE001 - the edge: no fault of a sync ends the daemon
            self._on_unexpected(error)
            return None

    async def _place(self, directory: str, *, off: bool = False) -> SyncPlace:
        """Return a directory's membership and settings."""
        find = partial(place_of, self.memberships, self._settings, directory)
        place = await to_thread.run_sync(find)
        if place.off and not off:
            raise team_refused(place.membership.remote, place.off)
        return place

    async def _act(
        self,
        directory: str,
        act: Callable[[Exchange], None] | None = None,
        path: str = "",
        *,
        send: bool = True,
        progress: Progress | None = None,
    ) -> SyncResult:
        """Pull, carry out a person's act, and send all changes unless ``send`` is false."""
        place = await self._place(directory)

        def work(exchange: Exchange) -> None:
            """Pull, act and push, in a worker thread."""
            if progress is not None:
                exchange.progress = lambda count: from_thread.run(progress, count)
            if act is not None:
                syncing.sync(exchange, push=False, requested=True)
                if exchange.state.waits:  # a person has to accept the server first
                    raise team_refused(place.membership.remote, exchange.state.waits)
                act(exchange)
            if send:
                syncing.sync(exchange, push=True, requested=True)
            held = self._table.held(directory).get(path.removeprefix(TEAM)) if path else None
            if held is not None:
                raise team_held(path, held.detail or held.reason)

        return await self._run(place, work)

    async def _run(self, place: SyncPlace, work: Callable[[Exchange], None]) -> SyncResult:
        """Run a sync in a thread, publish what it did, and return its result."""
        membership = place.membership
        async with (
            self._repository_lock(membership),
            self._link(membership.server, place.token) as link,
        ):
            # Edits of other programs are recorded in the journal before they are sent.
            await to_thread.run_sync(self._store.consult, lambda *_: None, membership.directory)
            exchange = await to_thread.run_sync(partial(self._make_exchange, place, link.send))
            before = exchange.state

            def run() -> SyncResult:
                work(exchange)
                return exchange.result()

            try:
                return await to_thread.run_sync(run, limiter=self._threads)
            except CancelledError:  # the thread's call to the loop was cancelled, and so are we
                await anyio.lowlevel.checkpoint()
                raise
            finally:
                self._publish(exchange, before)

    async def _view(self, place: SyncPlace, view: Callable[[Exchange], T]) -> T:
        """Run a function that reads a directory's state, in a thread with a link to its server."""
        async with self._link(place.membership.server, place.token) as link:
            return await to_thread.run_sync(
                lambda: view(self._make_exchange(place, link.send)), limiter=self._threads
            )

    def _ask_from_thread(self, server: str, token: str, request: HttpRequest) -> HttpResponse:
        """Send a request from a worker thread and return the answer."""
        return from_thread.run(self._ask, server, token, request)

    async def _ask(self, server: str, token: str, request: HttpRequest) -> HttpResponse:
        """Send one request over a new link and return the answer."""
        async with self._link(server, token) as link:
            return await link.send(request)

    def _make_exchange(
        self, place: SyncPlace, send: Callable[[HttpRequest], Coroutine[Any, Any, HttpResponse]]
    ) -> Exchange:
        """Return the exchange for a sync of a directory; its ports call back from a thread."""
        directory = place.membership.directory
        ports = SyncPorts(
            table=self._table,
            files=self._local_files(directory),
            send=lambda request: from_thread.run(send, request),
            commit=lambda plan, by: from_thread.run(self._store.commit, directory, plan, by),
            wait=lambda seconds: from_thread.run(self._clock.sleep, seconds),
            now=self._clock.now,
            monotonic=self._clock.monotonic,
            random=self._random,
            new_id=lambda: str(uuid4()),
        )
        return Exchange(place.membership, place.credentials, ports)

    def _publish(self, exchange: Exchange, before: SyncState) -> None:
        """Publish events for changed paths, conflicts, and a new pause or wait."""
        effects, directory = exchange.effects, exchange.directory
        paths = effects.paths()
        if any(paths.values()):
            self._events.publish(Event(TEAM_CHANGED, directory, paths))
        for page in effects.pages:
            for item in page.conflicts:
                params = {"path": f"{TEAM}{item.key}", "member": item.member}
                self._events.publish(Event(TEAM_CONFLICT, directory, params))
        reason = exchange.state.waits or exchange.state.paused
        if reason and reason != (before.waits or before.paused):
            self._events.publish(Event(TEAM_SUPPRESSED, directory, {"reason": reason}))

    def _repository_lock(self, membership: Membership) -> anyio.Lock:
        """Return the lock under which one sync at a time uses a repository."""
        name = f"{membership.server} {membership.repository}"
        return self._locks.setdefault(name, anyio.Lock())

    def _local_files(self, directory: str) -> LocalFiles:
        """Return the cache of the hashes of a directory's team files."""
        return self._files.setdefault(directory, LocalFiles(self._store.reading, directory))


async def _report_files(call: Call, files: int) -> None:
    """Report how many files came so far."""
    await call.progress({"files": files})


def _path(path: str) -> str:
    """Return a memory's path below ``team/``. Raises Refused."""
    team_path = path if path.startswith(TEAM) else f"{TEAM}{path}"
    return check_name(team_path)
