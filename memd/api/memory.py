"""memory.read, write, delete, search and tool: direct use of memories."""

from typing import Annotated, Any, Literal

import msgspec
from anyio import to_thread
from msgspec.structs import asdict, replace

from memd.api.services import Services
from memd.base.errors import Invalid
from memd.base.names import TEAM
from memd.base.text import age, decode, iso_time
from memd.base.values import ASSISTANT, PERSON, Header, Project, Scope
from memd.memories.service import ToolAnswer, Written
from memd.memories.writing import (
    Writing,
)
from memd.methods.callers import AgentName, AnyScope, SubagentScope, by_client
from memd.methods.method import Limit, Result, SessionId, Time, method, moment
from memd.recall.search import Hit
from memd.rpc.call import Call
from memd.team.errors import team_not_joined, team_refused

_TEAM_OFF = "team.enabled is false"


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
    project = await services.callers.readable(call, cwd, agent, scope)
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
    project = await services.callers.writable(call, cwd, agent, scope)
    origin = PERSON
    shared = Scope.TEAM if scope == "team" else Scope.PRIVATE
    if shared is Scope.TEAM:
        path = f"{TEAM}{path.removeprefix(TEAM)}"
        await check_team(services, project, path)
    if said is not None:
        text, origin = await services.extract.proven(project, body or "", said)
        body = text if body else body  # a statement alone makes no body
    elif await services.callers.started_by_an_assistant(call):
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
    project = await services.callers.readable(call, cwd, agent, scope)
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
    project = await services.callers.readable(call, cwd, agent, scope)
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
    project = await services.callers.writable(call, cwd, agent, scope)  # to look, too: a model asks
    by = by_client(call, "memory.tool", session_id, "assistant")
    return await services.memories.tool(project, command, by, request_id=request_id)


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
