"""The answer to a client's hook before a tool runs, from the person's rules."""

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Annotated, Any

import msgspec

from memd.api.dialects import Dialect, Payload, decided
from memd.api.services import Services
from memd.base.errors import Invalid, MemdError
from memd.rpc.call import Call
from memd.rules.values import (
    PlannedCall,
)

_STARTED_IN = "CLAUDE_PROJECT_DIR"  # where the session began, even if it changed directory since
Words = Annotated[str, msgspec.Meta(max_length=10_000)]


async def before_a_tool(
    services: Services, call: Call, dialect: Dialect, name: str, payload: Payload, *, until: float
) -> dict[str, Any] | None:
    """Return the hook output that refuses a tool call or asks about it, ``None`` to allow it.

    The rules are those of the projects of the tool's directory and of the session's first one.
    """
    try:
        if not await services.rules.any_on():
            return None
    except MemdError:  # rules that cannot be read stop no tool
        return None
    environment = call.caller.environment
    cwds = {payload.cwd, environment.get(_STARTED_IN, payload.cwd)}
    directories = partial(_memory_directories, services, environment, cwds)
    about = PlannedCall(payload.tool_name, payload.tool_input, payload.cwd)
    seconds = max(0.0, until - services.clock.monotonic())
    answer = await services.rules.answer(directories, about, seconds)
    return decided(dialect, name, answer.answer, answer.words)


def _memory_directories(
    services: Services, environment: Mapping[str, str], cwds: set[str]
) -> tuple[str, ...]:
    """Return the memory directories of working directories, without duplicates. Blocks."""
    result = []
    for cwd in sorted(cwds):
        with suppress(Invalid):
            project, *_ = services.projects.where(cwd, environment)  # on or off
            result.append(project.memory_dir)
    return tuple(dict.fromkeys(result))
