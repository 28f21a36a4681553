"""memory.purge: what must not be kept is taken out of everything that memd keeps, for good."""

from memd.api.memory import project_of
from memd.api.method import Params, method
from memd.api.services import Services
from memd.core.regex import PatternRefusedError
from memd.projects.project import NoProjectError
from memd.rpc.connection import Call
from memd.store import purge
from memd.store.purge import Purged, PurgeRefusedError
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


@method(
    "memory.purge",
    "write",
    NoProjectError,
    ChangeNotFoundError,
    PurgeRefusedError,
    PatternRefusedError,
)
async def memory_purge(services: Services, call: Call, params: PurgeParams) -> Purged:
    """Remove the texts of a change, a file or a pattern from all that memd keeps."""
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
    return done


METHODS = (memory_purge,)
