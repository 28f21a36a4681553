"""Say who changed which memories, when and why, and take changes back."""

from collections.abc import Callable
from functools import partial

from anyio import to_thread
from msgspec import Struct
from msgspec.structs import asdict

from memd.base.errors import NotFound, Refused
from memd.base.text import iso_time
from memd.base.values import Actor, Change, Plan, Project, Provenance
from memd.methods.callers import AgentName, Callers, SubagentScope
from memd.methods.method import Limit, Time, invalid_params, method, moment, seconds
from memd.rpc.call import Call
from memd.state.ledger import Sighting
from memd.store.check import no_memory
from memd.store.forget import Purged, purge_request
from memd.store.past import FileDiff, FileVersion, Filter, Past, Range
from memd.store.store import Store

# A method and what is wrong with its parameters.
_ONE_KIND_OF_DIFF = (
    "memory.diff",
    "from and to are for the versions of a file: give path with them, and no change",
)
_ONE_KIND_OF_UNDO = (
    "memory.undo",
    "give at most one of change, from (and to) and as_of; with path only change may be given",
)


class FileTouched(Struct, frozen=True, kw_only=True):
    """A file of a change and what happened to it."""

    path: str
    action: str


class FileRecorded(FileTouched, frozen=True, kw_only=True):
    """A file of a change in the history; ``purged``: a text of it was removed for good."""

    purged: bool


class ChangeFacts(Struct, frozen=True, kw_only=True):
    """One change of the history, ``at`` in ISO 8601; ``id`` is "" if it came with an archive."""

    id: str
    at: str
    actor: str
    client: str
    session: str
    model: str
    reason: str
    origin: str
    directory: str
    files: list[FileRecorded]


class History(Struct, frozen=True, kw_only=True):
    """The newest changes first.

    ``former`` is the path at which a moved directory had a history that it can take over, or "".
    """

    changes: list[ChangeFacts]
    former: str


class TakenOver(Struct, frozen=True, kw_only=True):
    """Where the history was that the project has now, and how many changes came with it."""

    former: str
    changes: int


class Diff(Struct, frozen=True, kw_only=True):
    """The diffs of one change, or of two versions of one file."""

    files: tuple[FileDiff, ...]


class Undone(Struct, frozen=True, kw_only=True):
    """The result of an undo: ``files`` that it restored, and those that had newer changes.

    In ``merged`` files the undo is combined with the newer changes; ``conflicts`` were left alone.
    ``undone`` are the ids of the changes that are taken back, as c4 or c2 to c4.
    """

    change: str | None
    undone: str
    files: list[FileTouched]
    merged: tuple[str, ...]
    conflicts: tuple[str, ...]


class LastSurfaced(Struct, frozen=True, kw_only=True):
    """When a memory was last given to a session."""

    at: str
    session: str


class SharedBy(Struct, frozen=True, kw_only=True):
    """Who wrote a team's memory, as the server recorded it; ``at`` is ISO 8601 in UTC."""

    member: str
    device: str
    at: str
    revision: int


class Why(Struct, frozen=True, kw_only=True):
    """Where a memory comes from, as far as the journal goes back; ``changes`` newest first.

    ``origin`` is what the memory itself says about whose words it holds.
    """

    path: str
    exists: bool
    origin: str
    first: FileVersion | None
    last: FileVersion | None
    changes: tuple[str, ...]
    surfaced: LastSurfaced | None
    shared: SharedBy | None


class Journal:
    """The history of memories.

    ``last_surfaced`` returns when one was given to a session, and blocks.
    """

    def __init__(
        self,
        store: Store,
        callers: Callers,
        last_surfaced: Callable[[str, str], Sighting | None],
    ) -> None:
        self._store = store
        self._callers = callers
        self._last_surfaced = last_surfaced

    @method("memory.history", "read")
    def history(
        self,
        call: Call,
        *,
        cwd: str,
        path: str = "",
        actor: Actor | None = None,
        session: str = "",
        client: str = "",
        since: Time | None = None,
        until: Time | None = None,
        all_projects: bool = False,
        limit: Limit = 50,
        before: str = "",
        agent: AgentName = "",
        scope: SubagentScope | None = None,
    ) -> History:
        """Who changed what, when and why; newest first.

        ``before`` is a change id to page on from. ``since`` and ``until`` are ISO 8601 or seconds
        since 1970, the former included. After the project's own changes come those that archives
        brought, without an id.
        """
        directory = ""
        if not all_projects:
            directory = self._callers.readable(call, cwd, agent, scope).memory_dir
        only = Filter(
            actor=actor,
            session=session,
            client=client,
            since=seconds("since", since),
            until=seconds("until", until),
        )
        find_changes = partial(self._store.history, directory, path=path, only=only)
        changes = find_changes(limit=limit, before=before)
        results = [_facts_of_change(change) for change in changes]
        former = None
        if directory and not before and len(changes) < limit:
            former = self._store.former_history(directory)
        return History(changes=results, former=former.directory if former else "")

    @method("memory.take_over", "write")
    async def take_over(self, call: Call, *, cwd: str) -> TakenOver:
        """Give the project the history that its memories had before their directory was moved.

        There is one where nothing lies at the old path any more and most texts are the same.
        """
        directory = (await to_thread.run_sync(self._callers.writable, call, cwd)).memory_dir
        former = await self._store.take_over(directory)
        if former is None:
            raise NotFound(f"no history of another path fits the memories in {directory}")
        return TakenOver(former=former.directory, changes=former.changes)

    @method("memory.diff", "read")
    def diff(
        self,
        call: Call,
        *,
        cwd: str,
        change: str | None = None,
        path: str = "",
        from_: Time | None = None,
        to: Time | None = None,
        agent: AgentName = "",
        scope: SubagentScope | None = None,
    ) -> Diff:
        """What one change did, or how two versions of a file differ, as unified diffs.

        Without ``path`` it is what ``change`` did, by default the newest one. With ``path``,
        ``from`` and ``to`` are change ids or times: ``to`` is by default the live file, and
        ``from`` the version before the last change up to ``to``.
        """
        old, new = moment("from", from_), moment("to", to)
        directory = self._callers.readable(call, cwd, agent, scope).memory_dir
        names_version = old is not None or new is not None
        if not names_version and (change is not None or not path):
            diffs = self._store.consult(lambda past, real: past.diff(real, change, path), directory)
            return Diff(files=diffs)
        if change is not None or not path:
            raise invalid_params(*_ONE_KIND_OF_DIFF)
        diff = self._store.consult(lambda past, real: past.compare(real, path, old, new), directory)
        return Diff(files=(FileDiff(path, diff),))

    @method("memory.undo", "write")
    async def undo(
        self,
        call: Call,
        *,
        cwd: str,
        change: str | None = None,
        from_: str | None = None,
        to: str | None = None,
        as_of: Time | None = None,
        path: str = "",
        dry_run: bool = False,
        request_id: str = "",
        agent: AgentName = "",
        scope: SubagentScope | None = None,
    ) -> Undone:
        """Undo changes by one new change, which restores bytes and times.

        Give ``change``, or a range of change ids in which ``to`` is by default the newest, or
        ``as_of`` to go back to a time. Without any of them the newest change that is neither an
        undo nor undone is taken back. A file with newer changes is merged, or left and reported as
        a conflict. With ``path`` one memory gets its last version back that differs from the live
        file, also a deleted one; with ``change`` beside it the version that this change left, or
        found where it deleted it.
        """
        target = _undo_target(change, from_, to, seconds("as_of", as_of))
        if path and isinstance(target, Range | float):
            raise invalid_params(*_ONE_KIND_OF_UNDO)
        project = await to_thread.run_sync(self._callers.readable, call, cwd, agent, scope)
        directory, version, reason = project.memory_dir, change or "", ""
        if path:
            reason = f"{path} restored from {version}" if version else f"{path} restored"

        def plan(past: Past, real: str) -> Plan:
            """Return the plan of the undo."""
            return past.restore(real, path, version) if path else past.undo(real, target)

        committed = await self._store.take_back(
            directory,
            plan,
            Provenance(Actor.UNDO, call.caller.client, reason=reason),
            request_id=request_id,
            dry_run=dry_run,
        )
        return Undone(
            change=committed.change,
            undone=committed.undone,
            files=[FileTouched(path=file.path, action=file.action) for file in committed.files],
            merged=committed.merged,
            conflicts=committed.conflicts,
        )

    @method("memory.why", "read")
    def why(
        self,
        call: Call,
        *,
        cwd: str,
        path: str,
        agent: AgentName = "",
        scope: SubagentScope | None = None,
    ) -> Why:
        """Where a memory comes from: who wrote it first and last, and when it was used."""
        directory = self._callers.readable(call, cwd, agent, scope).memory_dir
        exists, origin = True, ""
        try:
            origin = self._store.read(directory, path).header.origin
        except NotFound:
            exists = False
        writers = self._store.consult(lambda past, real: past.writers(real, path), directory)
        if not exists and writers.first is None:
            raise no_memory(path)
        sighting = self._last_surfaced(directory, path)
        surfaced = (
            LastSurfaced(at=iso_time(sighting.at), session=sighting.session) if sighting else None
        )
        by = writers.member
        shared = None
        if by:
            at = iso_time(by.at)
            shared = SharedBy(member=by.member, device=by.device, at=at, revision=by.revision)
        return Why(
            path=path,
            exists=exists,
            origin=origin,
            first=writers.first,
            last=writers.last,
            changes=writers.changes,
            surfaced=surfaced,
            shared=shared,
        )

    @method("memory.purge", "write")
    async def purge(
        self,
        call: Call,
        *,
        cwd: str,
        path: str = "",
        pattern: str = "",
        regex: bool = False,
        dry_run: bool = False,
        agent: AgentName = "",
        scope: SubagentScope | None = None,
    ) -> Purged:
        """Remove the texts of a file or a pattern from the history for good.

        Give exactly one of ``path`` and ``pattern``. A path belongs to the project. A pattern is
        searched in the history of all projects: as plain text without regard to case, or with
        ``regex`` as a regular expression. A program that an assistant started is refused, since
        nothing brings such a text back.
        """

        def begin() -> Project:
            """Return the project once the caller may purge it. Blocks."""
            if self._callers.started_by_an_assistant(call):
                raise _purge_refused()
            return self._callers.readable(call, cwd, agent, scope)

        project = await to_thread.run_sync(begin)
        request = purge_request(project.memory_dir, path, pattern, is_regex=regex)
        return await self._store.purge(request, dry_run=dry_run)


def _purge_refused() -> Refused:
    """Return the error that a program that an assistant started would purge."""
    return Refused(
        "what is removed from the history for good is for the person to say",
        hint="run memctl rm --purge in a terminal of your own",
    )


def _undo_target(
    change: str | None, first: str | None, last: str | None, as_of: float | None
) -> str | Range | float | None:
    """Return the change, range or time to undo, if one is given; raises Invalid."""
    given = [value for value in (change, first, as_of) if value is not None]
    if len(given) > 1 or (last is not None and first is None):
        raise invalid_params(*_ONE_KIND_OF_UNDO)
    if first is not None:
        return Range(first, last or "")
    return as_of if change is None else change


def _facts_of_change(change: Change) -> ChangeFacts:
    """Return the facts of a change of the project's own history."""
    return ChangeFacts(
        id=change.id,
        at=iso_time(change.at),
        directory=change.directory,
        files=[
            FileRecorded(path=file.path, action=file.action, purged=file.purged)
            for file in change.files
        ],
        **asdict(change.by),
    )
