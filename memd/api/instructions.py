"""instructions: which CLAUDE.md, rules and AGENTS.md are loaded, and why."""

from typing import Annotated

import msgspec

from memd.api.services import Services
from memd.base.errors import Refused
from memd.base.names import printable
from memd.instructions.service import (
    InstructionList,
    InstructionRequest,
)
from memd.methods.method import method
from memd.rpc.call import Call

# Files that a conversation read or changed.
Touched = Annotated[
    tuple[Annotated[str, msgspec.Meta(max_length=4096)], ...], msgspec.Meta(max_length=1000)
]


def approval_refused(root: str) -> Refused:
    """Return the error that a program that an assistant started tried to approve includes."""
    shown = printable(root)
    return Refused(
        f"whether {shown} may include files from outside is for the person to say",
        hint="run memctl instructions --allow in a terminal of your own",
        root=shown,
    )


@method("instructions", "read")
async def instructions(
    services: Services,
    call: Call,
    *,
    cwd: str,
    touched: Touched = (),
    allow: bool | None = None,
) -> InstructionList:
    """The instruction files of a working directory, and the loaded ones as one text for a prompt.

    The files come in the order of loading; a later one overrides an earlier one. A file that is not
    loaded has the reason. ``touched`` are files that the conversation read or changed: rules for
    such files are loaded too. The text has at most 100,000 characters, and unchanged files give the
    same bytes. ``allow`` decides whether files from outside of the project may be included, for
    this project alone and until the next decision; a program that an assistant started may deny but
    not allow.
    """
    request = await instruction_request(services, call, cwd, touched)
    if allow and await services.callers.started_by_an_assistant(call):
        raise approval_refused(request.project.root)
    return await services.instructions.list(request, allow=allow)


async def instruction_request(
    services: Services, call: Call, cwd: str, touched: tuple[str, ...] = ()
) -> InstructionRequest:
    """Return a request about the instruction files of a directory. Raises Invalid."""
    project, _, _ = await services.callers.find(call, cwd)
    return InstructionRequest(project, call.caller.environment, touched)
