"""Which sub-agents are at work, and what their transcripts added since they were last read.

Rules of this file
- A sub-agent is an agent with a parent that has not ended, and is there itself.
- Its transcript is the one it was registered with, or the file of its id beside its session's.
- One that cannot be read says nothing, and is tried again the next time.
Blocks: call it from a worker thread. ``make_lock`` gives what keeps two threads apart.
"""

import re
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Protocol

from memd.conversation.pieces import RecordedCall
from memd.core.agents import Agent, AgentState
from memd.progress import table
from memd.progress.fork import CALLS
from memd.transcripts.reading import TranscriptRefusedError, recent_calls

_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
_SUFFIX = ".jsonl"
_AWAY = (AgentState.GONE, AgentState.ENDED)


class AgentSource(Protocol):
    """Who is there: what this room needs of the register. Its methods block."""

    def agents(self, root: str | None, /) -> Sequence[Agent]:
        """Return the agents of a project, of all with ``None``."""
        ...

    def get(self, agent_id: int, /) -> Agent | None:
        """Return an agent by its id."""
        ...

    def state(self, agent: Agent, /) -> AgentState:
        """Return whether an agent is there."""
        ...

    def address(self, agent: Agent, root: str, /) -> str:
        """Return an agent's address as seen from a project."""
        ...


@dataclass(frozen=True, slots=True)
class ActiveAgent:
    """A sub-agent whose transcript grew: its last calls, and the line of the table.

    ``sessions`` are the names under which a client may have given its own request, the nearest
    first; ``coordinator`` is the parent's address.
    """

    agent: Agent
    address: str
    coordinator: str
    sessions: tuple[str, ...]
    calls: tuple[RecordedCall, ...]
    line: str


@dataclass(frozen=True, slots=True)
class _Place:
    """How far a transcript was read, and the last calls of it."""

    path: str
    offset: int = 0
    calls: tuple[RecordedCall, ...] = ()


class Following:
    """The transcripts of sub-agents, as they grow."""

    def __init__(
        self, source: AgentSource, make_lock: Callable[[], AbstractContextManager[object]]
    ) -> None:
        self._source = source
        self._lock = make_lock()
        self._reported: dict[int, _Place] = {}  # what ``grown`` has answered
        self._read: dict[int, _Place] = {}  # what ``line`` has read

    def grown(self) -> tuple[ActiveAgent, ...]:
        """Return the sub-agents that are there and whose transcripts grew since the last time."""
        everyone = {agent.id: agent for agent in self._source.agents(None)}
        result = []
        with self._lock:
            self._forget(everyone)
            for agent in everyone.values():
                parent = everyone.get(agent.parent)
                path = transcript(agent, parent) if parent and parent.ended is None else ""
                if not path or self._source.state(agent) in _AWAY:
                    continue
                before = self._reported.get(agent.id, _Place(path))
                place = self._reported[agent.id] = _further(before, path)
                if place.offset != before.offset and place.calls:
                    result.append(self._active(agent, parent or agent, place.calls))
        return tuple(result)

    def line(self, agent_id: int) -> str:
        """Return the table's line of what a sub-agent did last, "" where nothing is known."""
        agent = self._source.get(agent_id)
        parent = self._source.get(agent.parent) if agent and agent.parent else None
        path = transcript(agent, parent) if agent and parent else ""
        if not path:
            return ""
        with self._lock:
            before = self._read.get(agent_id) or self._reported.get(agent_id) or _Place(path)
            place = self._read[agent_id] = _further(before, path)
        return table.line_of(place.calls[-1]) if place.calls else ""

    def _active(self, agent: Agent, parent: Agent, calls: tuple[RecordedCall, ...]) -> ActiveAgent:
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
        for places in (self._reported, self._read):
            for gone in places.keys() - set(everyone):
                del places[gone]


def transcript(agent: Agent, parent: Agent | None) -> str:
    """Return the path of a sub-agent's transcript, "" where none is known."""
    folder, name, _ = agent.transcript.rpartition("/")
    own = f"agent-{agent.child}{_SUFFIX}"
    if not agent.child or (folder and name == own):
        return agent.transcript
    session = agent.transcript or (parent.transcript if parent else "")
    if not session.endswith(_SUFFIX) or not _ID.fullmatch(agent.child):
        return ""
    return f"{session.removesuffix(_SUFFIX)}/subagents/{own}"


def _further(place: _Place, path: str) -> _Place:
    """Return a place after what was added to the transcript was read."""
    if place.path != path:  # the session was resumed in another file
        place = _Place(path)
    try:
        recent = recent_calls(path, place.offset)
    except TranscriptRefusedError:
        return place
    return replace(place, offset=recent.offset, calls=(*place.calls, *recent.calls)[-CALLS:])
