"""What agents need of the daemon, put together: so far, lines of progress."""

import threading
from collections.abc import Sequence

from memd.core.agents import Agent, AgentState
from memd.core.clock import Clock
from memd.core.events import AGENT_PROGRESS
from memd.model.configured import Models
from memd.progress.service import AgentSource, ProgressLines
from memd.projects.configuration import Configuration
from memd.rpc.server import Hub


class NoAgents:
    """A register in which nobody is."""

    def agents(self, _root: str | None, /) -> Sequence[Agent]:
        """Return none."""
        return ()

    def get(self, _agent_id: int, /) -> Agent | None:
        """Return none."""
        return None

    def state(self, _agent: Agent, /) -> AgentState:
        """Return that it is gone."""
        return AgentState.GONE

    def address(self, agent: Agent, _root: str, /) -> str:
        """Return its name."""
        return agent.name


def progress_lines(
    source: AgentSource, clock: Clock, models: Models, hub: Hub, configuration: Configuration
) -> ProgressLines:
    """Return what tells subscribers how sub-agents get on."""
    return ProgressLines(
        source,
        clock,
        models,
        hub,
        listening=lambda: hub.listening(AGENT_PROGRESS),
        settings=lambda root: configuration.current(root)[0],
        make_lock=threading.Lock,
    )
