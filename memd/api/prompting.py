"""load_prompt, prefetch and session.*: the methods that a client calls around a prompt."""

from typing import Annotated, Literal

import msgspec
from anyio import to_thread
from msgspec.structs import fields

from memd.api import notes
from memd.api.services import Services
from memd.api.work import visit_of
from memd.base.errors import Invalid
from memd.base.settings import Settings
from memd.base.text import one_line
from memd.base.values import Project
from memd.instructions.service import InstructionRequest, InstructionText
from memd.methods.method import Limit, Result, SessionId, method
from memd.notes.service import NotesRequest
from memd.projects.projects import Located
from memd.prompt.service import LoadedPrompt
from memd.recall.service import PROMPT_SECONDS, Prefetched, Prompt
from memd.rpc.call import Call

_INSTRUCTIONS = ("claude", "union")  # both mean the files that Claude Code loads
_NAME_CHARACTERS = 100


def instructions_unknown(name: str) -> Invalid:
    """Return the error that a client asked for the instruction files of another assistant."""
    shown = one_line(name, _NAME_CHARACTERS)
    return Invalid(
        f"instructions are none or claude, not {shown!r}",
        hint="claude stands for CLAUDE.md, rules and AGENTS.md",
        instructions=shown,
    )


class PromptLoaded(LoadedPrompt, frozen=True):
    """The memory section, and the text of the instruction files if the client asked for it."""

    instructions: InstructionText | msgspec.UnsetType = msgspec.UNSET


class Done(Result):
    """The method was carried out and has no other result."""

    ok: bool = True


@method("load_prompt", "read")
async def load_prompt(
    services: Services,
    call: Call,
    *,
    cwd: str,
    session_id: SessionId = "",
    mode: Literal["auto", "agent", "daily_log"] = "auto",
    agent: str = "",
    scope: Literal["user", "project", "local"] | None = None,
    skip_index: bool = False,
    extra_guidelines: str = "",
    instructions: str = "none",
) -> PromptLoaded:
    """The memory section of a system prompt, the same bytes for the same inputs.

    A client that loads no CLAUDE.md or AGENTS.md by itself gives ``instructions: claude``: the
    files that Claude Code would load come as a second text. ``union`` means the same.
    """
    if instructions not in ("none", *_INSTRUCTIONS):
        raise instructions_unknown(instructions)
    environment = call.caller.environment

    def load() -> tuple[Located, LoadedPrompt]:
        """Return the project and its prompt. Blocks."""
        located = services.callers.where(call, cwd)
        loaded = services.prompts.load(
            *located[:2],
            mode=mode,
            agent=agent,
            scope=scope or "",
            skip_index=skip_index,
            extra_guidelines=extra_guidelines,
            environment=environment,
        )
        return located, loaded

    (project, _, problems), loaded = await to_thread.run_sync(load)
    services.callers.visited(call, project, session_id)
    members = {each.name: getattr(loaded, each.name) for each in fields(loaded)}
    members["problems"] = (*project.problems, *problems, *loaded.problems)
    if instructions in _INSTRUCTIONS:
        request = InstructionRequest(project, environment)
        members["instructions"] = await services.instructions.text(request)
    return PromptLoaded(**members)


@method("prefetch", "read")
async def prefetch(
    services: Services,
    call: Call,
    *,
    cwd: str,
    session_id: SessionId,
    query: str,
    recent_tools: tuple[str, ...] = (),
    read_paths: tuple[str, ...] = (),
    limit: Limit | None = None,
    strategy: Literal["auto", "model", "local"] = "auto",
    deadline_ms: Annotated[int, msgspec.Meta(ge=10, le=60_000)] | None = None,
    explain: bool = False,
) -> Prefetched:
    """The few memories that are relevant for this prompt; each is returned once per session."""
    prompt = Prompt(
        session=session_id,
        query=query,
        recent_tools=recent_tools,
        read_paths=read_paths,
        limit=limit,
        strategy=strategy,
        seconds=PROMPT_SECONDS if deadline_ms is None else deadline_ms / 1000,
        explain=explain,
    )
    located: list[Project] = []

    def locate() -> tuple[Project, Settings]:
        """Find the project and its settings. Blocks."""
        project, settings, _ = services.callers.where(call, cwd)
        located.append(project)
        return project, settings

    prefetched = await services.recall.prefetch(locate, prompt)
    if located and not explain:  # with ``explain`` a person looks, and no session works there
        services.callers.visited(call, located[0], session_id)
    return prefetched


@method("session.start", "read")
async def session_start(services: Services, call: Call, *, cwd: str, session_id: SessionId) -> Done:
    """Note that a client session begins."""
    project, *_ = await services.callers.find(call, cwd)
    services.callers.visited(call, project, session_id)
    return Done()


@method("session.compacted", "read")
async def session_reset(
    services: Services, _call: Call, *, _cwd: str, session_id: SessionId
) -> Done:
    """Note that a client compacted its context: memories may be returned to it again."""
    await services.recall.reset(session_id)
    return Done()


@method("session.end", "write")
async def session_end(services: Services, call: Call, *, cwd: str, session_id: SessionId) -> Done:
    """Note that a client session ended, though it may be resumed; a due dream may begin.

    A resumed session still has the memories that it was given, so its ledger stays.
    """
    await over(services, call, await notes.notes_request(services, call, cwd, session_id))
    return Done()


async def over(services: Services, call: Call, session: NotesRequest) -> None:
    """Let a due dream begin after a session's end."""
    visit = visit_of(call, session.project.cwd, session.session)
    await services.starter.consider(session.project, session.settings, visit)
