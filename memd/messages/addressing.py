"""Which agent an address means, and how an agent's address is written. Pure.

Rules of this file
- Who lost its name has no address: what is shown in its place is one that nobody can write to, so
  no answer goes to the one that has the name now.
"""

from collections.abc import Mapping

from memd.core.agents import Agent
from memd.messages.names import AgentAddress
from memd.projects.project import slug


def address(agents: Mapping[int, Agent], agent: Agent, root: str) -> str:
    """Return an agent's address as somebody of a project writes it."""
    parent = agents.get(agent.parent)
    name = f"{_name(parent)}/{_name(agent)}" if parent else _name(agent)
    return name if agent.root == root else f"{name}@{slug(agent.root)}"


def meant(agents: Mapping[int, Agent], wanted: AgentAddress, root: str) -> list[Agent]:
    """Return the agents of an address, as somebody of a project writes it, ended ones too."""
    return [
        agent
        for agent in (*agents.values(),)
        if (agent.name, _parent_name(agents, agent)) == (wanted.name, wanted.parent)
        and (slug(agent.root) == wanted.slug if wanted.slug else agent.root == root)
        and "#" not in address(agents, agent, agent.root)
    ]


def _parent_name(agents: Mapping[int, Agent], agent: Agent) -> str:
    parent = agents.get(agent.parent)
    return parent.name if parent else ""


def _name(agent: Agent) -> str:
    return f"{agent.name}#{agent.id}" if agent.displaced else agent.name
