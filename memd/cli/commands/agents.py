"""agent …: list agents, and register and end one's own."""

from collections.abc import Mapping
from typing import Any

from memd.base.errors import Invalid
from memd.base.events import AGENT_CHANGED, AGENT_PROGRESS
from memd.base.text import one_line
from memd.cli import output
from memd.cli.invocation import Invocation

KEY_VARIABLE = "MEMD_AGENT_KEY"
_NO_KEY = "whose? An agent's key is needed"
_KEY_HINT = f"give --key, or put the agent's key into {KEY_VARIABLE}"
_LINE_CHARACTERS = 120  # characters of an agent's text in a list
_DAY_SECONDS = 24 * 60 * 60.0
_STYLES = {"live": "green", "idle": "yellow"}


def agent_key(invocation: Invocation) -> str:
    """Return the agent's key from ``--key`` or the environment, or "" without one."""
    return invocation.options.key or invocation.environ.get(KEY_VARIABLE, "")


def list_(invocation: Invocation) -> None:
    """Print the agents, and with ``--watch`` each later change of one."""
    if not invocation.options.watch:
        _print_agents(invocation, invocation.request())
        return
    # Subscribe before listing, so that no change between the two is missed.
    invocation.ask("subscribe", topics=[AGENT_CHANGED, AGENT_PROGRESS])
    _print_agents(invocation, invocation.request())
    for event in invocation.client().notifications(invocation.options.timeout or _DAY_SECONDS):
        facts = event.params
        address, news = facts.get("address"), facts.get("line") or facts.get("change")
        if isinstance(address, str) and isinstance(news, str):
            invocation.screen.answer(facts, f"{_one_line(address)}  {_one_line(news)}")


def register(invocation: Invocation) -> None:
    """Register an agent and print its key."""
    parent_key = agent_key(invocation) if invocation.options.parent else None
    result = invocation.request(key=parent_key)
    pairs = [("agent", result["agent"]), ("address", result["address"]), ("key", result["key"])]
    invocation.screen.answer(result, output.facts(pairs))
    invocation.screen.note(f"for this shell: export {KEY_VARIABLE}={result['key']}")


def end(invocation: Invocation) -> None:
    """End the agent of the given key. Raises Invalid without one."""
    own_key = agent_key(invocation)
    if not own_key:
        raise Invalid(_NO_KEY, hint=_KEY_HINT)
    result = invocation.request(cwd=None, key=own_key)
    returned = f"; {result['returned']} unread went back" if result["returned"] else ""
    invocation.screen.answer(result, f"ended{returned}")


def _print_agents(invocation: Invocation, answer: Mapping[str, Any]) -> None:
    """Print the agents, one a line, or a note that there are none."""
    screen = invocation.screen
    if not answer["agents"]:
        screen.note("no agent is registered")
    rows = [
        (
            screen.paint(_one_line(agent["address"]), "bold"),
            screen.paint(agent["state"], _STYLES.get(agent["state"], "dim")),
            _one_line(" ".join(filter(None, (agent["client"], agent["kind"])))),
            f"{agent['unread']} unread" if agent["unread"] else "",
            _one_line(agent["progress"]),
        )
        for agent in answer["agents"]
    ]
    screen.answer(answer, output.table(rows, screen.width))


def _one_line(text: str) -> str:
    """Return an agent's text on one line of at most 120 characters."""
    return one_line(text, _LINE_CHARACTERS)
