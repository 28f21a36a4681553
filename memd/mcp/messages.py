"""The tools for messages: who is there, sending, and reading what came in.

Rules of this file
- The bridge speaks for the agent in whose process it runs. Where there is none it registers
  itself, with the process that started it, and speaks for that agent from then on.
- What other agents wrote is for the model as the daemon quotes it, in the text and in the data;
  beside it stand facts of memd's alone.
- A message is acknowledged after the answer that brought it was written. Until then it comes again.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from memd.client.errors import RemoteError
from memd.core.errors import MemdError
from memd.core.text import one_line
from memd.mcp.tools import Answer, Ask, Tool
from memd.text.quoting import neutralise

_LINE = 120
_NOBODY = ("key_refused", "agent_ended")
_ALONE = "No agent is registered here."
_NOTHING = "No message waits."
_MORE = "\n\nMore wait: call read_messages again."
# What is memd's own of a message; what the sender wrote stands in the quotation alone.
_FACTS = ("id", "from", "kind", "sent_at", "reply_to", "request", "approve", "delivery")
_SHOWN = ("address", "client", "kind", "state", "progress")
_SENT = {
    "queued": "It waits in the mailbox until the agent's next turn.",
    "held": "The person has to let it through first.",
    "refused": "Nobody gets it.",
}


class MessageTools:
    """The tools; ``ask`` asks the daemon. One thread uses it."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._speaker: dict[str, Any] = {"as_parent": True}
        self._unwritten: list[str] = []
        self.tools: Mapping[str, Tool] = {
            "list_agents": self._agents,
            "send_message": self._send,
            "read_messages": self._read,
        }

    def begin(self) -> None:
        """Forget what an answer brought that was not written: it comes again."""
        self._unwritten = []

    def written(self) -> None:
        """Acknowledge what the last answer brought, for the client has it now."""
        ids, self._unwritten = self._unwritten, []
        if ids:
            with suppress(MemdError):  # then it comes again
                self._ask("message.ack", ids=ids, **self._speaker)

    def _agents(self, ask: Ask, given: Mapping[str, Any]) -> Answer:
        scope = {"all": True} if given.get("everywhere") else {}
        agents = [_line(each, _SHOWN) for each in ask("agent.list", **scope)["agents"]]
        lines = [
            f"{each['address']}: {', '.join(filter(None, (each[name] for name in _SHOWN[1:])))}"
            for each in agents
        ]
        return "\n".join(lines) or _ALONE, {"agents": agents}

    def _send(self, _ask: Ask, given: Mapping[str, Any]) -> Answer:
        params = {name: value for name, value in given.items() if name != "message"}
        sent = self._spoken("message.send", body=given["message"], **params)
        receivers = [_line(each, ("address", "state", "reason")) for each in sent["recipients"]]
        lines = [
            f"{each['address']}: {each['state']}"
            + (f" ({each['reason']})" if each["reason"] else "")
            for each in receivers
        ]
        words = f"{sent['id']} is {sent['state']}. {_SENT.get(sent['state'], '')}".rstrip()
        data = {"id": sent["id"], "state": sent["state"], "recipients": receivers}
        return "\n".join((words, *lines)), data

    def _read(self, _ask: Ask, given: Mapping[str, Any]) -> Answer:
        received = self._spoken("message.receive", **given)
        self._unwritten = [each["id"] for each in received["messages"]]
        facts = [{name: each[name] for name in _FACTS} for each in received["messages"]]
        for each in facts:
            each["from"] = neutralise(one_line(each["from"], _LINE))
        block, more = received["block"], bool(received["more"])
        words = (block or _NOTHING) + (_MORE if more else "")
        return words, {"block": block, "messages": facts, "more": more}

    def _spoken(self, method: str, **params: Any) -> Any:
        """Ask in the agent's name; where there is no agent, register one and ask again."""
        try:
            return self._ask(method, **params, **self._speaker)
        except RemoteError as error:
            if error.kind not in _NOBODY:
                raise
        registered = self._ask("agent.register", kind="mcp", pid=os.getppid())
        self._speaker = {"key": registered["key"]}
        return self._ask(method, **params, **self._speaker)


def _line(row: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, str]:
    return {name: neutralise(one_line(row[name], _LINE)) for name in names}
