"""context.*: which messages of a conversation a program sends whole, stored or cleared."""

import re
from collections.abc import Iterable
from typing import Annotated, Any, Literal

import msgspec

from memd.api.services import Services
from memd.base.errors import Invalid
from memd.base.names import is_text
from memd.context.errors import messages_refused
from memd.context.service import (
    CacheBaseline,
    ContextRequest,
    Decision,
    PlannedContext,
    SpilledResult,
)
from memd.methods.method import SessionId, method
from memd.rpc.call import Call

Place = Annotated[int, msgspec.Meta(ge=0)]
Window = Annotated[int, msgspec.Meta(ge=0, le=1_000_000_000)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]
_WINDOW_VARIABLE = "MEMD_CONTEXT_WINDOW"
_TOKEN_COUNT = re.compile(r"[1-9][0-9]{0,8}")  # below 10^9, which is the bound of ``Window`` too
_NO_TEXT = "a decision has texts in UTF-8"


@method("context.plan", "write")
async def context_plan(
    services: Services,
    call: Call,
    *,
    cwd: str,
    session_id: SessionId,
    conversation: SessionId = "",
    messages: list[Any],
    decisions: list[Decision] | None = None,
    model: str = "",
    system: Any = None,
    tools: list[Any] | None = None,
    betas: list[str] | None = None,
    usage: dict[str, Any] | None = None,
    diagnostics: dict[str, Any] | None = None,
    reader: str = "",
    supports: list[str] | None = None,
    window: Window = 0,
    may_drop_thinking: bool = False,
    idle_seconds: Seconds = 0.0,
    request: dict[str, Any] | None = None,
    baseline: CacheBaseline | None = None,
) -> PlannedContext:
    """What to send in place of parts of a conversation; each is decided once and stays.

    ``messages`` are all of the conversation. ``decisions`` are those of all earlier plans;
    ``request`` and ``baseline`` are of the last one. ``usage`` and ``diagnostics`` come from the
    last reply, ``idle_seconds`` ago. ``reader`` names the tool that reads stored results: without
    it no result is stored.
    """
    planned = await context_request(
        services,
        call,
        cwd,
        session_id,
        conversation=conversation,
        messages=messages,
        decisions={each.key: each for each in _checked(decisions or ())},
        model=model,
        system=system,
        tools=tools,
        betas=betas or (),
        usage=usage,
        diagnostics=diagnostics,
        reader=reader,
        supports=frozenset(supports or ()),
        window=window,
        may_drop_thinking=may_drop_thinking,
        idle_seconds=idle_seconds,
        members=request,
        baseline=baseline,
    )
    return await services.contexts.plan(planned)


@method("context.spill", "write")
async def context_spill(
    services: Services,
    call: Call,
    *,
    cwd: str,
    session_id: SessionId,
    tool_use_id: SessionId,
    tool: SessionId,
    content: str | None = None,
    source_path: str | None = None,
    reader: str = "",
    action: Literal["spill", "clear"] | None = None,
) -> SpilledResult:
    """What to send in place of one tool result, for a program that asks as soon as it has it.

    With ``action``, which a plan has decided, it is stored below its tool's limit too.
    """
    if (content is None) == (source_path is None):  # both or neither
        raise Invalid("give content or source_path")
    request = await context_request(services, call, cwd, session_id, reader=reader)
    return await services.contexts.spill(
        request,
        tool=tool,
        tool_use_id=tool_use_id,
        content=content,
        source_path=source_path or "",
        action=action,
    )


async def context_request(
    services: Services, call: Call, cwd: str, session: str, **members: Any
) -> ContextRequest:
    """Return a request about a session, with its project, its settings and other ``members``.

    No result is stored while memory is switched off. Raises Invalid.
    """
    environment = call.caller.environment
    project, settings, _ = await services.callers.find(call, cwd)
    usual = environment.get(_WINDOW_VARIABLE, "")
    window = int(usual) if _TOKEN_COUNT.fullmatch(usual) else 0
    if not project.enabled:
        members["reader"] = ""  # without a reader no result is stored
    return ContextRequest(project, settings, session, usual_window=window, **members)


def _checked(decisions: Iterable[Decision]) -> Iterable[Decision]:
    """Yield decisions. Raises Invalid for a text that is not UTF-8."""
    for index, each in enumerate(decisions):
        if not all(map(is_text, (each.tool_use_id, each.content_hash, each.content, each.path))):
            place = f"decisions.{index}"
            raise messages_refused(place, _NO_TEXT)
        yield each
