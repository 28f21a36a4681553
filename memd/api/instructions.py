"""instructions.*: which CLAUDE.md, AGENTS.md and their relatives an assistant loads, and why."""

from typing import Annotated

import msgspec

from memd.api.callers import started_by_an_assistant
from memd.api.method import method
from memd.api.services import Services
from memd.core.errors import MemdError
from memd.core.names import printable
from memd.instructions.service import (
    Approved,
    Checked,
    InstructionList,
    InstructionRequest,
    InstructionsTimeoutError,
    InstructionTextList,
)
from memd.instructions.values import View
from memd.projects.project import NoProjectError
from memd.rpc.connection import Call
from memd.state.database import StateUnusableError

_MEMORIES = 2000  # the newest of a project, which are compared with its instruction files
# Files that a conversation read or changed.
Touched = Annotated[
    tuple[Annotated[str, msgspec.Meta(max_length=4096)], ...], msgspec.Meta(max_length=1000)
]


class ApprovalRefusedError(MemdError):
    """A program that an assistant started tried to approve includes, which only the person may."""

    code = 1085
    kind = "approval_refused"
    hint = "run memctl instructions approve in a terminal of your own"

    def __init__(self, root: str) -> None:
        shown = printable(root)
        super().__init__(
            f"whether {shown} may include files from outside is for the person to say", root=shown
        )


@method("instructions.list", "read", NoProjectError, InstructionsTimeoutError)
async def instructions_list(
    services: Services,
    call: Call,
    *,
    cwd: str,
    view: View = View.UNION,
    touched: Touched = (),
) -> InstructionList:
    """The instruction files of a working directory, by the rules of one assistant.

    They come in the order of loading; a later file overrides an earlier one. A file that is not
    loaded has the reason. ``touched`` are files that the conversation read or changed: rules for
    such files are loaded too.
    """
    return await services.instructions.list(
        await instruction_request(services, call, cwd, view, touched)
    )


@method("instructions.read", "read", NoProjectError, InstructionsTimeoutError)
async def instructions_read(
    services: Services,
    call: Call,
    *,
    cwd: str,
    view: View = View.UNION,
    touched: Touched = (),
) -> InstructionTextList:
    """The loaded instruction files as one text for a prompt; unchanged files give the same bytes.

    It has at most 100,000 characters. The etag changes with the text.
    """
    return await services.instructions.read(
        await instruction_request(services, call, cwd, view, touched)
    )


@method("instructions.check", "read", NoProjectError, InstructionsTimeoutError)
async def instructions_check(services: Services, call: Call, *, cwd: str) -> Checked:
    """The faults in the instruction files of a project, for all assistants.

    These are files that are too long, broken rules, includes of a missing file or in a circle,
    rules whose pattern no file of the project matches, sentences that contradict each other in
    files that no assistant loads together, and memories that repeat a file.
    """
    request = await instruction_request(services, call, cwd)
    directory = request.project.memory_dir
    snapshot = await services.store.snapshot(directory)
    paths = [header.path for header in snapshot.headers[:_MEMORIES]]
    memories = await services.store.read_many(directory, paths)
    texts = [(each.header.path, f"{each.header.description}\n\n{each.body}") for each in memories]
    return await services.instructions.check(request, texts)


@method(
    "instructions.approve",
    "operate",
    NoProjectError,
    InstructionsTimeoutError,
    ApprovalRefusedError,
    StateUnusableError,
)
async def instructions_approve(
    services: Services, call: Call, *, cwd: str, allow: bool
) -> Approved:
    """Allow or deny that the instruction files of a project include files from outside of it.

    The decision is for this project alone, is stored outside of any repository, and holds until the
    next call. A program that an assistant started may deny but not allow.
    """
    request = await instruction_request(services, call, cwd)
    if allow and await started_by_an_assistant(services, call):
        raise ApprovalRefusedError(request.project.root)
    return await services.instructions.approve(request, allowed=allow)


async def instruction_request(
    services: Services,
    call: Call,
    cwd: str,
    view: View = View.UNION,
    touched: tuple[str, ...] = (),
) -> InstructionRequest:
    """Return a request about the instruction files of a directory. Raises NoProjectError."""
    environment = call.caller.environment
    project, settings, _ = await services.where(call, cwd)
    return InstructionRequest(project, settings, environment, view, touched)


METHODS = (instructions_list, instructions_read, instructions_check, instructions_approve)
