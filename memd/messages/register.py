"""Who is there: the agents that registered, and whether they still are. Blocks.

All rows are in memory too; one lock around all calls is the caller's, but for ``by_session``,
``get`` and ``children``, which look into memory alone.

Rules of this file
- A process is known by its PID, our uid and its start in seconds since the system's start: a number
  that was given anew is another process, and a clock that is set changes nothing.
- An agent without a process is there while its connection is open, and for two minutes after its
  last call. In the daemon's life that is measured on a clock that never goes back.
- A name belongs to who lives. Where its holder is gone another agent may take it; the holder keeps
  its mailbox and has it again when its session registers.
- A session whose process runs is registered anew from that process's family alone, and the process
  is no stranger's agent: ids of sessions and processes are no secrets, and keys open mailboxes.
- A key is stored as its hash alone; registering again makes a new one.
"""

import hashlib
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

from msgspec.structs import replace

from memd.core.agents import (
    ABSENT_SECONDS,
    AGENTS,
    CHILDREN,
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
    AgentNameTakenError,
    AgentNotFoundError,
    TooManyAgentsError,
)
from memd.messages.names import AgentAddress
from memd.messages.values import Registered, Registration
from memd.state.tables import AgentTable

_KEY_BYTES = 32
_NOT_AN_AGENT = "it names no agent of this daemon"


class Register:
    """The agents of this user. ``find`` returns a living process of any user by its number."""

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
        self._keys: dict[int, str] = {}
        self._sessions: dict[tuple[str, str, str], int] = {}
        self._calls: dict[int, float] = {}  # the last call of each, in monotonic seconds
        self._turns: dict[int, float] = {}
        self._alive: dict[int, Callable[[], bool]] = {}  # an open connection
        self._loaded = False
        # Whether something waits for an agent; the mailboxes say it, once there are some.
        self.has_mail: Callable[[int], bool] = lambda _: True

    def load(self) -> None:
        """Read the rows, once."""
        if not self._loaded:
            for agent, key in self._table.all():
                self._put(agent, key)
            self._loaded = True

    def register(self, request: Registration) -> Registered:
        """Register an agent, or the same one again with a new key.

        Raises NameRefusedError, AgentNameTakenError, TooManyAgentsError, AgentKeyError where the
        parent's key is wrong, AgentEndedError for an ended one, and NoSuchProcessError.
        """
        self.load()
        parent = self._parent(request)
        began = self._began(request.pid, request.caller)
        earlier = self._earlier(request, parent)
        for known in (earlier, self.by_session(request.client, request.session, request.child)):
            if known is not None and self.is_anothers(known, request.caller):
                raise self._name_taken(known.name, request.root, parent)
        name = request.name or (earlier.name if earlier and not earlier.displaced else "")
        if not name:
            name = names.name_from("", f"{request.client or 'agent'}-{request.session[:4]}")
            name = names.free_name(name, self._taken(request.root, parent, earlier))
        names.check_agent_name(name)
        holder = self._holder(request.root, name, parent)
        if holder is not None and (earlier is None or holder.id != earlier.id):
            if self.state(holder) is not AgentState.GONE:
                raise self._name_taken(name, request.root, parent)
            self._save(replace(holder, displaced=True))
        if earlier is None:
            self._check_room(parent)
        facts: dict[str, Any] = {
            "name": name,
            "directory": request.directory,
            "client": request.client,
            "kind": request.kind,
            "pid": request.pid,
            "began": began,
            "seen": self._now(),
            "transcript": request.transcript,
        }
        key = secrets.token_urlsafe(_KEY_BYTES)
        if earlier is None:
            agent = Agent(
                0,
                request.root,
                parent=parent.id if parent else 0,
                session=request.session,
                child=request.child,
                registered=self._now(),
                **facts,
            )
            agent = self._table.add(agent, _hashed(key))
            self._put(agent, _hashed(key))
        else:
            agent = replace(earlier, displaced=False, ended=None, **facts)
            self._save(agent, _hashed(key))
        self.touch(agent.id, turn=True)
        return Registered(agent.name, self.address(agent, agent.root), key)

    def by_key(self, key: str) -> Agent:
        """Return the agent that has a key. Raises AgentKeyError, AgentEndedError."""
        self.load()
        hashed = _hashed(key)
        id_ = next((id_ for id_, known in self._keys.items() if known == hashed), 0)
        if not id_:
            raise AgentKeyError
        return self._not_ended(self._agents[id_])

    def by_process(self, pid: int) -> Agent | None:
        """Return the agent whose process is a process's nearest ancestor, ``None`` for none."""
        self.load()
        by_pid: dict[int, list[Agent]] = {}
        for agent in self._agents.values():
            if agent.pid and agent.ended is None and not agent.parent:
                by_pid.setdefault(agent.pid, []).append(agent)
        for process in islice(processes.lineage(self.find, pid), 1, None):
            matching = [
                agent for agent in by_pid.get(process.pid, ()) if processes.is_same(agent, process)
            ]
            if matching:
                agent = max(matching, key=lambda each: (each.seen, each.id))
                self.touch(agent.id)
                return agent
        return None

    def by_session(self, client: str, session: str, child: str = "") -> Agent | None:
        """Return the agent of a client's session, or of a sub-agent in it; not an ended one."""
        id_ = self._sessions.get((client, session, child), 0)
        agent = self._agents.get(id_)
        return agent if agent is not None and agent.ended is None else None

    def get(self, id_: int) -> Agent | None:
        """Return an agent by its id."""
        return self._agents.get(id_)

    def children(self, id_: int) -> tuple[Agent, ...]:
        """Return the agents that work for one and have not ended."""
        return tuple(a for a in list(self._agents.values()) if a.parent == id_ and a.ended is None)

    def agents(self, root: str | None = None) -> tuple[Agent, ...]:
        """Return the agents of a project, or all, the oldest first."""
        self.load()
        every = sorted((*self._agents.values(),), key=lambda agent: agent.id)
        return tuple(agent for agent in every if root in (None, agent.root))

    def audience(self, root: str, but: int = 0) -> tuple[Agent, ...]:
        """Return whom a message to all of a project goes to: who has not ended."""
        return tuple(a for a in self.agents(root) if a.ended is None and a.id != but)

    def resolve(self, address: str, root: str) -> Agent:
        """Return the agent that an address means to somebody of a project.

        Raises AgentNotFoundError with those that are like it, AgentEndedError, and what
        ``names.parse`` raises.
        """
        self.load()
        wanted = names.parse(address)
        if not isinstance(wanted, AgentAddress):
            raise AddressRefusedError(address, _NOT_AN_AGENT)
        known = addressing.meant(self._agents, wanted, root)
        there = [agent for agent in known if agent.ended is None]
        if len({agent.root for agent in there}) == 1:
            return there[0]
        if known and not there:
            raise AgentEndedError(address)
        others = [a for a in self._agents.values() if a.ended is None and not a.displaced]
        addresses = [self.address(agent, root) for agent in others]
        raise AgentNotFoundError(address, names.nearest(address, addresses))

    def address(self, agent: Agent, root: str) -> str:
        """Return an agent's address as somebody of a project writes it."""
        return addressing.address(self._agents, agent, root)

    def state(self, agent: Agent) -> AgentState:
        """Return whether an agent is there; looked up now."""
        if agent.ended is not None:
            return AgentState.ENDED
        alive = self._alive.get(agent.id)
        connected = alive is not None and alive()
        if alive is not None and not connected:
            self._alive.pop(agent.id, None)  # another thread may have looked at the same time
        host = self._agents.get(agent.parent if agent.child else 0, agent)  # it runs in its session
        here = connected or processes.runs(self.find, host)
        if not here and (host.pid or self._since(self._calls, agent) >= SILENT_SECONDS):
            return AgentState.GONE
        quiet = self._since(self._turns, agent)
        return AgentState.IDLE if quiet >= IDLE_SECONDS else AgentState.LIVE

    def is_anothers(self, agent: Agent, caller: int) -> bool:
        """Say whether an agent's process runs and is neither above nor below a caller's."""
        return processes.is_anothers(self.find, agent, caller)

    def touch(self, id_: int, *, turn: bool = False) -> None:
        """Note that an agent called, and where it says so that it has a turn. Memory alone."""
        now = self._monotonic()
        self._calls[id_] = now
        if turn or id_ not in self._turns:
            self._turns[id_] = now

    def attach(self, id_: int, alive: Callable[[], bool]) -> None:
        """Count an agent as there while its connection is open."""
        self._alive[id_] = alive

    def end(self, id_: int) -> None:
        """End an agent and all that work for it."""
        self.load()
        line = [id_]
        for each in line:
            line += [child.id for child in self.children(each)]
        ended = {
            replace(agent, ended=self._now()): self._keys[agent.id]
            for agent in map(self._agents.get, line)
            if agent is not None and agent.ended is None
        }
        self._table.save(ended)
        self._agents.update((agent.id, agent) for agent in ended)

    def forget(self) -> None:
        """Forget agents that ended a day ago, and those that nobody has missed for a week.

        These are gone, with all that work for them, and nothing waits in their mailboxes.
        """
        self.load()
        seen = {
            replace(agent, seen=self._now() - self._since(self._calls, agent)): self._keys[agent.id]
            for agent in map(self._agents.get, list(self._calls))
            if agent is not None
        }
        self._table.save(seen)  # else the next start takes who registered long ago for absent
        self._agents.update((agent.id, agent) for agent in seen)
        before = self._now() - FORGOTTEN_SECONDS
        ended = [a for a in self._agents.values() if a.ended is not None and a.ended <= before]
        absent = [a for a in self._unused() if self._since(self._calls, a) >= ABSENT_SECONDS]
        self._drop([*ended, *absent])

    def _unused(self) -> list[Agent]:
        """Return who is gone with all that work for it and has no mail, the longest gone first."""
        gone = {
            agent.id: agent
            for agent in self._agents.values()
            if self.state(agent) is AgentState.GONE and not self.has_mail(agent.id)
        }
        alone = (a for a in gone.values() if all(c.id in gone for c in self.children(a.id)))
        return sorted(alone, key=partial(self._since, self._calls), reverse=True)

    def _drop(self, agents: Sequence[Agent]) -> None:
        gone = {each.id: each for a in agents for each in (a, *self.children(a.id))}
        if gone:
            self._table.forget(tuple(gone))
        for agent in gone.values():
            session = (agent.client, agent.session, agent.child)
            if self._sessions.get(session) == agent.id:
                del self._sessions[session]
            for known in (self._agents, self._keys, self._calls, self._turns, self._alive):
                known.pop(agent.id, None)

    def _put(self, agent: Agent, key: str) -> None:
        self._agents[agent.id] = agent
        self._keys[agent.id] = key
        if agent.session:
            self._sessions[agent.client, agent.session, agent.child] = agent.id

    def _save(self, agent: Agent, key: str = "") -> None:
        key = key or self._keys[agent.id]
        self._table.save({agent: key})
        self._put(agent, key)

    def _parent(self, request: Registration) -> Agent | None:
        """Return the parent that a registration names, by its key. Raises AgentKeyError."""
        if not request.parent and not request.key:
            return None
        if request.key:
            return self.by_key(request.key)
        parent = self.by_session(request.client, request.session) if request.child else None
        if parent is None or request.parent != parent.name:
            raise AgentKeyError
        return parent

    def _earlier(self, request: Registration, parent: Agent | None) -> Agent | None:
        """Return the agent that registers again, ``None`` for a new one. Raises AgentEndedError."""
        if not request.session:
            return self._of_name(request, parent)
        parent_id = parent.id if parent else 0
        same = [
            agent
            for agent in self._agents.values()
            if (agent.root, agent.client, agent.session, agent.child, agent.parent)
            == (request.root, request.client, request.session, request.child, parent_id)
        ]
        named = [a for a in same if not request.name or a.name == request.name]
        displaced = [agent for agent in same if agent.displaced]
        there = [agent for agent in named or displaced if agent.ended is None]
        if named and not there:
            raise AgentEndedError(request.name or named[0].name)
        return there[-1] if there else None

    def _of_name(self, request: Registration, parent: Agent | None) -> Agent | None:
        """Return who has no session either and the name, if it is gone or of the same process."""
        agent = self._holder(request.root, request.name, parent)
        if agent is None or agent.session or agent.client != request.client:
            return None
        same = request.pid and agent.pid == request.pid
        return agent if same or self.state(agent) is AgentState.GONE else None

    def _holder(self, root: str, name: str, parent: Agent | None) -> Agent | None:
        place = (root, name, parent.id if parent else 0)
        return next((a for a in self._there() if (a.root, a.name, a.parent) == place), None)

    def _taken(self, root: str, parent: Agent | None, but: Agent | None) -> set[str]:
        place = (root, parent.id if parent else 0)
        return {a.name for a in self._there() if (a.root, a.parent) == place and a is not but}

    def _name_taken(self, name: str, root: str, parent: Agent | None) -> AgentNameTakenError:
        return AgentNameTakenError(name, names.free_name(name, self._taken(root, parent, None)))

    def _there(self) -> Iterator[Agent]:
        return (a for a in self._agents.values() if a.ended is None and not a.displaced)

    def _count(self) -> int:
        return sum(agent.ended is None for agent in self._agents.values())

    def _check_room(self, parent: Agent | None) -> None:
        """Make room for one more, if need be in the place of one that nobody would miss."""
        if self._count() >= AGENTS:
            self._drop(self._unused()[:1])
        if self._count() >= AGENTS:
            raise TooManyAgentsError(AGENTS)
        if parent is not None and len(self.children(parent.id)) >= CHILDREN:
            self._drop([each for each in self._unused() if each.parent == parent.id][:1])
        if parent is not None and len(self.children(parent.id)) >= CHILDREN:
            raise TooManyAgentsError(CHILDREN, parent.name)

    def _began(self, pid: int, caller: int) -> float:
        """Return when a process of ours began, no stranger's. Raises NoSuchProcessError."""
        if not pid:
            return 0.0
        process = self.find(pid)
        others = bool(caller) and processes.are_strangers(self.find, pid, caller)
        if process is None or process.uid != os.getuid() or others:
            raise processes.NoSuchProcessError(pid)
        return process.began

    def _not_ended(self, agent: Agent) -> Agent:
        if agent.ended is not None:
            raise AgentEndedError(agent.name)
        self.touch(agent.id)
        return agent

    def _since(self, times: dict[int, float], agent: Agent) -> float:
        """Return the seconds since an agent was seen, whatever became of the wall clock."""
        if agent.id in times:
            return self._monotonic() - times[agent.id]
        wall, monotonic = self._started
        return max(0.0, wall - agent.seen) + self._monotonic() - monotonic


def _hashed(key: str) -> str:
    return hashlib.sha256(key.encode(errors="replace")).hexdigest()
