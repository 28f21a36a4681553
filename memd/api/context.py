"""context.*: which messages of a conversation a program sends whole, stored or cleared."""

import re
from typing import Annotated, Any

import msgspec

from memd.api.method import Limit, Result, SessionId, method
from memd.api.services import Services
from memd.context.service import (
    ContextRequest,
    ContextView,
    Decision,
    ListedContext,
    PlannedContext,
    SpilledResult,
)
from memd.core.errors import WrongParameterError
from memd.projects.project import NoProjectError, SessionRefusedError, slug
from memd.rpc.connection import Call
from memd.state.database import StateUnusableError

Place = Annotated[int, msgspec.Meta(ge=0)]
Window = Annotated[int, msgspec.Meta(ge=0, le=1_000_000_000)]
_WINDOW_VARIABLE = "MEMD_CONTEXT_WINDOW"
_TOKEN_COUNT = re.compile(r"[1-9][0-9]{0,8}")  # below 10^9, which is the bound of ``Window`` too
_READ = (NoProjectError, SessionRefusedError, StateUnusableError)


class OneResultError(WrongParameterError):
    """A request has both the text of a result and a file that holds it, or neither."""

    def __init__(self) -> None:
        super().__init__("give content or source_path")


class RestoredContext(Result):
    """How many decisions were restored."""

    restored: int


class ForgottenContext(Result):
    """Whether the session had decisions or stored results."""

    forgotten: bool


class ContextPage(Result):
    """The conversations that were planned last."""

    contexts: tuple[ListedContext, ...]


@method("context.plan", "write")
async def context_plan(
    services: Services,
    call: Call,
    *,
    cwd: str,
    session_id: SessionId,
    conversation: SessionId = "",
    from_: Place = 0,
    hash_: str = "",
    messages: list[Any],
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
) -> PlannedContext:
    """What to send in place of parts of a conversation; each is decided once and stays.

    memd has the first ``from`` messages already, ``hash`` is their hash, and ``messages`` are those
    that follow. ``usage`` and ``diagnostics`` come from the last reply. ``reader`` names the tool
    that reads stored results: without it no result is stored.
    """
    request = await context_request(
        services,
        call,
        cwd,
        session_id,
        conversation=conversation,
        place=from_,
        hash=hash_,
        messages=messages,
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
    )
    return await services.contexts.plan(request)


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
) -> SpilledResult:
    """What to send in place of one tool result, for a program that asks as soon as it has it."""
    if (content is None) == (source_path is None):  # both or neither
        raise OneResultError
    request = await context_request(services, call, cwd, session_id, reader=reader)
    return await services.contexts.spill(
        request, tool=tool, tool_use_id=tool_use_id, content=content, source_path=source_path or ""
    )


@method("context.restore", "write")
async def context_restore(
    services: Services,
    call: Call,
    *,
    cwd: str,
    session_id: SessionId,
    decisions: list[Decision],
    fork_of: SessionId = "",
) -> RestoredContext:
    """Store the decisions that a program made itself; they replace those of memd.

    ``fork_of`` is the session that this one continues, of the same working directory.
    """
    request = await context_request(services, call, cwd, session_id)
    return RestoredContext(restored=await services.contexts.restore(request, decisions, fork_of))


@method("context.forget", "write")
async def context_forget(
    services: Services, call: Call, *, cwd: str, session_id: SessionId
) -> ForgottenContext:
    """Remove a session's decisions and its stored results."""
    request = await context_request(services, call, cwd, session_id)
    return ForgottenContext(forgotten=await services.contexts.forget(request))


@method("context.show", "read")
async def context_show(
    services: Services, call: Call, *, cwd: str, session_id: SessionId
) -> ContextView:
    """A session's conversations, their sizes, and the decisions about tool results."""
    request = await context_request(services, call, cwd, session_id)
    return await services.contexts.show(request)


@method("context.list", "read")
async def context_list(
    services: Services, call: Call, *, cwd: str | None = None, limit: Limit = 50
) -> ContextPage:
    """The conversations that were planned last, of the project of ``cwd`` or of all projects."""
    folders = ""
    if cwd is not None:
        project, _, _ = await services.where(call, cwd)
        folders = f"{project.transcripts}/{slug(project.cwd)}/"
    return ContextPage(contexts=await services.contexts.list(folders, limit))


async def context_request(
    services: Services, call: Call, cwd: str, session: str, **members: Any
) -> ContextRequest:
    """Return a request about a session, with its project, its settings and other ``members``.

    No result is stored while memory is switched off. Raises NoProjectError.
    """
    environment = call.caller.environment
    project, settings, _ = await services.where(call, cwd)
    usual = environment.get(_WINDOW_VARIABLE, "")
    window = int(usual) if _TOKEN_COUNT.fullmatch(usual) else 0
    if not project.enabled:
        members["reader"] = ""  # without a reader no result is stored
    return ContextRequest(project, settings, session, usual_window=window, **members)


METHODS = (
    context_plan,
    context_spill,
    context_restore,
    context_forget,
    context_show,
    context_list,
)
