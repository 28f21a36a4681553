"""The registered agents in memory and on disk: find them, tell whether they run, end them. Blocks.

The caller holds one lock around all calls, except around those of ``by_session``, ``get`` and
``children``, which only read memory.

Rules of this file
- A process is identified by its PID, our uid and its start in seconds since the system's start. A
  reused PID is another process, and setting the clock changes nothing.
- An agent without a known process counts as running while its connection is open, and for two
  minutes after its last call, in monotonic seconds.
- Only the hash of a key is stored.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice

from msgspec.structs import replace

from memd.core.agents import (
    ABSENT_SECONDS,
    FORGOTTEN_SECONDS,
    IDLE_SECONDS,
    SILENT_SECONDS,
    Agent,
    AgentState,
)
from memd.messages import addressing, names, processes
from memd.messages.errors import (
    AddressRefusedError,
    AgentEndedError,
    AgentKeyError,
    AgentNotFoundError,
)
from memd.messages.names import AgentAddress
from memd.state.tables import AgentTable

_NOT_AN_AGENT = "it names no agent of this daemon"


class Roster:
    """The agents of this user. ``find`` returns a running process of any user by its number."""

    def __init__(
        self,
        table: AgentTable,
        find: processes.FindProcess,
        now: Callable[[], float],
        monotonic: Callable[[], float],
    ) -> None:
        self._table = table
        self.find = find
        self._now = now
        self._monotonic = monotonic
        self._started = (now(), monotonic())
        self._agents: dict[int, Agent] = {}
        self._keys: dict[int, str] = {}  # hashes
        self._sessions: dict[tuple[str, str, str], int] = {}  # by client, session and sub-agent
        self._calls: dict[int, float] = {}  # each agent's last call, in monotonic seconds
        self._turns: dict[int, float] = {}  # each agent's last turn, in monotonic seconds
        self._alive: dict[int, Callable[[], bool]] = {}  # whether its connection is open
        self._loaded = False
        # Whether messages wait for an agent; PostOffice sets it. Until then no agent is removed.
        self.has_mail: Callable[[int], bool] = lambda _: True

    def load(self) -> None:
        """Read all agents from the state file, unless that was done before."""
        if not self._loaded:
            for agent, key in self._table.all():
                self._remember(agent, key)
            self._loaded = True

    def by_key(self, key: str) -> Agent:
        """Return the agent that has a key, and note its call.

        Raises AgentKeyError if no agent has it, AgentEndedError if the agent has ended.
        """
        self.load()
        hashed = hash_key(key)
        agent = next((self._agents[i] for i, other in self._keys.items() if other == hashed), None)
        if agent is None:
            raise AgentKeyError
        if agent.ended is not None:
            raise AgentEndedError(agent.name)
        self.touch(agent.id)
        return agent

    def by_process(self, pid: int) -> Agent | None:
        """Return the agent with the nearest process above a process, ``None`` if there is none.

        Sub-agents run in their parent's process and are not returned.
        """
        self.load()
        by_pid: dict[int, list[Agent]] = {}
        for agent in self._agents.values():
            if agent.pid and agent.ended is None and not agent.parent:
                by_pid.setdefault(agent.pid, []).append(agent)
        for process in islice(processes.lineage(self.find, pid), 1, None):
            matching = [a for a in by_pid.get(process.pid, ()) if processes.is_same(a, process)]
            if matching:  # a process may have had several sessions: the last one counts
                agent = max(matching, key=lambda agent: (agent.seen, agent.id))
                self.touch(agent.id)
                return agent
        return None

    def by_session(self, client: str, session: str, child: str = "") -> Agent | None:
        """Return the agent of a client's session, or of the sub-agent ``child`` in it.

        Return ``None`` if it is not registered or has ended.
        """
        id_ = self._sessions.get((client, session, child), 0)
        agent = self._agents.get(id_)
        return agent if agent is not None and agent.ended is None else None

    def get(self, id_: int) -> Agent | None:
        """Return the agent with an id, ended or not, ``None`` if there is none."""
        return self._agents.get(id_)

    def children(self, id_: int) -> tuple[Agent, ...]:
        """Return the agents that work for the agent with this id and have not ended."""
        return tuple(a for a in list(self._agents.values()) if a.parent == id_ and a.ended is None)

    def agents(self, root: str | None = None) -> tuple[Agent, ...]:
        """Return the agents of a project, ``None`` for all projects, the oldest first."""
        self.load()
        every = sorted((*self._agents.values(),), key=lambda agent: agent.id)
        return tuple(agent for agent in every if root in (None, agent.root))

    def audience(self, root: str, but: int = 0) -> tuple[Agent, ...]:
        """Return the receivers of a message to all agents of a project: all that have not ended.

        ``but`` is the id of the sender, which is left out.
        """
        return tuple(a for a in self.agents(root) if a.ended is None and a.id != but)

    def resolve(self, address: str, root: str) -> Agent:
        """Return the agent that an address names to a sender of the project ``root``.

        Raises AgentNotFoundError with similar addresses, AgentEndedError, and the errors of
        ``names.parse``.
        """
        self.load()
        parsed = names.parse(address)
        if not isinstance(parsed, AgentAddress):
            raise AddressRefusedError(address, _NOT_AN_AGENT)
        matching = addressing.matching(self._agents, parsed, root)
        active = [agent for agent in matching if agent.ended is None]
        if len({agent.root for agent in active}) == 1:  # two projects may have the same slug
            return active[0]
        if matching and not active:
            raise AgentEndedError(address)
        addresses = [self.address(agent, root) for agent in self._name_holders()]
        raise AgentNotFoundError(address, names.nearest(address, addresses))

    def address(self, agent: Agent, root: str) -> str:
        """Return the address of an agent as an agent of the project ``root`` writes it."""
        return addressing.address(self._agents, agent, root)

    def state(self, agent: Agent) -> AgentState:
        """Return whether an agent is live, idle, gone or ended at this moment."""
        if agent.ended is not None:
            return AgentState.ENDED
        alive = self._alive.get(agent.id)
        connected = alive is not None and alive()
        if alive is not None and not connected:
            self._alive.pop(agent.id, None)  # with None, as another thread may have removed it
        # A sub-agent runs in the process of its parent's session.
        host = self._agents.get(agent.parent if agent.child else 0, agent)
        running = connected or processes.runs(self.find, host)
        silent = self._seconds_since(self._calls, agent) >= SILENT_SECONDS
        if not running and (host.pid or silent):
            return AgentState.GONE
        idle = self._seconds_since(self._turns, agent) >= IDLE_SECONDS
        return AgentState.IDLE if idle else AgentState.LIVE

    def is_anothers(self, agent: Agent, caller: int) -> bool:
        """Return whether an agent's process runs and is neither above nor below a caller's."""
        return processes.is_anothers(self.find, agent, caller)

    def touch(self, id_: int, *, turn: bool = False) -> None:
        """Note in memory that an agent called, and with ``turn`` that it has a turn."""
        now = self._monotonic()
        self._calls[id_] = now
        if turn or id_ not in self._turns:
            self._turns[id_] = now

    def attach(self, id_: int, alive: Callable[[], bool]) -> None:
        """Count an agent as running while ``alive`` returns that its connection is open."""
        self._alive[id_] = alive

    def end(self, id_: int) -> list[int]:
        """End an agent and all agents that work for it; return their ids."""
        self.load()
        ids = [id_]
        for each in ids:  # the list grows: agents below the sub-agents end too
            ids += [child.id for child in self.children(each)]
        ended = {
            replace(agent, ended=self._now()): self._keys[agent.id]
            for agent in map(self._agents.get, ids)
            if agent is not None and agent.ended is None
        }
        self._table.save(ended)
        self._agents.update((agent.id, agent) for agent in ended)
        return ids

    def forget(self) -> None:
        """Remove agents that ended a day ago, and unused ones (``_unused``) after a week."""
        self.load()
        seen = {
            replace(agent, seen=self._now() - self._seconds_since(self._calls, agent)): self._keys[
                agent.id
            ]
            for agent in map(self._agents.get, list(self._calls))
            if agent is not None
        }
        self._table.save(seen)  # else after a restart their registration counts as the last call
        self._agents.update((agent.id, agent) for agent in seen)
        before = self._now() - FORGOTTEN_SECONDS
        ended = [a for a in self._agents.values() if a.ended is not None and a.ended <= before]
        absent = [
            a for a in self._unused() if self._seconds_since(self._calls, a) >= ABSENT_SECONDS
        ]
        self._remove([*ended, *absent])

    def _unused(self) -> list[Agent]:
        """Return the agents that are gone, with all their sub-agents, and have no messages.

        The agent with the oldest last call comes first.
        """
        gone = {
            agent.id: agent
            for agent in self._agents.values()
            if self.state(agent) is AgentState.GONE and not self.has_mail(agent.id)
        }
        unused = (a for a in gone.values() if all(c.id in gone for c in self.children(a.id)))
        return sorted(unused, key=partial(self._seconds_since, self._calls), reverse=True)

    def _remove(self, agents: Sequence[Agent]) -> None:
        """Remove agents and their sub-agents from the state file and from memory."""
        removed = {each.id: each for a in agents for each in (a, *self.children(a.id))}
        if removed:
            self._table.forget(tuple(removed))
        for agent in removed.values():
            session = (agent.client, agent.session, agent.child)
            if self._sessions.get(session) == agent.id:  # a newer agent may have the session
                del self._sessions[session]
            for by_id in (self._agents, self._keys, self._calls, self._turns, self._alive):
                by_id.pop(agent.id, None)

    def _remember(self, agent: Agent, key: str) -> None:
        """Store an agent and its key's hash in memory."""
        self._agents[agent.id] = agent
        self._keys[agent.id] = key
        if agent.session:
            self._sessions[agent.client, agent.session, agent.child] = agent.id

    def _save(self, agent: Agent, key: str = "") -> None:
        """Store an agent on disk and in memory, with a new key's hash if there is one."""
        key = key or self._keys[agent.id]
        self._table.save({agent: key})
        self._remember(agent, key)

    def _name_holders(self) -> Iterator[Agent]:
        """Return the agents that have their names: neither ended nor displaced."""
        return (a for a in self._agents.values() if a.ended is None and not a.displaced)

    def _seconds_since(self, times: dict[int, float], agent: Agent) -> float:
        """Return the seconds since an agent's last call or turn, whichever ``times`` has.

        Of an agent that did not call since the daemon started, the stored time of its last call
        counts, and from the start on monotonic seconds, so setting the clock changes nothing.
        """
        if agent.id in times:
            return self._monotonic() - times[agent.id]
        wall, monotonic = self._started
        return max(0.0, wall - agent.seen) + self._monotonic() - monotonic


def hash_key(key: str) -> str:
    """Return the SHA-256 of a key, which is stored instead of it."""
    return hashlib.sha256(key.encode(errors="replace")).hexdigest()
