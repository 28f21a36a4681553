"""Write the address of an agent, and find the agents that an address names. Pure.

An address is NAME, PARENT/NAME for a sub-agent, and NAME@PROJECT for an agent of another project.

Rules of this file
- An agent that lost its name has no address. It is shown as NAME#ID, which nobody can write to, so
  no answer goes to the agent that has the name now.
"""

from collections.abc import Mapping

from memd.core.agents import Agent
from memd.messages.names import AgentAddress
from memd.projects.project import slug


def address(agents: Mapping[int, Agent], agent: Agent, root: str) -> str:
    """Return the address of an agent as an agent of the project ``root`` writes it."""
    parent = agents.get(agent.parent)
    name = f"{_shown_name(parent)}/{_shown_name(agent)}" if parent else _shown_name(agent)
    return name if agent.root == root else f"{name}@{slug(agent.root)}"


def matching(agents: Mapping[int, Agent], wanted: AgentAddress, root: str) -> list[Agent]:
    """Return the agents that an address names, ended ones too.

    An address without a project names agents of the sender's project ``root``.
    """
    return [
        agent
        for agent in (*agents.values(),)  # a snapshot: other threads add agents
        if (agent.name, _parent_name(agents, agent)) == (wanted.name, wanted.parent)
        and (slug(agent.root) == wanted.slug if wanted.slug else agent.root == root)
        and "#" not in address(agents, agent, agent.root)
    ]


def _parent_name(agents: Mapping[int, Agent], agent: Agent) -> str:
    """Return the name of the agent that a sub-agent works for, "" for any other agent."""
    parent = agents.get(agent.parent)
    return parent.name if parent else ""


def _shown_name(agent: Agent) -> str:
    """Return the name of an agent, with its id added if another agent has taken the name."""
    return f"{agent.name}#{agent.id}" if agent.displaced else agent.name
