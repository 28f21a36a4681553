"""Tell whether a caller was started by an assistant; such a program may not decide for the person.

An assistant is recognised by its registration as an agent, or by the name of a program among the
caller's ancestors. This is no proof: a program of the same user can detach itself from its parents.
Only a program that takes the ordinary way is refused.
"""

from functools import partial

from anyio import to_thread

from memd.api.dialects import DIALECTS
from memd.api.services import Services
from memd.base.agents import FindProcess, SystemProcess, lineage
from memd.projects.switches import is_below
from memd.rpc.connection import Call

# The kinds of agents that hooks and the bridge register. Any program may register another kind.
_ASSISTANT_KINDS = ("session", "sub-agent", "mcp")
_ASSISTANT_PROGRAMS = frozenset(
    ("claude", "codex", "gemini", "opencode", "copilot", "cursor-agent", "goose", "aider")
)
_MCP = "mcp"  # the name of the MCP server, before that of its client


async def is_for_an_assistant(services: Services, call: Call) -> bool:
    """Say whether the caller is an assistant's hook or tool, or a program that one started."""
    client = call.caller.client
    if client in DIALECTS or client.partition(" ")[0] == _MCP:
        return True
    return await started_by_an_assistant(services, call)


async def started_by_an_assistant(services: Services, call: Call) -> bool:
    """Say whether the caller is a program that an assistant started."""
    connection = call.connection
    if connection.ancestors is None:
        find = services.messages.register.find
        look_up = partial(_look_up, find, call.caller.pid)
        connection.ancestors, connection.below_assistant = await to_thread.run_sync(look_up)
    if connection.below_assistant or not connection.ancestors:
        return connection.below_assistant
    return await services.messages.has_agent(connection.ancestors, _ASSISTANT_KINDS)


def _look_up(find: FindProcess, pid: int) -> tuple[tuple[SystemProcess, ...], bool]:
    """Return the processes above one, and whether it or one above is an assistant's. Blocks."""
    return tuple(lineage(find, pid))[1:], is_below(find, pid, _ASSISTANT_PROGRAMS)
