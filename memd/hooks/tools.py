"""What a hook does before a tool, by the person's rules, and after it.

After a tool memories that it wrote are taken in, and a large result is stored.
"""

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from anyio import to_thread

from memd.base.clock import Clock
from memd.base.errors import Invalid, MemdError
from memd.base.names import INDEXES
from memd.base.values import Actor, Provenance
from memd.context.requests import ContextRequest
from memd.context.service import Contexts
from memd.conversation.history import tool_kind
from memd.hooks import dialects
from memd.hooks.dialects import Dialect, Payload
from memd.hooks.event import HookEvent
from memd.projects.projects import Projects
from memd.recall.service import Recall
from memd.rpc.call import Call
from memd.rules.service import ToolRules
from memd.rules.values import PlannedCall
from memd.store.store import Store
from memd.text import tags

_LINE_ADDED = "memd has added the line of this memory to MEMORY.md; nothing is left to do there."
_SPILLED_KINDS = ("search", "web")  # of tools; Claude Code stores the shell's output itself
_READING_TOOL = "Read"  # by which the model reads a stored result
_WRITING_TOOLS = ("", "Write", "Edit", "MultiEdit", "apply_patch", "write_file", "replace")
_STARTED_IN = "CLAUDE_PROJECT_DIR"  # where the session began, even if it changed directory since


class ToolUses:
    """Answers the events around an assistant's use of a tool."""

    def __init__(
        self,
        rules: ToolRules,
        store: Store,
        recall: Recall,
        contexts: Contexts,
        projects: Projects,
        *,
        clock: Clock,
    ) -> None:
        self._rules = rules
        self._store = store
        self._recall = recall
        self._contexts = contexts
        self._projects = projects
        self._clock = clock

    async def before(
        self, call: Call, dialect: Dialect, name: str, payload: Payload, *, until: float
    ) -> dict[str, Any] | None:
        """Return the hook output that refuses a tool call or asks about it, ``None`` to allow it.

        The rules are those of the projects of the tool's directory and of the session's first one.
        """
        try:
            if not await self._rules.any_on():
                return None
        except MemdError:  # rules that cannot be read stop no tool
            return None
        environment = call.caller.environment
        cwds = {payload.cwd, environment.get(_STARTED_IN, payload.cwd)}
        directories = partial(self._memory_directories, environment, cwds)
        about = PlannedCall(payload.tool_name, payload.tool_input, payload.cwd)
        seconds = max(0.0, until - self._clock.monotonic())
        answer = await self._rules.answer(directories, about, seconds)
        return dialects.decided(dialect, name, answer.answer, answer.words)

    async def take_in_written(self, event: HookEvent) -> str:
        """Take in memories that a tool has written; return a note on their index lines, or "".

        The memories are in the assistant's context now, so no prompt adds them again.
        """
        directory = event.project.memory_dir
        if event.payload.tool_name not in _WRITING_TOOLS:
            return ""
        paths = dialects.named_memories(event.payload, directory)
        if not paths:
            return ""
        reason = "written by the assistant itself"
        by = Provenance(Actor.ASSISTANT, event.client, event.session, "", reason, "assistant")
        with suppress(MemdError):  # a secret in a description, for example: no index line is made
            result = await self._store.attribute(directory, paths, by)
            await to_thread.run_sync(self._recall.given, event.session, directory, paths)
            if result.change and not paths <= {*INDEXES}:
                return f"{tags.OPEN}\n{_LINE_ADDED}\n{tags.CLOSE}"
        return ""

    async def spill_result(self, event: HookEvent) -> Any:
        """Return a tool's result with its longest text moved to a file, or ``None`` to keep it."""
        payload, settings, name = event.payload, event.settings, event.payload.tool_name
        can_spill = tool_kind(name) in _SPILLED_KINDS or name.startswith("mcp__")
        is_on = settings.context.hook_spill and event.dialect.replaces_results
        if not (is_on and can_spill) or payload.agent_id:
            return None
        text = dialects.longest_text(payload.tool_response)
        request = ContextRequest(event.project, settings, event.session, reader=_READING_TOOL)
        in_time = self._clock.move_on_after(event.until - self._clock.monotonic())
        with suppress(MemdError), in_time:
            result = await self._contexts.spill(
                request, tool=name, tool_use_id=payload.tool_use_id, content=text
            )
            if result.content is not None:
                return dialects.with_text(payload.tool_response, text, result.content)
        return None

    def _memory_directories(
        self, environment: Mapping[str, str], cwds: set[str]
    ) -> tuple[str, ...]:
        """Return the memory directories of working directories, without duplicates. Blocks."""
        result = []
        for cwd in sorted(cwds):
            with suppress(Invalid):
                project, *_ = self._projects.where(cwd, environment)  # on or off
                result.append(project.memory_dir)
        return tuple(dict.fromkeys(result))
