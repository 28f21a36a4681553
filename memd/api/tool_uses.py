"""What a hook does after a tool: take in memories that were written, store large results."""

from contextlib import suppress
from typing import Any

from memd.api import dialects
from memd.api.received import Received
from memd.api.services import Services
from memd.base.errors import MemdError
from memd.base.names import INDEXES
from memd.base.values import Actor, Provenance
from memd.context.service import ContextRequest
from memd.conversation.history import tool_kind
from memd.rpc.call import Call
from memd.text import tags

_LINE_ADDED = "memd has added the line of this memory to MEMORY.md; nothing is left to do there."
_SPILLED_KINDS = ("search", "web")  # of tools; Claude Code stores the shell's output itself
_READING_TOOL = "Read"  # by which the model reads a stored result
_WRITING_TOOLS = ("", "Write", "Edit", "MultiEdit", "apply_patch", "write_file", "replace")


async def take_in_written(services: Services, call: Call, received: Received) -> str:
    """Take in memories that a tool has written; return a note on their index lines, or "".

    The memories are in the assistant's context now, so no prompt adds them again.
    """
    project, session = received.project, received.session
    directory = project.memory_dir
    if received.payload.tool_name not in _WRITING_TOOLS:
        return ""
    paths = dialects.named_memories(received.payload, directory)
    if not paths:
        return ""
    reason = "written by the assistant itself"
    client = call.caller.client
    by = Provenance(Actor.ASSISTANT, client, session, "", reason, "assistant")
    with suppress(MemdError):  # a secret in a description, for example: no index line is made
        result = await services.store.attribute(directory, paths, by)
        await services.recall.given(session, directory, paths)
        if result.change and not paths <= {*INDEXES}:
            return f"{tags.OPEN}\n{_LINE_ADDED}\n{tags.CLOSE}"
    return ""


async def spill_result(services: Services, received: Received, until: float) -> Any:
    """Return a tool's result with its longest text moved to a file, or ``None`` to keep it."""
    payload, settings, name = received.payload, received.settings, received.payload.tool_name
    can_spill = tool_kind(name) in _SPILLED_KINDS or name.startswith("mcp__")
    is_on = settings.context.hook_spill and received.dialect.replaces_results
    if not (is_on and can_spill) or payload.agent_id:
        return None
    text = dialects.longest_text(payload.tool_response)
    request = ContextRequest(received.project, settings, received.session, reader=_READING_TOOL)
    in_time = services.clock.move_on_after(until - services.clock.monotonic())
    with suppress(MemdError), in_time:
        result = await services.contexts.spill(
            request, tool=name, tool_use_id=payload.tool_use_id, content=text
        )
        if result.content is not None:
            return dialects.with_text(payload.tool_response, text, result.content)
    return None
