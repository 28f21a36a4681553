"""The errors of registering agents and of sending and reading messages."""

from collections.abc import Sequence

from memd.base.errors import (
    Conflict,
    Invalid,
    Limit,
    NotFound,
    Refused,
    TooLarge,
)
from memd.base.names import printable


def agent_name_taken(name: str, free: str) -> Conflict:
    """Return the error that another agent that still runs has the name."""
    sentence = f"an agent that is there has the name {name}; {free} is free"
    return Conflict(sentence, kind="name_taken", hint="take another name", name=name, free=free)


def agent_not_found(address: str, nearest: Sequence[str] = ()) -> NotFound:
    """Return the error that no agent has the address; ``nearest`` are similar addresses."""
    shown, near = printable(address), ", ".join(nearest)
    more = f"; there is {near}" if near else ""
    return NotFound(
        f"no agent has the address {shown}{more}",
        hint="memctl agent list --all shows who is there",
        address=shown,
        nearest=near,
    )


def no_bridge(address: str) -> Refused:
    """Return the error that a message is addressed to another machine."""
    shown = printable(address)
    return Refused(
        f"{shown} is on another machine: messages stay on this one", kind="no_bridge", address=shown
    )


def key_refused(sentence: str = "no agent has this key") -> Refused:
    """Return the error that a call in the name of an agent has no valid key."""
    return Refused(
        sentence,
        kind="key_refused",
        hint="agent.register gives the key; registering the same session again gives a new one",
    )


def agent_ended(address: str) -> Refused:
    """Return the error that an agent has ended, so it neither sends nor receives."""
    return Refused(f"the agent {address} has ended", kind="agent_ended", address=address)


def too_many_agents(limit: int, parent: str = "") -> TooLarge:
    """Return the error that the limit of agents, or of one agent's sub-agents, is reached."""
    whose = f" below {parent}" if parent else ""
    return TooLarge(
        f"there are {limit} agents{whose} already", hint="memctl agent end ends one", limit=limit
    )


def too_many_messages(limit: int, seconds: float) -> Limit:
    """Return the error that a sender sent more messages in a minute than the limit."""
    sentence = f"more than {limit} messages a minute; try again in {seconds:.0f} s"
    return Limit(sentence, kind="too_many_messages", retryable=True, limit=limit, seconds=seconds)


def too_many_receivers(receivers: int, limit: int) -> TooLarge:
    """Return the error that a message names too many receivers."""
    return TooLarge(
        f"a message may have {limit} receivers, not {receivers}", receivers=receivers, limit=limit
    )


def message_size(part: str, unit: str, size: int, limit: int) -> TooLarge:
    """Return the error that a part of a message is larger than its limit."""
    return TooLarge(
        f"the {part} of a message may have {limit:,} {unit}, not {size:,}",
        hint="write it to a file of the project and send its path",
        size=size,
        limit=limit,
    )


def message_refused(cause: str) -> Refused:
    """Return the error that a message may not be sent, for the reason given."""
    return Refused(f"the message is refused: {cause}", cause=cause)


def request_not_open(request: str) -> Conflict:
    """Return the error that an answer names no open request."""
    shown = printable(request)
    return Conflict(f"{shown or 'the empty id'} is no open request here", request=shown)


def message_not_found(message: str) -> NotFound:
    """Return the error that there is no message with the id, or it belongs to another agent."""
    return NotFound(f"there is no message {printable(message)}", message=printable(message))


def message_not_held(message: str, state: str) -> Conflict:
    """Return the error that a message does not wait for the person's decision, or no longer."""
    shown = printable(message)
    return Conflict(
        f"the message {shown} is not held: it is {state}",
        hint="memctl review lists those that wait",
        message=shown,
        state=state,
    )


def other_daemon(address: str) -> Refused:
    """Return the error that a message is addressed to an agent of another daemon."""
    shown = printable(address)
    return Refused(f"{shown} is refused: only agents of this daemon", address=shown)


def address_refused(address: str, cause: str) -> Invalid:
    """Return the error that a text is not a valid address of an agent."""
    shown = printable(address)
    return Invalid(
        f"{shown or 'the empty text'} is no address: {cause}",
        hint="an address is NAME, PARENT/NAME, NAME@PROJECT or *",
        address=shown,
    )
