"""Where the callers of methods work, and what memory lets them do there.

An assistant is recognised by its registration as an agent, or by the name of a program among the
caller's ancestors. This is no proof: a program of the same user can detach itself from its parents.
Only a program that takes the ordinary way is refused.
"""

from collections.abc import Callable, Collection
from typing import Annotated, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from memd.base.agents import AgentScope, FindProcess, SystemProcess, lineage
from memd.base.clock import Clock
from memd.base.errors import Invalid, Off
from memd.base.names import printable
from memd.base.recent import Recent
from memd.base.values import PERSON, Actor, Project, Provenance
from memd.projects.project import agent_directory
from memd.projects.projects import Located, Projects
from memd.projects.switches import is_below
from memd.rpc.call import Call

# A sub-agent's name, "" for the project's own memories. The scope says where its memories are.
AgentName = Annotated[str, msgspec.Meta(max_length=1000)]
SubagentScope = Literal["user", "project", "local"]
AnyScope = Literal["private", "team", "user", "project", "local"]
# The kinds of agents that hooks and the bridge register. Any program may register another kind.
_ASSISTANT_KINDS = ("session", "sub-agent", "mcp")
_ASSISTANT_PROGRAMS = frozenset(
    ("claude", "codex", "gemini", "opencode", "copilot", "cursor-agent", "goose", "aider")
)
_MCP = "mcp"  # the name of the MCP server, before that of its client
_SESSIONS = 20  # the last active ones, which ``status`` shows
_SESSION_CHARACTERS = 200  # of the name of a session


class SeenSession(Struct, frozen=True):
    """A client's session and the project that it worked on, ``at`` in seconds since 1970."""

    client: str
    session: str
    project: str
    at: float


class Callers:
    """Finds the projects of callers and says what these may do. Blocks, but for ``visited``.

    ``find`` describes a process, and ``hooked`` are the clients with hooks. The daemon sets two
    functions: ``has_agent`` returns whether an agent of some kinds runs in one of some processes,
    and blocks; ``on_visit`` is called with the memory directory that a session works on.
    ``sessions`` are the last active ones, the newest last.
    """

    def __init__(
        self, projects: Projects, find: FindProcess, clock: Clock, *, hooked: Collection[str]
    ) -> None:
        self._projects = projects
        self._find = find
        self._hooked = hooked
        self._clock = clock
        self.has_agent: Callable[[Collection[SystemProcess], Collection[str]], bool]
        self.on_visit: Callable[[str], None]
        self.sessions: Recent[tuple[str, str], SeenSession] = Recent(_SESSIONS)

    def where(self, call: Call, cwd: str) -> Located:
        """Return the caller's project, its settings and a sentence for each problem in their files.

        ``project.enabled`` is the one answer to whether memory is on for this caller there.
        Raises Invalid.
        """
        caller = call.caller
        return self._projects.where(cwd, caller.environment, caller.client, caller.pid)

    def place(self, call: Call, cwd: str, agent: str = "", scope: str | None = None) -> Project:
        """Return the project of a working directory, by the variables of the caller's environment.

        With ``agent`` its memory directory is that of the sub-agent. Raises Invalid and what
        ``agent_directory`` raises.
        """
        if scope is not None and (scope in {*AgentScope}) != bool(agent):
            raise _wrong_scope(scope, agent)
        project, *_ = self.where(call, cwd)
        if not agent:
            return project
        scope = scope or AgentScope.USER
        directory = agent_directory(project, agent, scope, call.caller.environment)
        return replace(project, memory_dir=directory, client_dir="", source=f"agent, scope {scope}")

    def readable(self, call: Call, cwd: str, agent: str = "", scope: str | None = None) -> Project:
        """Return the project, as ``place`` does, to look at its memories or to remove some.

        Raises Off where memory is off and the caller is no person.
        """
        project = self.place(call, cwd, agent, scope)
        self.check_reader(call, project)
        return project

    def writable(self, call: Call, cwd: str, agent: str = "", scope: str | None = None) -> Project:
        """Return the project, as ``place`` does. Raises Off where memory is off."""
        project = self.place(call, cwd, agent, scope)
        if not project.enabled:
            raise memory_off(project.reason)
        return project

    def check_reader(self, call: Call, project: Project) -> None:
        """Raise Off where memory is off and an assistant's hook, tool or program asks."""
        if project.enabled:
            return
        client = call.caller.client
        is_assistant = client in self._hooked or client.partition(" ")[0] == _MCP
        if is_assistant or self.started_by_an_assistant(call):
            raise memory_off(project.reason)

    def started_by_an_assistant(self, call: Call) -> bool:
        """Return whether the caller is a program that an assistant started."""
        connection = call.connection
        if connection.ancestors is None:
            pid = call.caller.pid
            connection.below_assistant = is_below(self._find, pid, _ASSISTANT_PROGRAMS)
            connection.ancestors = tuple(lineage(self._find, pid))[1:]
        if connection.below_assistant or not connection.ancestors:
            return connection.below_assistant
        return self.has_agent(connection.ancestors, _ASSISTANT_KINDS)

    def visited(self, call: Call, project: Project, session: str) -> None:
        """Note that a session works on a project, so that its team's entries are pulled.

        Call it on the event loop.
        """
        if project.enabled:
            self.on_visit(project.memory_dir)
        if session:
            client, name = call.caller.client, session[:_SESSION_CHARACTERS]
            self.sessions.pop((client, name), None)  # the newest comes last
            session_now = SeenSession(client, name, project.root, self._clock.now())
            self.sessions[client, name] = session_now


def by_client(call: Call, reason: str, session: str = "", origin: str = PERSON) -> Provenance:
    """Return the provenance of a change that a client requested."""
    return Provenance(Actor.CLIENT, call.caller.client, session, "", reason, origin)


def memory_off(reason: str) -> Off:
    """Return the error that memory is off for this caller in the project."""
    return Off(
        f"memory is off here: {reason}", hint="memctl doctor says which switch it is", reason=reason
    )


def _wrong_scope(scope: str, agent: str) -> Invalid:
    """Return the error that a scope of sub-agents is given without a sub-agent."""
    memory = f"the memory of the agent {printable(agent)}" if agent else "the project's memory"
    return Invalid(
        f"{memory} has no scope {scope}",
        hint="user, project and local go with agent, private and team without it",
        scope=scope,
    )
