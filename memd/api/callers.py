"""Who calls: a person, or a program that an assistant started, which decides nothing for them.

An assistant is known by its registration, or by the program that runs above the caller. It is no
proof: a program of the same user may leave its parents behind. What is refused is the ordinary way.
"""

import os
from collections.abc import Callable
from contextlib import suppress

from anyio import to_thread

from memd.api.services import Services
from memd.core.agents import SystemProcess
from memd.messages.errors import AgentKeyError
from memd.messages.service import Speaker
from memd.rpc.connection import Call

# What hooks and the bridge register; one that says it is another's may lie.
_KINDS = ("session", "sub-agent", "mcp")
_PROGRAMS = frozenset(
    ("claude", "codex", "gemini", "opencode", "copilot", "cursor-agent", "goose", "aider")
)
_ANCESTORS = 32

_FindProcess = Callable[[int], SystemProcess | None]


async def started_by_an_assistant(services: Services, call: Call) -> bool:
    """Say whether the caller is a program that an assistant started."""
    pid = call.caller.pid
    with suppress(AgentKeyError):
        if (await services.messages.speaking(Speaker("", pid))).kind in _KINDS:
            return True
    return await to_thread.run_sync(_is_below_an_assistant, services.messages.register.find, pid)


def _is_below_an_assistant(find: _FindProcess, pid: int) -> bool:
    """Say so by the names of programs; what is above the daemon too says nothing of a caller."""
    ours = {process.pid for process in _lineage(find, os.getpid())}
    return any(
        process.name in _PROGRAMS for process in _lineage(find, pid) if process.pid not in ours
    )


def _lineage(find: _FindProcess, pid: int) -> list[SystemProcess]:
    """Return a process and its ancestors, the nearest first."""
    result: list[SystemProcess] = []
    process = find(pid)
    while process is not None and len(result) < _ANCESTORS:
        result.append(process)
        process = find(process.parent)
    return result
