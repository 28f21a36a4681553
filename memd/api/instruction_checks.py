"""doctor's line for instruction files: what is too long, broken or leads nowhere."""

from memd.api.instructions import requested
from memd.api.services import Services
from memd.core.errors import MemdError
from memd.core.names import printable
from memd.rpc.connection import Call

_NAME = "instruction files"
_NAMED = 3  # faults; the rest is counted
_CHARACTERS = 400  # of each


async def fault_line(services: Services, call: Call, cwd: str) -> tuple[str, str, str, str]:
    """Return name, state, detail and remedy of a project's instruction files."""
    try:
        request = await requested(services, call, cwd)
        faults = await services.instructions.faults(request)
        files = (await services.instructions.list(request)).files
    except MemdError as error:
        return _NAME, "warning", error.sentence, error.hint
    if not faults:
        loaded = [file.chars for file in files if file.loaded]
        return _NAME, "ok", f"{len(loaded)} with {sum(loaded):,} characters", ""
    words = [printable(f"{each.path} {each.text}".strip(), _CHARACTERS) for each in faults]
    more = f"; and {len(words) - _NAMED} more" if len(words) > _NAMED else ""
    detail = "; ".join(words[:_NAMED]) + more
    return _NAME, "warning", detail, "memctl instructions check names them all, and what else is"
