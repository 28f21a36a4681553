"""Run the tools for messages: list agents, send a message, and read new ones.

Rules of this file
- The bridge acts for the agent whose process started it. Where there is none it registers one, with
  the process that started the bridge, and acts for that agent from then on.
- The model gets texts of other agents only as the daemon quotes them, in the text and in the data;
  all other members are facts of memd's own.
- A message is acknowledged after the answer with it was written. Until then it is delivered again.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from memd.base.errors import MemdError
from memd.base.text import one_line
from memd.mcp.tools import Answer, Ask, Tool
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
    """Runs the tools for messages; ``ask`` calls the daemon. Used by one thread."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        # The parameters that name the agent for which the bridge acts: the parent process, or the
        # key of the agent that it has registered.
        self._acting_agent: dict[str, Any] = {"as_parent": True}
        self._unwritten_ids: list[str] = []  # of messages in an answer that is not written yet
        self.tools: Mapping[str, Tool] = {
            "list_agents": self._list_agents,
            "send_message": self._send,
            "read_messages": self._read,
        }

    def forget_unwritten(self) -> None:
        """Forget the messages of an answer that was not written; the daemon delivers them again."""
        self._unwritten_ids = []

    def acknowledge_written(self) -> None:
        """Acknowledge the messages of the last answer, after it was written to the client."""
        ids, self._unwritten_ids = self._unwritten_ids, []
        if ids:
            with suppress(MemdError):  # the messages come again then
                self._ask("message.ack", ids=ids, **self._acting_agent)

    def _list_agents(self, ask: Ask, arguments: Mapping[str, Any]) -> Answer:
        """Return the agents of this project, or of all projects, as lines and as data."""
        scope = {"all": True} if arguments.get("everywhere") else {}
        agents = [_line(agent, _AGENT_MEMBERS) for agent in ask("agent.list", **scope)["agents"]]
        lines = []
        for agent in agents:
            facts = [agent[name] for name in _AGENT_MEMBERS[1:] if agent[name]]
            lines.append(f"{agent['address']}: {', '.join(facts)}")
        return "\n".join(lines) or _NO_AGENTS, {"agents": agents}

    def _send(self, _ask: Ask, arguments: Mapping[str, Any]) -> Answer:
        """Send a message; return its state and that of each recipient, as lines and as data."""
        params = {name: value for name, value in arguments.items() if name != "message"}
        result = self._ask_as_agent("message.send", body=arguments["message"], **params)
        receivers = [_line(row, ("address", "state", "reason")) for row in result["recipients"]]
        lines = []
        for receiver in receivers:
            reason = f" ({receiver['reason']})" if receiver["reason"] else ""
            lines.append(f"{receiver['address']}: {receiver['state']}{reason}")
        state = result["state"]
        words = f"{result['id']} is {state}. {_WORDS_BY_STATE.get(state, '')}".rstrip()
        data = {"id": result["id"], "state": state, "recipients": receivers}
        return "\n".join((words, *lines)), data

    def _read(self, _ask: Ask, arguments: Mapping[str, Any]) -> Answer:
        """Return the new messages as a quoted block and as data."""
        received = self._ask_as_agent("message.receive", **arguments)
        self._unwritten_ids = [message["id"] for message in received["messages"]]
        messages = [{name: message[name] for name in _FACTS} for message in received["messages"]]
        for message in messages:
            message["from"] = neutralise(one_line(message["from"], _LINE_CHARACTERS))
        block, has_more = received["block"], bool(received["more"])
        words = (block or _NO_MESSAGES) + (_MORE_WAIT if has_more else "")
        return words, {"block": block, "messages": messages, "more": has_more}

    def _ask_as_agent(self, method: str, **params: Any) -> Any:
        """Call a method as this agent; register the agent first if the daemon knows none."""
        try:
            return self._ask(method, **params, **self._acting_agent)
        except MemdError as error:
            if error.kind not in _NO_AGENT_KINDS:
                raise
        registered = self._ask("agent.register", kind="mcp", pid=os.getppid())
        self._acting_agent = {"key": registered["key"]}
        return self._ask(method, **params, **self._acting_agent)


def _line(row: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, str]:
    """Return some members of a row, each as one short line without tags."""
    return {name: neutralise(one_line(row[name], _LINE_CHARACTERS)) for name in names}
