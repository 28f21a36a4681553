"""agent …: list agents, and register and end one's own."""

from collections.abc import Mapping
from typing import Any

from memd.cli import output
from memd.cli.invocation import CommandLineError, Invocation
from memd.core.errors import MemdError
from memd.core.events import AGENT_CHANGED, AGENT_PROGRESS
from memd.core.text import one_line

KEY_VARIABLE = "MEMD_AGENT_KEY"
_WHOSE = "whose? An agent's key is needed"
_GIVE_KEY = f"give --key, or put the agent's key into {KEY_VARIABLE}"
_LINE = 120  # characters of an agent's text in a list
_DAY_SECONDS = 24 * 60 * 60.0
_STYLES = {"live": "green", "idle": "yellow"}


class AgentUnknownError(MemdError):
    """No agent has the address that the command line says."""

    hint = "memctl agent list shows who is there"

    def __init__(self, address: str) -> None:
        super().__init__(f"no agent has the address {address}", address=address)


def key(invocation: Invocation) -> str:
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
        what = facts.get("line") or facts.get("change")
        if isinstance(what, str) and isinstance(facts.get("address"), str):
            shown = f"{_one_line(facts['address'])}  {_one_line(what)}"
            invocation.screen.answer(facts, shown)


def show(invocation: Invocation) -> None:
    """Print everything about one agent. Raises AgentUnknownError."""
    address = invocation.options.address
    for agent in invocation.request()["agents"]:
        if agent["address"] == address:
            readable = {"since": output.ago(agent["since"]), "unread": agent["unread"] or "none"}
            facts = ((name, _one_line(str(value))) for name, value in {**agent, **readable}.items())
            invocation.screen.answer(agent, output.facts(facts))
            return
    raise AgentUnknownError(address)


def register(invocation: Invocation) -> None:
    """Register an agent and print its key."""
    parent = key(invocation) if invocation.options.parent else None
    done = invocation.request(key=parent)
    pairs = [("agent", done["agent"]), ("address", done["address"]), ("key", done["key"])]
    invocation.screen.answer(done, output.facts(pairs))
    invocation.screen.note(f"for this shell: export {KEY_VARIABLE}={done['key']}")


def end(invocation: Invocation) -> None:
    """End the agent of the given key. Raises CommandLineError without one."""
    agent_key = key(invocation)
    if not agent_key:
        raise CommandLineError(_WHOSE, hint=_GIVE_KEY)
    done = invocation.request(cwd=None, key=agent_key)
    returned = f"; {done['returned']} unread went back" if done["returned"] else ""
    invocation.screen.answer(done, f"ended{returned}")


def _print_agents(invocation: Invocation, answer: Mapping[str, Any]) -> None:
    """Print the agents, one a line, or a note that there are none."""
    screen = invocation.screen
    if not answer["agents"]:
        screen.note("no agent is registered")
    rows = [
        (
            screen.paint(_one_line(each["address"]), "bold"),
            screen.paint(each["state"], _STYLES.get(each["state"], "dim")),
            _one_line(" ".join(filter(None, (each["client"], each["kind"])))),
            f"{each['unread']} unread" if each["unread"] else "",
            _one_line(each["progress"]),
        )
        for each in answer["agents"]
    ]
    screen.answer(answer, output.table(rows, screen.width))


def _one_line(text: str) -> str:
    """Return an agent's text on one line of at most 120 characters."""
    return one_line(text, _LINE)
