"""memory.adopt: mark memories that were imported or written by others as the person's own."""

from memd.api.callers import started_by_an_assistant
from memd.api.memory import MemoryOffError, by_client, writable
from memd.api.method import method
from memd.api.services import Services
from memd.core.errors import MemdError, WrongParameterError
from memd.memories.service import Adopted
from memd.memories.writing import NothingThereError, NotImportedError
from memd.projects.project import NoProjectError
from memd.rpc.connection import Call
from memd.store.drafts import ConflictError


class AdoptionRefusedError(MemdError):
    """A program that an assistant started tried to adopt memories, which only the person may."""

    code = 1087
    kind = "adoption_refused"
    hint = "run memctl adopt in a terminal of your own"

    def __init__(self) -> None:
        super().__init__("whether memories are the person's own is for the person to say")


class PathOrAllError(WrongParameterError):
    """The request has both ``path`` and ``all``, or neither."""

    hint = "name a memory, or say all"

    def __init__(self) -> None:
        super().__init__("one memory is adopted, or all that were imported")


@method(
    "memory.adopt",
    "write",
    NoProjectError,
    MemoryOffError,
    PathOrAllError,
    AdoptionRefusedError,
    NothingThereError,
    NotImportedError,
    ConflictError,
)
async def memory_adopt(
    services: Services,
    call: Call,
    *,
    cwd: str,
    path: str = "",
    all_: bool = False,
    request_id: str = "",
) -> Adopted:
    """Mark a memory at ``path`` as the person's own, or ``all`` imported ones of the project.

    It is one that was imported, or that another program wrote last, such as an editor. A rule in an
    adopted memory counts as the person's rule. Texts and times do not change. A program that an
    assistant started is refused.
    """
    if bool(path) == all_:  # both or neither
        raise PathOrAllError
    project = await writable(services, call, cwd)
    if await started_by_an_assistant(services, call):
        raise AdoptionRefusedError
    by = by_client(call, "memory.adopt")
    return await services.memories.adopt(project, path, by, request_id=request_id)


METHODS = (memory_adopt,)
