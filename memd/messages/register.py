"""Register agents: new ones, and sessions that register again. Blocks.

Rules of this file
- A name belongs to an agent that runs. If it is gone, another agent may take the name. The first
  one is then displaced: it keeps its mailbox and gets the name back when its session registers.
- While the process of a session runs, only that process, its ancestors and its descendants can
  register the session again. Ids of sessions and processes are no secrets, and keys open mailboxes.
- Each registration makes a new key, and the key before it is no longer valid.
"""

import os
import secrets
from itertools import islice

from msgspec.structs import replace

from memd.core.agents import AGENTS, CHILDREN, Agent, AgentState
from memd.messages import names, processes
from memd.messages.errors import (
    AgentEndedError,
    AgentKeyError,
    AgentNameTakenError,
    TooManyAgentsError,
)
from memd.messages.roster import Roster, hash_key
from memd.messages.values import Registered, Registration

_KEY_BYTES = 32


class Register(Roster):
    """The agents of this user, with the registration of new ones."""

    def register(self, request: Registration) -> Registered:
        """Register a new agent, or one that registers again, and return its new key.

        Raises NameRefusedError, AgentNameTakenError, TooManyAgentsError, AgentKeyError if the
        parent's key is wrong, AgentEndedError if the agent has ended, and NoSuchProcessError.
        """
        self.load()
        parent = self._parent(request)
        process_start = self._process_start(request.pid, request.caller)
        earlier = self._find_earlier(request, parent)
        same_session = self.by_session(request.client, request.session, request.child)
        for registered in (earlier, same_session):
            # Ids of sessions are no secrets: a stranger's process may have sent this one.
            if registered is not None and self.is_anothers(registered, request.caller):
                raise self._name_taken_error(registered.name, request.root, parent)
        name = self._claim_name(request, parent, earlier)
        if earlier is None:
            self._make_room(AGENTS)
            if parent is not None:
                self._make_room(CHILDREN, parent)
        agent = earlier or Agent(
            0,  # the table gives the id
            request.root,
            request.directory,
            name,
            parent=parent.id if parent else 0,
            session=request.session,
            child=request.child,
            registered=self._now(),
        )
        agent = replace(  # what may differ when a session registers again
            agent,
            name=name,
            directory=request.directory,
            client=request.client,
            kind=request.kind,
            pid=request.pid,
            began=process_start,
            seen=self._now(),
            transcript=request.transcript,
            displaced=False,
            ended=None,
        )
        key = secrets.token_urlsafe(_KEY_BYTES)
        if earlier is None:
            agent = self._table.add(agent, hash_key(key))
            self._remember(agent, hash_key(key))
        else:
            self._save(agent, hash_key(key))
        self.touch(agent.id, turn=True)
        return Registered(agent.name, self.address(agent, agent.root), key)

    def _claim_name(
        self, request: Registration, parent: Agent | None, earlier: Agent | None
    ) -> str:
        """Return the name for an agent that registers, and displace a gone agent that has it.

        ``earlier`` is the agent if it is registered already. Without a name in the request it
        keeps its name; a new or displaced agent gets one made from its client and session. Raises
        NameRefusedError and AgentNameTakenError.
        """
        name = request.name or (earlier.name if earlier and not earlier.displaced else "")
        if not name:
            name = names.name_from("", f"{request.client or 'agent'}-{request.session[:4]}")
            name = names.free_name(name, self._taken_names(request.root, parent, earlier))
        names.check_agent_name(name)
        holder = self._name_holder(request.root, name, parent)
        if holder is not None and (earlier is None or holder.id != earlier.id):
            if self.state(holder) is not AgentState.GONE:
                raise self._name_taken_error(name, request.root, parent)
            self._save(replace(holder, displaced=True))
        return name

    def _parent(self, request: Registration) -> Agent | None:
        """Return the parent that a registration names, ``None`` if it names none.

        The parent's key proves it, or the client's session that a sub-agent runs in. Raises
        AgentKeyError.
        """
        if not request.parent and not request.key:
            return None
        if request.key:
            return self.by_key(request.key)
        parent = self.by_session(request.client, request.session) if request.child else None
        if parent is None or request.parent != parent.name:
            raise AgentKeyError
        return parent

    def _find_earlier(self, request: Registration, parent: Agent | None) -> Agent | None:
        """Return the agent that a request registers again, ``None`` for a new agent.

        This is the last active agent of the same session with the name of the request, or with any
        name if the request has none. If the session has no such agent, it is the last one that is
        displaced. Raises AgentEndedError if all agents with the name have ended.
        """
        if not request.session:
            return self._earlier_by_name(request, parent)
        parent_id = parent.id if parent else 0
        session = (request.root, request.client, request.session, request.child, parent_id)
        same_session = [
            agent
            for agent in self._agents.values()
            if (agent.root, agent.client, agent.session, agent.child, agent.parent) == session
        ]
        same_name = [agent for agent in same_session if request.name in ("", agent.name)]
        displaced = [agent for agent in same_session if agent.displaced]
        active = [agent for agent in same_name or displaced if agent.ended is None]
        if same_name and not active:
            raise AgentEndedError(request.name or same_name[0].name)
        return active[-1] if active else None

    def _earlier_by_name(self, request: Registration, parent: Agent | None) -> Agent | None:
        """Return the agent with the name of a request that has no session.

        Return ``None`` unless that agent has no session either, is of the same client, and is gone
        or runs in the same process.
        """
        agent = self._name_holder(request.root, request.name, parent)
        if agent is None or agent.session or agent.client != request.client:
            return None
        is_same_process = request.pid and agent.pid == request.pid
        return agent if is_same_process or self.state(agent) is AgentState.GONE else None

    def _name_holder(self, root: str, name: str, parent: Agent | None) -> Agent | None:
        """Return the agent that has a name in a project, or below a parent in it."""
        parent_id = parent.id if parent else 0
        for agent in self._name_holders():
            if (agent.root, agent.name, agent.parent) == (root, name, parent_id):
                return agent
        return None

    def _taken_names(
        self, root: str, parent: Agent | None, excluded: Agent | None = None
    ) -> set[str]:
        """Return the names that agents of a project have, or those below a parent in it.

        The name of the agent ``excluded`` is not among them.
        """
        place = (root, parent.id if parent else 0)
        agents = (a for a in self._name_holders() if (a.root, a.parent) == place)
        return {agent.name for agent in agents if agent is not excluded}

    def _name_taken_error(self, name: str, root: str, parent: Agent | None) -> AgentNameTakenError:
        """Return the error that a name is taken, with a free name like it."""
        return AgentNameTakenError(name, names.free_name(name, self._taken_names(root, parent)))

    def _make_room(self, limit: int, parent: Agent | None = None) -> None:
        """Check that fewer than ``limit`` agents are active, of all or of one parent.

        At the limit one unused agent is removed. Raises TooManyAgentsError if there is none.
        """

        def is_full() -> bool:
            """Return whether the limit is reached."""
            if parent is not None:
                return len(self.children(parent.id)) >= limit
            return sum(agent.ended is None for agent in self._agents.values()) >= limit

        if is_full():
            unused = (a for a in self._unused() if parent is None or a.parent == parent.id)
            self._remove(list(islice(unused, 1)))
        if is_full():
            raise TooManyAgentsError(limit, parent.name if parent else "")

    def _process_start(self, pid: int, caller: int) -> float:
        """Return when a process started, in seconds since the system's start, 0 for no process.

        Raises NoSuchProcessError unless it is this user's and above, below or equal to the caller.
        """
        if not pid:
            return 0.0
        process = self.find(pid)
        # A caller of 0 is trusted.
        is_strange = bool(caller) and processes.are_strangers(self.find, pid, caller)
        if process is None or process.uid != os.getuid() or is_strange:
            raise processes.NoSuchProcessError(pid)
        return process.began
