"""memory.read, write, delete, search and tool: direct use of memories."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from anyio import to_thread
from msgspec.structs import asdict, replace

from memd.api.callers import is_for_an_assistant, started_by_an_assistant
from memd.api.method import Limit, Result, SessionId, Time, method, moment
from memd.api.services import Services
from memd.base.agents import AgentScope
from memd.base.errors import Invalid, Off
from memd.base.names import TEAM, printable
from memd.base.text import age, decode, iso_time
from memd.base.values import ASSISTANT, PERSON, Actor, Header, Project, Provenance, Scope
from memd.memories.service import ToolAnswer, Written
from memd.memories.writing import (
    Writing,
)
from memd.projects.project import agent_directory
from memd.recall.search import Hit
from memd.rpc.connection import Call
from memd.team.errors import team_not_joined, team_refused

_TEAM_OFF = "team.enabled is false"
# A sub-agent's name, "" for the project's own memories. The scope says where its memories are.
AgentName = Annotated[str, msgspec.Meta(max_length=1000)]
SubagentScope = Literal["user", "project", "local"]
AnyScope = Literal["private", "team", "user", "project", "local"]


def wrong_scope(scope: str, agent: str) -> Invalid:
    """Return the error that a scope of sub-agents is given without a sub-agent."""
    memory = f"the memory of the agent {printable(agent)}" if agent else "the project's memory"
    return Invalid(
        f"{memory} has no scope {scope}",
        hint="user, project and local go with agent, private and team without it",
        scope=scope,
    )


def memory_off(reason: str) -> Off:
    """Return the error that memory is off for this caller in the project."""
    return Off(
        f"memory is off here: {reason}", hint="memctl doctor says which switch it is", reason=reason
    )


class MemoryFacts(Result):
    """A memory without its content; ``mtime`` is ISO 8601 in UTC.

    ``origin`` says whose words it holds: user, assistant, outside, team or import, or "" where the
    memory does not say.
    """

    path: str
    name: str
    description: str
    type: str | None
    mtime: str
    age: str
    damaged: bool
    size: int
    origin: str


class MemoryRead(MemoryFacts):
    """One memory whole; ``hash`` is the SHA-256 of the file's bytes."""

    content: str
    hash: str


class ChangeMade(Result):
    """The id of the change that was made."""

    change: str | None


class Hits(Result):
    """The best hits first."""

    hits: tuple[Hit, ...]


@method("memory.read", "read")
async def memory_read(
    services: Services,
    call: Call,
    *,
    cwd: str,
    path: str,
    at: Time | None = None,
    agent: AgentName = "",
    scope: SubagentScope | None = None,
) -> MemoryRead:
    """One whole memory, as it is now or as it was ``at`` a change or a time.

    ``at`` is a change's id, ISO 8601 or seconds since 1970. With ``agent`` it is a memory of that
    sub-agent, in its ``scope`` (by default user).
    """
    when = moment("at", at)
    project = await readable(services, call, cwd, agent, scope)
    if when is None:
        file = await services.store.read(project.memory_dir, path)
    else:
        directory = project.memory_dir
        file = await services.store.consult(
            lambda past, real: past.version(real, path, when), directory
        )
    facts = asdict(facts_of(file.header, services.clock.now()))
    return MemoryRead(**facts, content=decode(file.content), hash=file.hash)


@method("memory.write", "write")
async def memory_write(
    services: Services,
    call: Call,
    *,
    cwd: str,
    path: str,
    content: str | None = None,
    name: str | None = None,
    description: str | None = None,
    type_: Literal["user", "feedback", "project", "reference"] | None = None,
    body: str | None = None,
    title: str | None = None,
    hook: str | None = None,
    base_hash: str | None = None,
    request_id: str = "",
    scope: AnyScope | None = None,
    session_id: SessionId = "",
    said: Annotated[str, msgspec.Meta(max_length=10_000)] | None = None,
    agent: AgentName = "",
) -> Written:
    """Write one memory and its line in the index.

    Give either the whole ``content`` or the parts of a memory. The index, ``MEMORY.md``, is written
    with ``content`` and the ``base_hash`` of the text that was read. A client that writes for an
    assistant gives ``said``: the person's statement word for word, or "" where the body quotes it
    or there is none. The memory counts as the person's only if a recent conversation of the project
    has these words. The body then ends with them; words that no conversation has are not added.
    Without ``said`` it is the person who saves, so the memory is theirs whoever wrote it before; a
    program that an assistant started counts as the assistant.
    With ``scope`` team the ``path`` is below ``team/``. With ``agent`` it is a memory of that
    sub-agent, in the ``scope`` user, project or local (by default user).
    """
    if content is not None and body is not None:
        raise Invalid(
            f"the write of {path} has both content and body",
            hint="content is the whole file; name, description, type and body are its parts",
            path=path,
        )
    project = await writable(services, call, cwd, agent, scope)
    origin = PERSON
    shared = Scope.TEAM if scope == "team" else Scope.PRIVATE
    if shared is Scope.TEAM:
        path = f"{TEAM}{path.removeprefix(TEAM)}"
        await check_team(services, project, path)
    if said is not None:
        text, origin = await services.extract.proven(project, body or "", said)
        body = text if body else body  # a statement alone makes no body
    elif await started_by_an_assistant(services, call):
        origin = ASSISTANT
    by_person = said is None and origin == PERSON and shared is Scope.PRIVATE
    writing = Writing(
        path, content, name, description, type_, body, title, hook, base_hash, shared, by_person
    )
    written = await services.memories.write(
        project,
        writing,
        by_client(call, "memory.write", session_id, origin),
        request_id=request_id,
    )
    return replace(written, origin=origin)


@method("memory.delete", "write")
async def memory_delete(
    services: Services,
    call: Call,
    *,
    cwd: str,
    path: str,
    base_hash: str | None = None,
    request_id: str = "",
    agent: AgentName = "",
    scope: SubagentScope | None = None,
) -> ChangeMade:
    """Delete one memory and its line in the index; with ``agent`` a memory of that sub-agent.

    A memory of a team that the project has joined is refused: ``team.remove`` removes it for all.
    """
    project = await readable(services, call, cwd, agent, scope)
    by = by_client(call, "memory.delete")
    joined = await to_thread.run_sync(services.memberships.joined, project.memory_dir)
    result = await services.memories.delete(
        project, path, by, joined=joined, base_hash=base_hash, request_id=request_id
    )
    return ChangeMade(change=result.change)


@method("memory.search", "read")
async def memory_search(
    services: Services,
    call: Call,
    *,
    cwd: str,
    query: str,
    limit: Limit = 10,
    agent: AgentName = "",
    scope: SubagentScope | None = None,
) -> Hits:
    """Search the memories of a project, or with ``agent`` those of that sub-agent alone."""
    project = await readable(services, call, cwd, agent, scope)
    hits = await services.recall.search(project, query, limit)
    return Hits(hits=hits)


@method("memory.tool", "write")
async def memory_tool(
    services: Services,
    call: Call,
    *,
    cwd: str,
    command: dict[str, Any],
    request_id: str = "",
    session_id: str = "",
    agent: AgentName = "",
    scope: SubagentScope | None = None,
) -> ToolAnswer:
    """Run one command of the Messages API's memory tool; `/memories` is the memory directory.

    ``command`` is the tool's input as the model sent it. With ``agent`` the directory is that
    sub-agent's, in its ``scope`` (by default user).
    """
    project = await writable(services, call, cwd, agent, scope)  # to look, too: a model asks
    by = by_client(call, "memory.tool", session_id, "assistant")
    return await services.memories.tool(project, command, by, request_id=request_id)


async def project_of(
    services: Services, call: Call, cwd: str, agent: str = "", scope: str | None = None
) -> Project:
    """Return the project of a working directory, with the variables of the caller's environment.

    With ``agent`` its memory directory is that of the sub-agent. Raises Invalid and
    what ``agent_directory`` raises.
    """
    is_agents_scope = scope in {*AgentScope}
    if scope is not None and is_agents_scope != bool(agent):
        raise wrong_scope(scope, agent)
    project, *_ = await services.where(call, cwd)
    if agent:
        return await of_agent(project, agent, scope or "", call.caller.environment)
    return project


async def of_agent(
    project: Project, agent: str, scope: str, environment: Mapping[str, str]
) -> Project:
    """Return a project whose memory directory is that of a sub-agent.

    A ``scope`` of "" means ``user``. Raises what ``agent_directory`` raises.
    """
    scope = scope or AgentScope.USER
    directory = await to_thread.run_sync(agent_directory, project, agent, scope, environment)
    return replace(project, memory_dir=directory, client_dir="", source=f"agent, scope {scope}")


async def readable(
    services: Services, call: Call, cwd: str, agent: str = "", scope: str | None = None
) -> Project:
    """Return the project, as ``project_of`` does, to look at its memories or to remove some.

    Raises Off where memory is off and the caller is no person.
    """
    project = await project_of(services, call, cwd, agent, scope)
    await check_reader(services, call, project)
    return project


async def check_reader(services: Services, call: Call, project: Project) -> None:
    """Raise Off where memory is off and an assistant or its program asks."""
    if not project.enabled and await is_for_an_assistant(services, call):
        raise memory_off(project.reason)


async def writable(
    services: Services, call: Call, cwd: str, agent: str = "", scope: str | None = None
) -> Project:
    """Return the project, as ``project_of`` does. Raises Off where memory is off."""
    project = await project_of(services, call, cwd, agent, scope)
    if not project.enabled:
        raise memory_off(project.reason)
    return project


async def check_team(services: Services, project: Project, path: str = "") -> None:
    """Check that a project uses a team's memories. Raises Off, Refused.

    The memory ``path`` may be changed without a team: it stayed when the project left one.
    """
    joined = await to_thread.run_sync(services.memberships.joined, project.memory_dir)
    if path and not joined and await services.store.read_many(project.memory_dir, (path,)):
        return
    settings, _ = await services.projects.settings(project)
    if settings.team.enabled == "false":
        raise team_refused(project.memory_dir, _TEAM_OFF)
    if not settings.team.used(joined=joined):
        raise team_not_joined(project.memory_dir)


def by_client(call: Call, reason: str, session: str = "", origin: str = PERSON) -> Provenance:
    """Return the provenance of a change that a client requested."""
    return Provenance(Actor.CLIENT, call.caller.client, session, "", reason, origin)


def facts_of(header: Header, now: float) -> MemoryFacts:
    """Return the facts about a memory that callers get."""
    return MemoryFacts(
        path=header.path,
        name=header.name,
        description=header.description,
        type=header.type,
        mtime=iso_time(header.mtime_ns / 1e9),  # nanoseconds to seconds
        age=age(header.mtime_ns, now),
        damaged=header.damaged,
        size=header.size,
        origin=header.origin,
    )


METHODS = (memory_read, memory_write, memory_delete, memory_search, memory_tool)
