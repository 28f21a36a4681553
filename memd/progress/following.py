"""Which sub-agents are at work, and what their transcripts added since they were last read.

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

from memd.conversation.pieces import RecordedCall
from memd.core.agents import Agent, AgentState
from memd.progress import table
from memd.progress.fork import CALLS
from memd.transcripts.reading import TranscriptRefusedError, recent_calls

_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
_SUFFIX = ".jsonl"
_AWAY = (AgentState.GONE, AgentState.ENDED)


class AgentSource(Protocol):
    """The methods of the agents' register that this room needs. They block."""

    def agents(self, root: str | None, /) -> Sequence[Agent]:
        """Return the agents of a project's root, of all projects with ``None``."""
        ...

    def get(self, agent_id: int, /) -> Agent | None:
        """Return an agent by its id, or ``None``."""
        ...

    def state(self, agent: Agent, /) -> AgentState:
        """Return whether an agent is active, gone or ended."""
        ...

    def address(self, agent: Agent, root: str, /) -> str:
        """Return an agent's address as seen from a project."""
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
    """Reads the transcripts of sub-agents as they grow."""

    def __init__(
        self, source: AgentSource, make_lock: Callable[[], AbstractContextManager[object]]
    ) -> None:
        self._source = source
        self._lock = make_lock()
        self._reported: dict[int, _ReadPosition] = {}  # by agent, as returned by ``grown``
        self._read: dict[int, _ReadPosition] = {}  # by agent, as read by ``line``

    def grown(self) -> tuple[ActiveAgent, ...]:
        """Return the active sub-agents whose transcripts grew since the last call."""
        everyone = {agent.id: agent for agent in self._source.agents(None)}
        result = []
        with self._lock:
            self._forget(everyone)
            for agent in everyone.values():
                parent = everyone.get(agent.parent)
                path = transcript(agent, parent) if parent and parent.ended is None else ""
                if not path or self._source.state(agent) in _AWAY:
                    continue
                before = self._reported.get(agent.id, _ReadPosition(path))
                place = self._reported[agent.id] = _read_on(before, path)
                if place.offset != before.offset and place.calls:
                    result.append(self._active(agent, parent or agent, place.calls))
        return tuple(result)

    def line(self, agent_id: int) -> str:
        """Return a line about a sub-agent's last tool call, "" if none is known."""
        agent = self._source.get(agent_id)
        parent = self._source.get(agent.parent) if agent and agent.parent else None
        path = transcript(agent, parent) if agent and parent else ""
        if not path:
            return ""
        with self._lock:
            before = self._read.get(agent_id) or self._reported.get(agent_id) or _ReadPosition(path)
            place = self._read[agent_id] = _read_on(before, path)
        return table.line_of(place.calls[-1]) if place.calls else ""

    def _active(self, agent: Agent, parent: Agent, calls: tuple[RecordedCall, ...]) -> ActiveAgent:
        """Return what a subscriber is told about a sub-agent with these last calls."""
        sessions = dict.fromkeys((agent.child, agent.session, parent.session))
        return ActiveAgent(
            agent,
            self._source.address(agent, agent.root),
            self._source.address(parent, agent.root),
            tuple(filter(None, sessions)),
            calls,
            table.line_of(calls[-1]),
        )

    def _forget(self, everyone: Collection[int]) -> None:
        """Drop the positions of agents that the register no longer has."""
        for places in (self._reported, self._read):
            for gone in places.keys() - set(everyone):
                del places[gone]


def transcript(agent: Agent, parent: Agent | None) -> str:
    """Return the path of a sub-agent's transcript, "" if none is known."""
    folder, name, _ = agent.transcript.rpartition("/")
    own_name = f"agent-{agent.child}{_SUFFIX}"
    if not agent.child or (folder and name == own_name):
        return agent.transcript
    session = agent.transcript or (parent.transcript if parent else "")
    if not session.endswith(_SUFFIX) or not _ID.fullmatch(agent.child):
        return ""
    return f"{session.removesuffix(_SUFFIX)}/subagents/{own_name}"


def _read_on(place: _ReadPosition, path: str) -> _ReadPosition:
    """Return the position after reading what was added to the transcript."""
    if place.path != path:  # the session was resumed in another file
        place = _ReadPosition(path)
    try:
        recent = recent_calls(path, place.offset)
    except TranscriptRefusedError:
        return place
    return replace(place, offset=recent.offset, calls=(*place.calls, *recent.calls)[-CALLS:])
