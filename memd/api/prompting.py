"""load_prompt, prefetch and the session's life: what a client calls around a prompt."""

from dataclasses import replace
from typing import Annotated, Literal

import msgspec

from memd.api.method import Limit, Params, Result, SessionId, method
from memd.api.services import Services
from memd.api.work import visit_of
from memd.projects.project import NoProjectError
from memd.prompt.service import LoadedPrompt
from memd.recall.service import AUTO, Prefetched, Prompt
from memd.rpc.connection import Call
from memd.state.ledger import Parents


class LoadPrompt(Params):
    """Parameters of ``load_prompt``."""

    cwd: str
    session_id: SessionId | None = None
    mode: Literal["auto", "agent", "daily_log"] | None = None
    agent: str | None = None
    scope: Literal["user", "project", "local"] | None = None
    skip_index: bool | None = None
    extra_guidelines: str | None = None


class Prefetch(Params):
    """Parameters of ``prefetch``."""

    cwd: str
    session_id: SessionId
    query: str
    recent_tools: list[str] | None = None
    read_paths: list[str] | None = None
    limit: Limit | None = None
    strategy: Literal["auto", "model", "local"] | None = None
    deadline_ms: Annotated[int, msgspec.Meta(ge=10, le=60_000)] | None = None
    explain: bool | None = None


class Session(Params):
    """Parameters of ``session.*``."""

    cwd: str
    session_id: SessionId


class Done(Result):
    """Nothing to tell but that it is done."""

    ok: bool = True


@method("load_prompt", "read", NoProjectError)
async def load_prompt(services: Services, call: Call, params: LoadPrompt) -> LoadedPrompt:
    """The memory section of a system prompt, the same bytes for the same inputs."""
    environment = call.connection.caller.environment
    project, settings, problems = await services.store.where(params.cwd, environment)
    loaded = await services.prompts.load(
        project,
        settings,
        mode=params.mode or "auto",
        agent=params.agent or "",
        scope=params.scope or "",
        skip_index=bool(params.skip_index),
        extra_guidelines=params.extra_guidelines or "",
        environment=environment,
    )
    return replace(loaded, problems=(*project.problems, *problems, *loaded.problems))


@method("prefetch", "read", NoProjectError)
async def prefetch(services: Services, call: Call, params: Prefetch) -> Prefetched:
    """The few memories that matter for this prompt; each once per session."""
    return await memories_for(services, call, params, frozenset)


async def memories_for(
    services: Services, call: Call, params: Prefetch, parents: Parents
) -> Prefetched:
    """Return what ``prefetch`` answers; ``parents`` finds the sessions that it was made from."""
    environment = call.connection.caller.environment
    project, settings, _ = await services.store.where(params.cwd, environment)
    return await services.recall.prefetch(
        project,
        settings,
        Prompt(
            session=params.session_id,
            query=params.query,
            recent_tools=params.recent_tools or (),
            read_paths=params.read_paths or (),
            limit=params.limit,
            strategy=params.strategy or AUTO,
            seconds=None if params.deadline_ms is None else params.deadline_ms / 1000,
            explain=bool(params.explain),
            parents=parents,
        ),
    )


@method("session.start", "read", NoProjectError)
async def session_start(services: Services, call: Call, params: Session) -> Done:
    """A client session begins.

    The index is made ready before the first prompt.
    """
    environment = call.connection.caller.environment
    project, settings, _ = await services.store.where(params.cwd, environment)
    services.recall.prepare(project, settings)
    return Done()


@method("session.compacted", "read")
async def session_reset(services: Services, _call: Call, params: Session) -> Done:
    """The client dropped what it had read: memories may come again."""
    await services.recall.reset(params.session_id)
    return Done()


@method("session.end", "write", NoProjectError)
async def session_end(services: Services, call: Call, params: Session) -> Done:
    """A client session is over, though it may be resumed: a due dream may begin.

    The session can be resumed with all that it was given, so its ledger stays.
    """
    await services.starter.offer(visit_of(call, params.cwd, params.session_id))
    return Done()


METHODS = (load_prompt, prefetch, session_start, session_reset, session_end)
