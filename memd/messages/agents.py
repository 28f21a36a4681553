"""agent.*: register, list and end the agents that exchange messages."""

from collections.abc import Callable

from anyio import to_thread

from memd.base.agents import Agent
from memd.base.text import iso_time
from memd.messages.service import Messages
from memd.messages.values import AgentEnded, AgentRow, Key, Name, Registered, Registration, Speaker
from memd.methods.callers import Callers
from memd.methods.method import Result, SessionId, method
from memd.rpc.call import Call, Connection
from memd.store.secret import scrub

_UNKNOWN_PID = -1  # where the system does not tell the caller's process; related to no process


class AgentRows(Result):
    """The agents, the oldest first."""

    agents: tuple[AgentRow, ...]


class AgentMethods:
    """Answers methods about agents; ``line`` returns one's newest line of progress, and blocks."""

    def __init__(self, messages: Messages, callers: Callers, line: Callable[[int], str]) -> None:
        self._messages = messages
        self._callers = callers
        self._line = line

    @method("agent.register", "write")
    async def agent_register(
        self,
        call: Call,
        *,
        cwd: str,
        name: Name = "",
        session_id: SessionId = "",
        parent: Name = "",
        key: Key = "",
        kind: Name = "",
        pid: int = 0,
        transcript_path: Name = "",
    ) -> Registered:
        """Register an agent, which gets a name, a mailbox, and a key that proves who acts for it.

        A second call with the same session and name returns the same agent with a new key. Whoever
        names a ``parent`` gives the parent's ``key``. Without ``pid`` an agent counts as live while
        its connection is open, and for two minutes after its last call.
        """
        caller = call.caller
        project, *_ = await to_thread.run_sync(self._callers.where, call, cwd)
        registration = Registration(
            root=project.root,
            directory=project.memory_dir,
            name=name,
            client=caller.client,
            kind=scrub(kind),  # any text of the caller's, which may hold a credential
            session=session_id,
            parent=parent,
            key=key,
            pid=pid,
            caller=caller.pid or _UNKNOWN_PID,
            transcript=transcript_path,
        )
        result = await self._messages.register_agent(registration)
        agent = await self._messages.find_speaker(Speaker(result.key))
        self._messages.register.attach(agent.id, _connected(call.connection))
        return result

    @method("agent.list", "read")
    async def agent_list(self, call: Call, *, cwd: str = "", all_: bool = False) -> AgentRows:
        """The agents of a project, or all agents: their state and how many messages are unread."""
        root = None
        if cwd and not all_:
            root = (await to_thread.run_sync(self._callers.where, call, cwd))[0].root
        rows = await to_thread.run_sync(self._rows, root)
        return AgentRows(agents=rows)

    @method("agent.end", "write")
    async def agent_end(self, _call: Call, *, key: Key) -> AgentEnded:
        """End an agent and its child agents; their unread messages end as refused."""
        return await self._messages.end(await self._messages.find_speaker(Speaker(key)))

    def _rows(self, root: str | None) -> tuple[AgentRow, ...]:
        """Return a row for each agent of the project at ``root``, for ``None`` of all projects."""
        register, messages = self._messages.register, self._messages

        def row(agent: Agent) -> AgentRow:
            return AgentRow(
                agent=agent.name,
                address=register.address(agent, root or ""),
                client=agent.client,
                kind=agent.kind,
                project=agent.root,
                state=register.state(agent).value,
                since=iso_time(agent.registered),
                progress=self._line(agent.id),
                unread=messages.unread(agent.id),
            )

        return tuple(row(agent) for agent in register.agents(root))


def _connected(connection: Connection) -> Callable[[], bool]:
    """Return a function that says whether a connection is still open."""
    return lambda: connection.is_open
