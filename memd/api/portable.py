"""export: memories and what belongs to them as plain files, at a path that the caller names."""

from functools import partial

from anyio import to_thread

from memd.api.memory import project_of
from memd.api.method import method
from memd.api.services import Services
from memd.core.errors import WrongParameterError
from memd.files.directory import DirectoryUnusableError
from memd.portable.errors import DestinationError
from memd.portable.values import ExportPart, ExportRequest, ExportResult
from memd.projects.project import NoProjectError
from memd.projects.projects import known_project
from memd.rpc.connection import Call
from memd.state.database import StateUnusableError


class OneOrAllError(WrongParameterError):
    """An export of one project was asked for, and of all of them."""

    hint = "name a project, or leave it out with all"

    def __init__(self) -> None:
        super().__init__("an export takes one project or all of them")


@method(
    "export",
    "read",
    NoProjectError,
    OneOrAllError,
    DestinationError,
    DirectoryUnusableError,
    StateUnusableError,
)
async def export(
    services: Services,
    call: Call,
    *,
    cwd: str,
    dest: str,
    project: str = "",
    all_: bool = False,
    with_: tuple[ExportPart, ...] = (),
) -> ExportResult:
    """Write memories as an archive: a new folder, or a file that ends in .tar.gz.

    ``dest`` is absolute and nothing is there yet; it lies in no memory directory. Of the project of
    ``cwd``, of another directory's ``project``, or of ``all``. The private memories alone are
    taken, and what ``with`` names. What looks like a credential is left out and listed. Progress
    says how many ``projects`` are done ``of`` how many. docs/export-format.md is the format.
    """
    if project and all_:
        raise OneOrAllError
    if all_:
        projects = await services.exports.projects()
    else:
        here = await project_of(services, call, project or cwd)
        projects = (await to_thread.run_sync(known_project, here),)
    request = ExportRequest(dest, projects, frozenset(with_), whole=all_)
    return await services.exports.export(request, partial(_report, call))


async def _report(call: Call, done: int, total: int) -> None:
    """Report how many projects are done."""
    await call.progress({"projects": done, "of": total})


METHODS = (export,)
