"""Write the address of an agent, and find the agents that an address names. Pure.

An address is NAME, PARENT/NAME for a sub-agent, and NAME@PROJECT for an agent of another project.
PROJECT is the project's whole path as ``slug`` writes it. The name of its folder alone is
understood as well, unless a project has that as its path.
"""

from collections.abc import Mapping

from memd.core.agents import Agent
from memd.messages.names import AgentAddress
from memd.projects.project import slug


def address(agents: Mapping[int, Agent], agent: Agent, root: str) -> str:
    """Return the address of an agent as an agent of the project ``root`` writes it."""
    parent = agents.get(agent.parent)
    name = f"{parent.name}/{agent.name}" if parent else agent.name
    return name if agent.root == root else f"{name}@{slug(agent.root)}"


def matching(agents: Mapping[int, Agent], wanted: AgentAddress, root: str) -> list[Agent]:
    """Return the agents that an address names, ended ones too.

    An address without a project names agents of the sender's project ``root``.
    """
    named = [
        agent
        for agent in (*agents.values(),)  # a snapshot: other threads add agents
        if (agent.name, _parent_name(agents, agent)) == (wanted.name, wanted.parent)
    ]
    if not wanted.slug:
        return [agent for agent in named if agent.root == root]
    by_path = [agent for agent in named if slug(agent.root) == wanted.slug]
    folder = slug(wanted.slug)
    return by_path or [a for a in named if slug(a.root.rpartition("/")[2]) == folder]


def _parent_name(agents: Mapping[int, Agent], agent: Agent) -> str:
    """Return the name of the agent that a sub-agent works for, "" for any other agent."""
    parent = agents.get(agent.parent)
    return parent.name if parent else ""
