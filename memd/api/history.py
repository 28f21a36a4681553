"""memory.history, diff and undo: what the journal tells and takes back."""

from memd.api.memory import WRITE_ERRORS, project_of, writable
from memd.api.method import Limit, Method, Params, Result, request_key
from memd.api.services import Services
from memd.core.text import iso_time
from memd.core.values import Actor, Change, Outcome, Provenance
from memd.rpc.connection import Call
from memd.store.project import NoProjectError
from memd.store.undo import ChangeNotFoundError


class HistoryParams(Params):
    """Parameters of ``memory.history``; ``before`` is a change id to page on from."""

    cwd: str
    path: str | None = None
    limit: Limit | None = None
    before: str | None = None


class ChangeParams(Params):
    """Parameters of ``memory.diff``."""

    cwd: str
    change: str


class UndoParams(ChangeParams):
    """Parameters of ``memory.undo``."""

    request_id: str | None = None


class FileTouched(Result):
    """A file of a change and what happened to it."""

    path: str
    action: str


class ChangeFacts(Result):
    """One change of the history; ``at`` is ISO 8601 in UTC."""

    id: str
    at: str
    actor: str
    client: str
    session: str
    model: str
    reason: str
    origin: str
    files: list[FileTouched]


class History(Result):
    """The newest changes first."""

    changes: list[ChangeFacts]


class FileDiff(Result):
    """A unified diff of one file."""

    path: str
    diff: str


class Diff(Result):
    """The diffs of one change."""

    files: list[FileDiff]


class Undone(Result):
    """What an undo restored, and what it left because newer work stands there."""

    change: str | None
    files: list[FileTouched]
    conflicts: list[str]


async def memory_history(services: Services, call: Call, params: HistoryParams) -> History:
    """Answer ``memory.history``."""
    project = await project_of(services, call, params.cwd)
    changes = await services.store.history(
        project.memory_dir,
        path=params.path or "",
        limit=params.limit or 50,
        before=params.before or "",
    )
    return History(changes=[_change(change) for change in changes])


async def memory_diff(services: Services, call: Call, params: ChangeParams) -> Diff:
    """Answer ``memory.diff``."""
    project = await project_of(services, call, params.cwd)
    diffs = await services.store.diff(project.memory_dir, params.change)
    return Diff(files=[FileDiff(path=path, diff=diff) for path, diff in diffs])


async def memory_undo(services: Services, call: Call, params: UndoParams) -> Undone:
    """Answer ``memory.undo``."""
    project = await writable(services, call, params.cwd)
    by = Provenance(
        actor=Actor.UNDO, client=call.connection.caller.client, reason=f"undo of {params.change}"
    )
    outcome, conflicts = await services.store.undo(
        project.memory_dir,
        params.change,
        by,
        request_id=request_key("memory.undo", params, params.request_id),
    )
    return Undone(change=outcome.change, files=_touched(outcome), conflicts=list(conflicts))


def _touched(outcome: Outcome | Change) -> list[FileTouched]:
    return [FileTouched(path=file.path, action=file.action) for file in outcome.files]


def _change(change: Change) -> ChangeFacts:
    return ChangeFacts(
        id=change.id,
        at=iso_time(change.at),
        actor=change.by.actor,
        client=change.by.client,
        session=change.by.session,
        model=change.by.model,
        reason=change.by.reason,
        origin=change.by.origin,
        files=_touched(change),
    )


METHODS = (
    Method(
        name="memory.history",
        summary="Who changed what, when and why; newest first.",
        params=HistoryParams,
        result=History,
        permission="read",
        handler=memory_history,
        errors=(NoProjectError,),
    ),
    Method(
        name="memory.diff",
        summary="What one change did, as unified diffs.",
        params=ChangeParams,
        result=Diff,
        permission="read",
        handler=memory_diff,
        errors=(NoProjectError, ChangeNotFoundError),
    ),
    Method(
        name="memory.undo",
        summary="Take one change back, bytes and times; never over newer work.",
        params=UndoParams,
        result=Undone,
        permission="write",
        handler=memory_undo,
        errors=(*WRITE_ERRORS, ChangeNotFoundError),
    ),
)
