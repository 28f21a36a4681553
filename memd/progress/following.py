"""Find the sub-agents that are active, and read the new tool calls in their transcripts.

Rules of this file
- A sub-agent counts if its parent has not ended and it is not gone or ended itself.
- Its transcript is the one it was registered with, or the file of its id beside its session's.
- A transcript that cannot be read counts as unchanged, and is tried again the next time.
Blocks: call it from a worker thread. ``make_lock`` returns a lock between threads.
"""

import re
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from memd.base.agents import Agent, AgentState
from memd.base.errors import Refused
from memd.conversation.pieces import RecordedCall
from memd.progress import table
from memd.progress.fork import CALLS
from memd.transcripts.reading import recent_calls

_ID = r"[A-Za-z0-9_-]{1,128}"
_SUFFIX = ".jsonl"
_NOT_RUNNING = (AgentState.GONE, AgentState.ENDED)


class AgentSource(Protocol):
    """The methods of the agents' register that this room needs. They block."""

    def agents(self, root: str | None, /) -> Sequence[Agent]:
        """Return the agents of the project at a root, or of all projects for ``None``."""
        ...

    def get(self, agent_id: int, /) -> Agent | None:
        """Return an agent by its id, or ``None``."""
        ...

    def state(self, agent: Agent, /) -> AgentState:
        """Return whether an agent is active, gone or ended."""
        ...

    def address(self, agent: Agent, root: str, /) -> str:
        """Return an agent's address as an agent of the project ``root`` writes it."""
        ...


class ActiveAgent(Struct, frozen=True):
    """A sub-agent whose transcript grew: its last calls, and a line made from the last one.

    ``sessions`` are the ids under which a client may have sent its own request, the most specific
    first; ``coordinator`` is the parent's address.
    """

    agent: Agent
    address: str
    coordinator: str
    sessions: tuple[str, ...]
    calls: tuple[RecordedCall, ...]
    line: str


class _ReadPosition(Struct, frozen=True):
    """The offset up to which a transcript was read, and its last calls."""

    path: str
    offset: int = 0
    calls: tuple[RecordedCall, ...] = ()


class Following:
    """Reads the transcripts of sub-agents, each from where it was last read."""

    def __init__(
        self, source: AgentSource, make_lock: Callable[[], AbstractContextManager[object]]
    ) -> None:
        self._source = source
        self._lock = make_lock()  # guards the positions
        # The positions of ``grown`` and of ``line``, by agent. They are separate, so that a call of
        # ``line`` does not hide growth from ``grown``.
        self._grown_positions: dict[int, _ReadPosition] = {}
        self._line_positions: dict[int, _ReadPosition] = {}

    def grown(self) -> tuple[ActiveAgent, ...]:
        """Return the active sub-agents whose transcripts grew since the last call."""
        agents = {agent.id: agent for agent in self._source.agents(None)}
        result = []
        with self._lock:
            self._forget_removed(agents)
            for agent in agents.values():
                parent = agents.get(agent.parent)
                path = transcript(agent, parent) if parent and parent.ended is None else ""
                if not path or self._source.state(agent) in _NOT_RUNNING:
                    continue
                before = self._grown_positions.get(agent.id, _ReadPosition(path))
                after = self._grown_positions[agent.id] = _read_further(before, path)
                if after.offset != before.offset and after.calls:
                    result.append(self._make_active(agent, parent or agent, after.calls))
        return tuple(result)

    def line(self, agent_id: int) -> str:
        """Return a line about the last tool call of a sub-agent, "" if no call is known."""
        agent = self._source.get(agent_id)
        parent = self._source.get(agent.parent) if agent and agent.parent else None
        path = transcript(agent, parent) if agent and parent else ""
        if not path:
            return ""
        with self._lock:
            before = self._line_positions.get(agent_id) or self._grown_positions.get(agent_id)
            position = before or _ReadPosition(path)
            after = self._line_positions[agent_id] = _read_further(position, path)
        return table.line_of(after.calls[-1]) if after.calls else ""

    def _make_active(
        self, agent: Agent, parent: Agent, calls: tuple[RecordedCall, ...]
    ) -> ActiveAgent:
        """Return a sub-agent with its last calls, its addresses and its sessions."""
        sessions = dict.fromkeys((agent.child, agent.session, parent.session))
        return ActiveAgent(
            agent,
            self._source.address(agent, agent.root),
            self._source.address(parent, agent.root),
            tuple(filter(None, sessions)),
            calls,
            table.line_of(calls[-1]),
        )

    def _forget_removed(self, agents: Collection[int]) -> None:
        """Delete the positions of agents that are not among the registered ones."""
        for positions in (self._grown_positions, self._line_positions):
            for removed in positions.keys() - set(agents):
                del positions[removed]


def transcript(agent: Agent, parent: Agent | None) -> str:
    """Return the path of a sub-agent's transcript, "" if none is known.

    Some clients register a sub-agent with its own transcript, others with that of its session; then
    it is the file of its id in the folder of the session.
    """
    folder, name, _ = agent.transcript.rpartition("/")
    own_name = f"agent-{agent.child}{_SUFFIX}"
    if not agent.child or (folder and name == own_name):
        return agent.transcript
    session = agent.transcript or (parent.transcript if parent else "")
    if not session.endswith(_SUFFIX) or not re.fullmatch(_ID, agent.child):
        return ""
    return f"{session.removesuffix(_SUFFIX)}/subagents/{own_name}"


def _read_further(position: _ReadPosition, path: str) -> _ReadPosition:
    """Read a transcript from a position on; return the new position with the last eight calls.

    The position stays as it is if the transcript cannot be read.
    """
    if position.path != path:  # the session was resumed in another file
        position = _ReadPosition(path)
    try:
        recent = recent_calls(path, position.offset)
    except Refused:
        return position
    calls = (*position.calls, *recent.calls)[-CALLS:]
    return replace(position, offset=recent.offset, calls=calls)
