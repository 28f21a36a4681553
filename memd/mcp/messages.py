"""Run the tools for messages: list agents, send a message, and read new ones.

Rules of this file
- The tools act for the agent whose process started the caller's (``memctl mcp``). Where there is
  none an agent is registered, with that process, and they act for it from then on.
- The model gets texts of other agents only as the daemon quotes them, in the text and in the data;
  all other members are facts of memd's own.
- A message is acknowledged after the answer with it was sent. Until then it is delivered again.
"""

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
from anyio import to_thread

from memd.base.agents import FindProcess
from memd.base.errors import MemdError
from memd.base.text import one_line
from memd.mcp.protocol import MethodCaller
from memd.mcp.tools import Answer, Tool
from memd.text.quoting import neutralise

_LINE_CHARACTERS = 120
_NO_AGENT_KINDS = ("key_refused", "agent_ended")
_NO_AGENTS = "No agent is registered here."
_NO_MESSAGES = "No message waits."
_MORE_WAIT = "\n\nMore wait: call read_messages again."
# The members of a message that memd wrote; the sender's text is in the quotation alone.
_FACTS = ("id", "from", "kind", "sent_at", "reply_to", "request", "approve", "delivery")
_AGENT_MEMBERS = ("address", "client", "kind", "state", "progress")
_WORDS_BY_STATE = {
    "queued": "It waits in the mailbox until the agent's next turn.",
    "held": "The person has to let it through first.",
    "refused": "Nobody gets it.",
}


class MessageTools:
    """Runs the tools for messages of one client; ``find`` describes a process."""

    def __init__(self, find: FindProcess) -> None:
        self._find = find
        # The parameters that name the agent for which the tools act: the parent of the caller's
        # process, or the key of the agent that was registered for it.
        self._acting_agent: dict[str, Any] = {"as_parent": True}
        self._registering = anyio.Lock()  # so that only one agent is registered
        self.tools: Mapping[str, Tool] = {
            "list_agents": self._list_agents,
            "send_message": self._send,
            "read_messages": self._read,
        }

    async def _list_agents(self, ask: MethodCaller, arguments: Mapping[str, Any]) -> Answer:
        """Return the agents of this project, or of all projects, as lines and as data."""
        scope = {"all": True} if arguments.get("everywhere") else {}
        listed = await ask("agent.list", **scope)
        agents = [_line(agent, _AGENT_MEMBERS) for agent in listed["agents"]]
        lines = []
        for agent in agents:
            facts = [agent[name] for name in _AGENT_MEMBERS[1:] if agent[name]]
            lines.append(f"{agent['address']}: {', '.join(facts)}")
        return "\n".join(lines) or _NO_AGENTS, {"agents": agents}

    async def _send(self, ask: MethodCaller, arguments: Mapping[str, Any]) -> Answer:
        """Send a message; return its state and that of each recipient, as lines and as data."""
        params = {name: value for name, value in arguments.items() if name != "message"}
        result = await self._ask_as_agent(ask, "message.send", body=arguments["message"], **params)
        receivers = [_line(row, ("address", "state", "reason")) for row in result["recipients"]]
        lines = []
        for receiver in receivers:
            reason = f" ({receiver['reason']})" if receiver["reason"] else ""
            lines.append(f"{receiver['address']}: {receiver['state']}{reason}")
        state = result["state"]
        words = f"{result['id']} is {state}. {_WORDS_BY_STATE.get(state, '')}".rstrip()
        data = {"id": result["id"], "state": state, "recipients": receivers}
        return "\n".join((words, *lines)), data

    async def _read(self, ask: MethodCaller, arguments: Mapping[str, Any]) -> Answer:
        """Return the new messages as a quoted block and as data."""
        received = await self._ask_as_agent(ask, "message.receive", **arguments)
        messages = [{name: message[name] for name in _FACTS} for message in received["messages"]]
        for message in messages:
            message["from"] = neutralise(one_line(message["from"], _LINE_CHARACTERS))
        block, has_more = received["block"], bool(received["more"])
        if messages:
            ids = [message["id"] for message in messages]
            ask.call.afterwards.append(partial(self._acknowledge, ask, ids))
        words = (block or _NO_MESSAGES) + (_MORE_WAIT if has_more else "")
        return words, {"block": block, "messages": messages, "more": has_more}

    async def _acknowledge(self, ask: MethodCaller, ids: list[str]) -> None:
        """Acknowledge the messages of an answer that was sent."""
        if ask.call.connection.is_open:
            with suppress(MemdError):  # the messages come again then
                await ask("message.ack", ids=ids, **self._acting_agent)

    async def _ask_as_agent(self, ask: MethodCaller, method: str, **params: Any) -> Any:
        """Call a method as this agent; register the agent first if the daemon knows none."""
        tried = self._acting_agent
        try:
            return await ask(method, **params, **tried)
        except MemdError as error:
            if error.kind not in _NO_AGENT_KINDS:
                raise
        async with self._registering:
            if self._acting_agent is tried:
                caller = await to_thread.run_sync(self._find, ask.call.caller.pid)
                pid = caller.parent if caller else 0
                registered = await ask("agent.register", kind="mcp", pid=pid)
                self._acting_agent = {"key": registered["key"]}
        return await ask(method, **params, **self._acting_agent)


def _line(row: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, str]:
    """Return some members of a row, each as one short line without tags."""
    return {name: neutralise(one_line(row[name], _LINE_CHARACTERS)) for name in names}
