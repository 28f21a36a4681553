"""The registered agents in memory and on disk: find them, tell whether they run, end them. Blocks.

The caller holds one lock around all calls, except around those of ``has_process``,
``by_session``, ``get`` and ``children``, which only read.

Rules of this file
- A process is identified by its PID, our uid and its start in seconds since the system's start. A
  reused PID is another process, and setting the clock changes nothing.
- An agent without a known process counts as running while its connection is open, and for two
  minutes after its last call, in monotonic seconds.
- Only the hash of a key is stored.
"""

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from memd.base.agents import (
    IDLE_SECONDS,
    SILENT_SECONDS,
    Agent,
    AgentState,
    FindProcess,
    SystemProcess,
    lineage,
)
from memd.messages import names, processes
from memd.messages.errors import agent_ended, agent_not_found, key_refused
from memd.projects.project import slug
from memd.state import docs
from memd.state.docs import Docs


class StoredAgent(Struct, frozen=True):
    """A registered agent with the hash of its key; its id is the document's key."""

    agent: Agent
    key: str


class Roster:
    """The agents of this user.

    ``find`` returns a running process of any user by its number. ``now`` returns seconds since
    1970, ``monotonic`` seconds that never go back. The keys of dictionaries are ids of agents.
    """

    def __init__(
        self,
        table: Docs,
        find: FindProcess,
        now: Callable[[], float],
        monotonic: Callable[[], float],
    ) -> None:
        self._table = table
        self.find = find
        self._now = now
        self._monotonic = monotonic
        self._start_times = (now(), monotonic())  # when the daemon started, by both clocks
        self._agents: dict[int, Agent] = {}
        self._keys: dict[int, str] = {}  # the hash of each agent's key
        # The id of an agent by its client, session and sub-agent.
        self._sessions: dict[tuple[str, str, str], int] = {}
        self._last_calls: dict[int, float] = {}  # in monotonic seconds
        self._last_turns: dict[int, float] = {}  # in monotonic seconds
        self._connections: dict[int, Callable[[], bool]] = {}  # return whether they are open
        self.loaded = False  # whether the agents were read from the state file
        # Whether messages wait for an agent; PostOffice sets it. Until then no agent is removed.
        self.has_mail: Callable[[int], bool] = lambda _: True

    def load(self) -> None:
        """Read all agents from the state file, unless that was done before."""
        if not self.loaded:
            stored = self._table.list_all(StoredAgent).values()
            for each in sorted(stored, key=lambda each: each.agent.id):
                self._remember(each.agent, each.key)
            self.loaded = True

    def by_key(self, key: str) -> Agent:
        """Return the agent that has a key, and note its call.

        Raises Refused if no agent has it, or the agent has ended.
        """
        self.load()
        key_hash = hash_key(key)
        ids = [id_ for id_, stored_hash in self._keys.items() if stored_hash == key_hash]
        if not ids:
            raise key_refused()
        agent = self._agents[ids[0]]
        if agent.ended is not None:
            raise agent_ended(agent.name)
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
        if not by_pid:
            return None
        for process in islice(lineage(self.find, pid), 1, None):
            matching = [a for a in by_pid.get(process.pid, ()) if processes.is_same(a, process)]
            if matching:  # a process may have had several sessions: the last one counts
                agent = max(matching, key=lambda agent: (agent.seen, agent.id))
                self.touch(agent.id)
                return agent
        return None

    def has_process(self, running: Collection[SystemProcess], kinds: Collection[str]) -> bool:
        """Return whether an agent of some kinds registered with one of the processes.

        Agents that have ended, and sub-agents, which run in their parent's process, do not count.
        Raises StateUnusableError.
        """
        pids = {process.pid for process in running}
        agents = list(self._agents.values())  # a step in another thread may add one
        if not self.loaded:
            agents = [each.agent for each in self._table.list_all(StoredAgent).values()]
        return any(
            agent.pid in pids
            and agent.kind in kinds
            and not (agent.ended or agent.parent)
            and any(processes.is_same(agent, process) for process in running)
            for agent in agents
        )

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

    def audience(self, root: str, sender: int = 0) -> tuple[Agent, ...]:
        """Return the receivers of a message to all agents of a project: all that have not ended.

        ``sender`` is the id of the sender, which is left out.
        """
        return tuple(a for a in self.agents(root) if a.ended is None and a.id != sender)

    def resolve(self, address: str, root: str) -> Agent:
        """Return the agent that an address names to a sender of the project ``root``.

        Raises NotFound with similar addresses, Refused, and the errors of
        ``names.parse``.
        """
        self.load()
        parsed = names.parse(address)
        place = (parsed.name, parsed.parent)
        matching = [
            agent
            for agent in self.agents()
            if (agent.name, self._parent_name(agent)) == place
            and (slug(agent.root) == parsed.slug if parsed.slug else agent.root == root)
        ]
        active = [agent for agent in matching if agent.ended is None]
        if len({agent.root for agent in active}) == 1:  # two projects may have the same slug
            return active[0]
        if matching and not active:
            raise agent_ended(address)
        addresses = [self.address(agent, root) for agent in self._active()]
        raise agent_not_found(address, names.nearest(address, addresses))

    def address(self, agent: Agent, root: str) -> str:
        """Return the address of an agent as an agent of the project ``root`` writes it.

        It is NAME, PARENT/NAME for a sub-agent, and NAME@PROJECT for an agent of another project,
        where PROJECT is the project's whole path as ``slug`` writes it.
        """
        parent = self._parent_name(agent)
        name = f"{parent}/{agent.name}" if parent else agent.name
        return name if agent.root == root else f"{name}@{slug(agent.root)}"

    def _parent_name(self, agent: Agent) -> str:
        """Return the name of the agent that a sub-agent works for, "" for any other agent."""
        parent = self._agents.get(agent.parent)
        return parent.name if parent else ""

    def state(self, agent: Agent) -> AgentState:
        """Return whether an agent is live, idle, gone or ended at this moment."""
        if agent.ended is not None:
            return AgentState.ENDED
        is_open = self._connections.get(agent.id)
        is_connected = is_open is not None and is_open()
        if is_open is not None and not is_connected:
            # With ``None``, since another thread may have removed it.
            self._connections.pop(agent.id, None)
        # A sub-agent runs in the process of its parent's session.
        host = self._agents.get(agent.parent if agent.child else 0, agent)
        is_running = is_connected or processes.runs(self.find, host)
        is_silent = self._seconds_since(self._last_calls, agent) >= SILENT_SECONDS
        if not is_running and (host.pid or is_silent):
            return AgentState.GONE
        is_idle = self._seconds_since(self._last_turns, agent) >= IDLE_SECONDS
        return AgentState.IDLE if is_idle else AgentState.LIVE

    def is_anothers(self, agent: Agent, caller: int) -> bool:
        """Return whether an agent's process runs and is neither above nor below a caller's.

        A ``caller`` of 0 is trusted, and the result is then false.
        """
        is_running = bool(caller) and processes.runs(self.find, agent)
        return is_running and processes.are_strangers(self.find, agent.pid, caller)

    def touch(self, id_: int, *, turn: bool = False) -> None:
        """Note in memory that an agent called, and with ``turn`` that it has a turn."""
        now = self._monotonic()
        self._last_calls[id_] = now
        if turn or id_ not in self._last_turns:
            self._last_turns[id_] = now

    def attach(self, id_: int, alive: Callable[[], bool]) -> None:
        """Count an agent as running while ``alive`` returns that its connection is open."""
        self._connections[id_] = alive

    def end(self, id_: int) -> list[int]:
        """End an agent and all agents that work for it; return their ids."""
        self.load()
        ids = [id_]
        for each in ids:  # the list grows: agents below the sub-agents end too
            ids += [child.id for child in self.children(each)]
        ended_agents = [
            replace(agent, ended=self._now())
            for agent in map(self._agents.get, ids)
            if agent is not None and agent.ended is None
        ]
        self._save_all(ended_agents)
        return ids

    def _unused(self) -> list[Agent]:
        """Return the agents that are gone, with all their sub-agents, and have no messages.

        The agent with the oldest last call comes first.
        """
        gone = {
            agent.id: agent
            for agent in self._agents.values()
            if self.state(agent) is AgentState.GONE and not self.has_mail(agent.id)
        }
        unused = [
            agent
            for agent in gone.values()
            if all(child.id in gone for child in self.children(agent.id))
        ]
        return sorted(unused, key=partial(self._seconds_since, self._last_calls), reverse=True)

    def _remove(self, agents: Sequence[Agent]) -> None:
        """Remove agents and their sub-agents from the state file and from memory."""
        removed = {each.id: each for a in agents for each in (a, *self.children(a.id))}
        if removed:
            with self._table.transaction() as cursor:
                for id_ in removed:
                    docs.delete(cursor, StoredAgent, key=str(id_))
        for agent in removed.values():
            session = (agent.client, agent.session, agent.child)
            if self._sessions.get(session) == agent.id:  # a newer agent may have the session
                del self._sessions[session]
            for by_id in (
                self._agents,
                self._keys,
                self._last_calls,
                self._last_turns,
                self._connections,
            ):
                by_id.pop(agent.id, None)

    def _remember(self, agent: Agent, key_hash: str) -> None:
        """Store an agent and its key's hash in memory."""
        self._agents[agent.id] = agent
        self._keys[agent.id] = key_hash
        if agent.session:
            self._sessions[agent.client, agent.session, agent.child] = agent.id

    def _add(self, agent: Agent, key_hash: str) -> Agent:
        """Store a new agent on disk and in memory; return it with its id."""
        with self._table.transaction() as cursor:
            agent = replace(agent, id=docs.next_number(cursor, StoredAgent))
            docs.put(cursor, StoredAgent(agent, key_hash), key=str(agent.id))
        self._remember(agent, key_hash)
        return agent

    def _save(self, agent: Agent, key_hash: str = "") -> None:
        """Store an agent on disk and in memory, with a new key's hash if there is one."""
        key_hash = key_hash or self._keys[agent.id]
        self._store({agent: key_hash})
        self._remember(agent, key_hash)

    def _save_all(self, agents: Sequence[Agent]) -> None:
        """Store agents, whose keys and sessions have not changed, on disk and in memory."""
        self._store({agent: self._keys[agent.id] for agent in agents})
        self._agents.update((agent.id, agent) for agent in agents)

    def _store(self, keys: Mapping[Agent, str]) -> None:
        """Store agents on disk; ``keys`` has the hash of each one's key."""
        with self._table.transaction() as cursor:
            for agent, key in keys.items():
                docs.put(cursor, StoredAgent(agent, key), key=str(agent.id))

    def _active(self) -> Iterator[Agent]:
        """Return the agents that have not ended."""
        return (agent for agent in self._agents.values() if agent.ended is None)

    def _seconds_since(self, times: dict[int, float], agent: Agent) -> float:
        """Return the seconds since an agent's last call or turn, whichever ``times`` has.

        Of an agent that did not call since the daemon started, the stored time of its last call
        counts, and from the start on monotonic seconds, so setting the clock changes nothing.
        """
        if agent.id in times:
            return self._monotonic() - times[agent.id]
        start, monotonic_start = self._start_times
        return max(0.0, start - agent.seen) + self._monotonic() - monotonic_start


def hash_key(key: str) -> str:
    """Return the SHA-256 of a key, which is stored instead of it."""
    return hashlib.sha256(key.encode(errors="replace")).hexdigest()
