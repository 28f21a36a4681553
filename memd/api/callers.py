"""Tell whether a caller was started by an assistant; such a program may not decide for the person.

An assistant is recognised by its registration as an agent, or by the name of a program among the
caller's ancestors. This is no proof: a program of the same user can detach itself from its parents.
Only a program that takes the ordinary way is refused.
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

# The kinds of agents that hooks and the bridge register. Any program may register another kind.
_ASSISTANT_KINDS = ("session", "sub-agent", "mcp")
_ASSISTANT_PROGRAMS = frozenset(
    ("claude", "codex", "gemini", "opencode", "copilot", "cursor-agent", "goose", "aider")
)
_MAX_ANCESTORS = 32  # a process id that is used again meanwhile could make the chain endless

_FindProcess = Callable[[int], SystemProcess | None]


async def started_by_an_assistant(services: Services, call: Call) -> bool:
    """Say whether the caller is a program that an assistant started."""
    pid = call.caller.pid
    with suppress(AgentKeyError):  # the process is not registered
        agent = await services.messages.find_speaker(Speaker("", pid))
        if agent.kind in _ASSISTANT_KINDS:
            return True
    return await to_thread.run_sync(_is_below_an_assistant, services.messages.register.find, pid)


def _is_below_an_assistant(find: _FindProcess, pid: int) -> bool:
    """Say whether an ancestor of a process has the name of an assistant's program.

    Ancestors of the daemon itself are left out: every program of the session may have them.
    """
    daemon_pids = {process.pid for process in _lineage(find, os.getpid())}
    return any(
        process.name in _ASSISTANT_PROGRAMS
        for process in _lineage(find, pid)
        if process.pid not in daemon_pids
    )


def _lineage(find: _FindProcess, pid: int) -> list[SystemProcess]:
    """Return a process and its ancestors, the nearest first."""
    result: list[SystemProcess] = []
    process = find(pid)
    while process is not None and len(result) < _MAX_ANCESTORS:
        result.append(process)
        process = find(process.parent)
    return result
