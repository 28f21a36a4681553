"""message …: messages between agents.

An agent's text is printed as the daemon quotes it, or on one line behind words of memd's.
"""

import time
from collections.abc import Mapping
from typing import Any

from memd.base.agents import WAIT_SECONDS
from memd.base.errors import Refused
from memd.base.text import one_line
from memd.cli import output
from memd.cli.commands.agents import agent_key
from memd.cli.invocation import ANSWER_SECONDS, Invocation
from memd.text.quoting import neutralise

_LINE_CHARACTERS = 200
_MAX_RECEIVERS = 10  # in the answer to ``send``
_REFUSED = "refused"
_NO_AGENT = "key_refused"  # the kind of the error where no agent started the command


def send(invocation: Invocation) -> int:
    """Send a message; return 1 if every receiver refuses it."""
    options = invocation.options
    body = options.text
    needs_body = not options.summary and options.kind in (None, "text")
    if body == "-" or (body is None and needs_body):
        body = invocation.read("-")
    approve = None  # without either option
    if options.approve or options.decline:
        approve = bool(options.approve)
    result = _send_as(invocation, body=body, approve=approve)
    lines = [f"{result['id']} {result['state']}"]
    lines += [_receiver_line(receiver) for receiver in result["recipients"][:_MAX_RECEIVERS]]
    more_count = len(result["recipients"]) - _MAX_RECEIVERS
    lines += [f"  and {more_count} more"] if more_count > 0 else []
    invocation.screen.answer(result, "\n".join(lines))
    return 1 if result["state"] == _REFUSED else 0


def _send_as(invocation: Invocation, **params: Any) -> dict[str, Any]:
    """Send as the acting agent, or as nobody who is registered where there is none."""
    own_key = agent_key(invocation)
    if own_key:
        sent: dict[str, Any] = invocation.request(key=own_key, **params)
        return sent
    try:
        sent = invocation.request(key=None, as_parent=True, **params)
    except Refused as error:
        if error.kind != _NO_AGENT:
            raise
        sent = invocation.request(key=None, **params)
    return sent


def read(invocation: Invocation) -> int:
    """Print the next messages and acknowledge them; return 1 if none came within ``--wait``."""
    seconds = invocation.options.wait or 0.0
    deadline = time.monotonic() + seconds
    while True:
        # One request may wait WAIT_SECONDS at most, so a longer wait takes several.
        remaining = max(0.0, deadline - time.monotonic())
        received = _receive(invocation, min(remaining, WAIT_SECONDS))
        if received["messages"] or time.monotonic() >= deadline:
            _print_and_ack(invocation, received)
            return 1 if seconds and not received["messages"] else 0


def ack(invocation: Invocation) -> int:
    """Acknowledge messages; return 1 if none of them waited for the agent."""
    result = invocation.request(cwd=None, **_acting_agent(invocation))
    invocation.screen.answer(result, f"{result['acked']} acknowledged")
    if result["acked"] < len(set(invocation.options.id)):
        invocation.screen.note("the others do not wait for this agent, or have ended before")
    return 0 if result["acked"] else 1


def log(invocation: Invocation) -> None:
    """List messages without their bodies, or print the state of one for each receiver."""
    answer = invocation.request()
    if not invocation.options.id:
        _print_messages(invocation, answer)
        return
    (message,) = answer["messages"]
    lines = [f"{message['id']} {message['state']}"]
    lines += [_receiver_line(receiver) for receiver in message["recipients"]]
    invocation.screen.answer(message, "\n".join(lines))


def _acting_agent(invocation: Invocation) -> dict[str, Any]:
    """Return the parameters that name the acting agent: its key, or else the parent process."""
    own_key = agent_key(invocation)
    return {"key": own_key} if own_key else {"key": None, "as_parent": True}


def _receive(invocation: Invocation, seconds: float) -> Mapping[str, Any]:
    """Return the next messages; wait up to ``seconds`` for the first. Raises Refused."""
    if invocation.surroundings.unread:
        raise Refused("standard output is closed; no message is read")
    params = {**_acting_agent(invocation), "wait": seconds or None}
    answer: Mapping[str, Any] = invocation.request(
        seconds=seconds + ANSWER_SECONDS, cwd=None, **params
    )
    return answer


def _print_and_ack(invocation: Invocation, received: Mapping[str, Any]) -> None:
    """Print messages and then acknowledge them, unless ``--leave`` is given."""
    screen = invocation.screen
    if not received["messages"]:
        screen.note("no message waits")
    screen.answer(received, received["block"])
    # If this fails, nothing is acknowledged and the messages come again.
    invocation.surroundings.stdout.flush()
    ids = [each["id"] for each in received["messages"]]
    if ids and not invocation.options.leave:
        invocation.call("message.ack", ids=ids, **_acting_agent(invocation))
    if received["more"]:
        screen.note("more wait: memctl message read")


def _print_messages(invocation: Invocation, answer: Mapping[str, Any]) -> None:
    """Print messages, one a line."""
    screen = invocation.screen
    rows = [
        (
            screen.paint(message["id"], "bold"),
            output.ago(message["sent_at"]),
            f"{_one_line(message['from'])} to {_receivers(message)}",
            message["state"],
            "" if message["kind"] == "text" else message["kind"].replace("_", " "),
            _one_line(message["summary"]),
        )
        for message in answer["messages"]
    ]
    screen.answer(answer, output.table(rows, screen.width))


def _receivers(message: Mapping[str, Any]) -> str:
    """Return the address of the one receiver, or how many agents receive the message."""
    receivers = [_one_line(receiver["address"]) for receiver in message["recipients"]]
    return receivers[0] if len(receivers) == 1 else f"{len(receivers)} agents"


def _receiver_line(receiver: Mapping[str, Any]) -> str:
    """Return the line with a receiver's address, state and reason."""
    reason = f": {_one_line(receiver['reason'])}" if receiver.get("reason") else ""
    return f"  {_one_line(receiver['address'])} {receiver['state']}{reason}"


def _one_line(text: str) -> str:
    """Return an agent's text on one line, made harmless."""
    # An assistant may read this list, so a summary must not look like a tag or hide text.
    return neutralise(one_line(neutralise(text), _LINE_CHARACTERS))
