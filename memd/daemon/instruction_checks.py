"""doctor's check of instruction files: which are too long, broken or include a missing file."""

from memd.base.errors import MemdError
from memd.base.names import printable
from memd.daemon.core import Daemon
from memd.instructions.service import InstructionRequest
from memd.rpc.call import Call

_NAME = "instruction files"
_SHOWN_FAULTS = 3  # the others are only counted
_CHARACTERS = 400  # of each fault


async def fault_line(daemon: Daemon, call: Call, cwd: str) -> tuple[str, str, str, str]:
    """Return the check of a project's instruction files: its name, state, detail and remedy."""
    try:
        project, *_ = await daemon.callers.find(call, cwd)
        request = InstructionRequest(project, call.caller.environment)
        listed = await daemon.instructions.list(request)
    except MemdError as error:
        return _NAME, "warning", error.sentence, error.hint
    if not listed.problems:
        loaded = [file.chars for file in listed.files if file.loaded]
        return _NAME, "ok", f"{len(loaded)} with {sum(loaded):,} characters", ""
    words = [printable(problem, _CHARACTERS) for problem in listed.problems]
    more = f"; and {len(words) - _SHOWN_FAULTS} more" if len(words) > _SHOWN_FAULTS else ""
    detail = "; ".join(words[:_SHOWN_FAULTS]) + more
    return _NAME, "warning", detail, "memctl instructions names them all"
