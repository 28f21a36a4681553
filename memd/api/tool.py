"""memory.tool: the Messages API's memory tool on memd's memories."""

from typing import Any

from memd.api.memory import MemoryOffError, project_of, writable
from memd.api.method import Params, Result, method, request_key
from memd.api.services import Services
from memd.core.values import Actor, Provenance
from memd.projects.project import NoProjectError
from memd.rpc.connection import Call
from memd.store.changes import StorageFailedError

_VIEW = "view"


class UseTool(Params):
    """Parameters of ``memory.tool``: ``command`` is the tool's input as the model sent it."""

    cwd: str
    command: dict[str, Any]
    request_id: str | None = None
    session_id: str | None = None


class ToolUsed(Result):
    """The tool's result for the model; with ``is_error`` nothing was changed."""

    text: str
    is_error: bool
    change: str | None


@method("memory.tool", "write", NoProjectError, MemoryOffError, StorageFailedError)
async def memory_tool(services: Services, call: Call, params: UseTool) -> ToolUsed:
    """One command of the Messages API's memory tool; `/memories` is the directory."""
    name = params.command.get("command")
    find = project_of if name == _VIEW else writable
    project = await find(services, call, params.cwd)
    by = Provenance(
        actor=Actor.CLIENT,
        client=call.connection.caller.client,
        session=params.session_id or "",
        reason="memory.tool",
        origin="assistant",
    )
    answer = await services.memories.tool(
        project,
        params.command,
        by,
        request_id=request_key("memory.tool", params, params.request_id),
    )
    return ToolUsed(text=answer.text, is_error=answer.is_error, change=answer.change)


METHODS = (memory_tool,)
