"""memory.purge: what must not be kept is taken out of everything that memd keeps, for good."""

from memd.api.memory import project_of
from memd.api.method import Method, Params, Result
from memd.api.services import Services
from memd.rpc.connection import Call
from memd.store import purge
from memd.store.project import NoProjectError
from memd.store.purge import PurgeRefusedError
from memd.store.regex import PatternRefusedError
from memd.store.undo import ChangeNotFoundError


class PurgeParams(Params):
    """Parameters of ``memory.purge``: exactly one of ``change``, ``path`` and ``pattern``.

    A change and a path are of the project, a pattern is looked for in all that memd keeps: as it
    is, in any case, or with ``regex`` as a regular expression.
    """

    cwd: str
    change: str | None = None
    path: str | None = None
    pattern: str | None = None
    regex: bool | None = None
    dry_run: bool | None = None


class PurgedBody(Result):
    """A text of the history that was removed: its SHA-256, its files and its changes."""

    hash: str
    paths: list[str]
    changes: list[str]


class RemovedFile(Result):
    """A file of the state directory that was removed or blanked, and the SHA-256 it had."""

    path: str
    hash: str


class PurgeDone(Result):
    """What was removed, or would be; ``texts`` counts rows of the state file by table.

    ``live`` are files of the memory directories in which, or in whose name, it still stands: they
    are yours to change. A job that is ``running`` may still write down what it had read: purge
    again when it has ended.
    """

    dry_run: bool
    bodies: list[PurgedBody]
    texts: dict[str, int]
    files: list[RemovedFile]
    live: list[str]
    running: int


async def memory_purge(services: Services, call: Call, params: PurgeParams) -> PurgeDone:
    """Answer ``memory.purge``."""
    project = await project_of(services, call, params.cwd)
    what = purge.wanted(
        project.memory_dir,
        params.change or "",
        params.path or "",
        params.pattern or "",
        is_regex=bool(params.regex),
    )
    dry_run = bool(params.dry_run)
    if not dry_run:
        await services.recall.forget()
    done = await services.store.purge(what, dry_run=dry_run)
    if not dry_run:
        await services.recall.forget()  # a prompt may have indexed in between
    return PurgeDone(
        dry_run=dry_run,
        bodies=[
            PurgedBody(hash=body.hash, paths=list(body.paths), changes=list(body.changes))
            for body in done.bodies
        ],
        texts=done.texts,
        files=[RemovedFile(path=file.path, hash=file.hash) for file in done.files],
        live=list(done.live),
        running=done.running,
    )


METHODS = (
    Method(
        name="memory.purge",
        summary="Remove the texts of a change, a file or a pattern from all that memd keeps.",
        params=PurgeParams,
        result=PurgeDone,
        permission="write",
        handler=memory_purge,
        errors=(NoProjectError, ChangeNotFoundError, PurgeRefusedError, PatternRefusedError),
    ),
)
