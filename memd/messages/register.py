"""Register agents: new ones, and sessions that register again. Blocks.

Rules of this file
- A name belongs to an agent that runs or has unread mail. Another agent may take the name of one
  that is gone and has none, which is removed then.
- While the process of a session runs, only that process, its ancestors and its descendants can
  register the session again. Ids of sessions and processes are no secrets, and keys open mailboxes.
- Each registration makes a new key, and the key before it is no longer valid.
- With ``AGENTS`` agents the one that was silent for longest ends for a new one.
"""

import os
import secrets
from functools import partial

from msgspec.structs import replace

from memd.base.agents import AGENTS, CHILDREN, Agent, AgentState
from memd.base.errors import Conflict, Invalid
from memd.messages import names, processes
from memd.messages.errors import agent_ended, agent_name_taken, key_refused, too_many_agents
from memd.messages.roster import Roster, hash_key
from memd.messages.values import Registered, Registration

_KEY_BYTES = 32


class Register(Roster):
    """The agents of this user, with the registration of new ones."""

    def register(self, request: Registration) -> tuple[Registered, list[int]]:
        """Register a new agent, or one that registers again; return it with its new key.

        The second result are the ids of agents that ended to make room for it.

        Raises Refused if the parent's key is wrong or the agent has ended, Conflict, TooLarge and
        Invalid.
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
        ended = []
        if earlier is None:
            if parent is not None:
                self._check_children(parent)
            ended = self._make_room()
        agent = earlier or Agent(
            0,  # it gets its id when it is stored
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
            ended=None,
        )
        key = secrets.token_urlsafe(_KEY_BYTES)
        if earlier is None:
            agent = self._add(agent, hash_key(key))
        else:
            self._save(agent, hash_key(key))
        self.touch(agent.id, turn=True)
        return Registered(agent.name, self.address(agent, agent.root), key), ended

    def _claim_name(
        self, request: Registration, parent: Agent | None, earlier: Agent | None
    ) -> str:
        """Return the name for an agent that registers, and remove an unused agent that has it.

        ``earlier`` is the agent if it is registered already. Without a name in the request it
        keeps its name; a new agent gets one made from its client and session. Raises
        Refused and Conflict.
        """
        name = request.name or (earlier.name if earlier else "")
        if not name:
            name = names.name_from("", f"{request.client or 'agent'}-{request.session[:4]}")
            name = names.free_name(name, self._taken_names(request.root, parent))
        names.check_agent_name(name)
        holder = self._name_holder(request.root, name, parent)
        if holder is not None and (earlier is None or holder.id != earlier.id):
            if holder not in self._unused():
                raise self._name_taken_error(name, request.root, parent)
            self._remove([holder])
        return name

    def _parent(self, request: Registration) -> Agent | None:
        """Return the parent that a registration names, ``None`` if it names none.

        The parent's key proves it, or the client's session that a sub-agent runs in. Raises
        Refused.
        """
        if not request.parent and not request.key:
            return None
        if request.key:
            return self.by_key(request.key)
        parent = self.by_session(request.client, request.session) if request.child else None
        if parent is None or request.parent != parent.name:
            raise key_refused()
        return parent

    def _find_earlier(self, request: Registration, parent: Agent | None) -> Agent | None:
        """Return the agent that a request registers again, ``None`` for a new agent.

        This is the last active agent of the same session with the name of the request, or with any
        name if the request has none. Raises Refused if all agents with the name have ended.
        """
        if not request.session:
            return self._earlier_by_name(request, parent)
        parent_id = parent.id if parent else 0
        session = (request.root, request.client, request.session, request.child, parent_id)
        same_name = [
            agent
            for agent in self._agents.values()
            if (agent.root, agent.client, agent.session, agent.child, agent.parent) == session
            and request.name in ("", agent.name)
        ]
        active = [agent for agent in same_name if agent.ended is None]
        if same_name and not active:
            raise agent_ended(request.name or same_name[0].name)
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
        place = (root, name, parent.id if parent else 0)
        return next((a for a in self._active() if (a.root, a.name, a.parent) == place), None)

    def _taken_names(self, root: str, parent: Agent | None) -> set[str]:
        """Return the names that agents of a project have, or those below a parent in it."""
        place = (root, parent.id if parent else 0)
        return {agent.name for agent in self._active() if (agent.root, agent.parent) == place}

    def _name_taken_error(self, name: str, root: str, parent: Agent | None) -> Conflict:
        """Return the error that a name is taken, with a free name like it."""
        return agent_name_taken(name, names.free_name(name, self._taken_names(root, parent)))

    def _check_children(self, parent: Agent) -> None:
        """Raise TooLarge if a parent has ``CHILDREN`` agents; an unused one goes."""
        if len(self.children(parent.id)) < CHILDREN:
            return
        unused = [agent for agent in self._unused() if agent.parent == parent.id]
        if not unused:
            raise too_many_agents(CHILDREN, parent.name)
        self._remove(unused[:1])

    def _make_room(self) -> list[int]:
        """End the agent that was silent for longest where there are ``AGENTS``; return the ids.

        Of those that have ended, the newest ``AGENTS`` are kept.
        """
        active = list(self._active())
        silence = partial(self._seconds_since, self._last_calls)
        ids = self.end(max(active, key=silence).id) if len(active) >= AGENTS else []
        ended = [agent for agent in self._agents.values() if agent.ended is not None]
        self._remove(sorted(ended, key=lambda agent: agent.ended or 0.0)[:-AGENTS])
        return ids

    def _process_start(self, pid: int, caller: int) -> float:
        """Return when a process started, in seconds since the system's start, 0 for no process.

        Raises Invalid unless it is this user's and above, below or equal to the caller.
        """
        if not pid:
            return 0.0
        process = self.find(pid)
        # A caller of 0 is trusted.
        is_strange = bool(caller) and processes.are_strangers(self.find, pid, caller)
        if process is None or process.uid != os.getuid() or is_strange:
            raise Invalid(f"no process of yours has the number {pid}", pid=pid)
        return process.began
