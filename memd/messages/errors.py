"""The errors of registering agents and of sending and reading messages."""

from collections.abc import Sequence

from memd.base.errors import MemdError, WrongParameterError
from memd.base.names import printable


class MessagesOffError(MemdError):
    """Messages are switched off in the settings."""

    code = 1066
    kind = "messages_off"
    hint = "messages.enabled = true in memd.toml"
    exit_status = 69

    def __init__(self) -> None:
        super().__init__("messages between agents are switched off")


class AgentNameTakenError(MemdError):
    """Another agent that still runs has the name; ``free`` is a name that no agent has."""

    code = 1002
    kind = "name_taken"
    hint = "take another name"

    def __init__(self, name: str, free: str) -> None:
        sentence = f"an agent that is there has the name {name}; {free} is free"
        super().__init__(sentence, name=name, free=free)


class AgentNotFoundError(MemdError):
    """No agent has the address; ``nearest`` are similar addresses."""

    code = 1001
    kind = "not_found"
    hint = "memctl agent list --all shows who is there"

    def __init__(self, address: str, nearest: Sequence[str] = ()) -> None:
        shown, near = printable(address), ", ".join(nearest)
        more = f"; there is {near}" if near else ""
        super().__init__(f"no agent has the address {shown}{more}", address=shown, nearest=near)


class NoBridgeError(MemdError):
    """A message is addressed to another machine; messages do not leave this one."""

    code = 1001
    kind = "no_bridge"

    def __init__(self, address: str) -> None:
        shown = printable(address)
        super().__init__(f"{shown} is on another machine: messages stay on this one", address=shown)


class AgentKeyError(MemdError):
    """A call in the name of an agent has no valid key."""

    code = 1060
    kind = "key_refused"
    hint = "agent.register gives the key; registering the same session again gives a new one"
    exit_status = 77

    def __init__(self, sentence: str = "no agent has this key") -> None:
        super().__init__(sentence)


class AgentKeyMissingError(AgentKeyError):
    """A call in the name of an agent has no key, and no agent started the caller."""

    hint = (
        "memctl agent register gives a key, for --key or MEMD_AGENT_KEY; an assistant's own shell "
        "needs none after memctl setup CLIENT --messages"
    )

    def __init__(self) -> None:
        super().__init__("no key was given, and no agent started this program")


class AgentEndedError(MemdError):
    """An agent has ended, so it neither sends nor receives."""

    code = 1061
    kind = "agent_ended"

    def __init__(self, address: str) -> None:
        super().__init__(f"the agent {address} has ended", address=address)


class TooManyAgentsError(MemdError):
    """The limit of agents, or of one agent's sub-agents, is reached."""

    code = 1062
    kind = "too_many_agents"
    hint = "memctl agent end ends one"

    def __init__(self, limit: int, parent: str = "") -> None:
        whose = f" below {parent}" if parent else ""
        super().__init__(f"there are {limit} agents{whose} already", limit=limit)


class MailboxFullError(MemdError):
    """The mailbox of the receiver is full; the message was not stored."""

    code = 1004
    kind = "mailbox_full"
    retryable = True
    hint = "send it again once the receiver has read"
    exit_status = 75

    def __init__(self, address: str) -> None:
        super().__init__(f"the mailbox of {address} is full", address=address)


class TooManyMessagesError(MemdError):
    """A sender sent more messages in a minute than the limit; ``seconds`` is how long to wait."""

    code = 1064
    kind = "too_many_messages"
    retryable = True
    exit_status = 75

    def __init__(self, limit: int, seconds: float) -> None:
        sentence = f"more than {limit} messages a minute; try again in {seconds:.0f} s"
        super().__init__(sentence, limit=limit, seconds=seconds)


class TooManyReceiversError(MemdError):
    """A message to all agents of a project would have more receivers than the limit."""

    code = 1007
    kind = "too_many_receivers"

    def __init__(self, receivers: int, limit: int) -> None:
        super().__init__(
            f"a message may have {limit} receivers, not {receivers}",
            receivers=receivers,
            limit=limit,
        )


class MessageSizeError(MemdError):
    """A part of a message is larger than its limit; ``unit`` is that of size and limit."""

    code = 1007
    kind = "too_large"
    hint = "write it to a file of the project and send its path"

    def __init__(self, part: str, unit: str, size: int, limit: int) -> None:
        super().__init__(
            f"the {part} of a message may have {limit:,} {unit}, not {size:,}",
            size=size,
            limit=limit,
        )


class MessageSecretError(MemdError):
    """A part of a message seems to have a credential; the message was not stored."""

    code = 1003
    kind = "secret"
    hint = "say where the secret is kept instead"

    def __init__(self, rule: str, part: str, line: int) -> None:
        super().__init__(
            f"line {line} of the {part} looks like a secret ({rule}); nothing was sent",
            rule=rule,
            part=part,
            line=line,
        )


class MessageRefusedError(MemdError):
    """A message is refused by the receiver's settings or by the rules for its kind."""

    code = 1063
    kind = "message_refused"
    exit_status = 77

    def __init__(self, cause: str) -> None:
        super().__init__(f"the message is refused: {cause}", cause=cause)


class RequestNotOpenError(MemdError):
    """A response names a message that is no open request between its sender and receiver."""

    code = 1013
    kind = "request_not_open"

    def __init__(self, request: str) -> None:
        shown = printable(request)
        super().__init__(f"{shown or 'the empty id'} is no open request here", request=shown)


class MessageNotFoundError(MemdError):
    """There is no message with the id, or it belongs to another agent."""

    code = 1001
    kind = "message_not_found"

    def __init__(self, message: str) -> None:
        super().__init__(f"there is no message {printable(message)}", message=printable(message))


class MessageNotHeldError(MemdError):
    """A message does not wait for the person's decision, or no longer; it has this state."""

    code = 1013
    kind = "message_not_held"
    hint = "memctl message held lists those that wait"

    def __init__(self, message: str, state: str) -> None:
        shown = printable(message)
        super().__init__(
            f"the message {shown} is not held: it is {state}", message=shown, state=state
        )


class OtherDaemonError(MemdError):
    """A message is addressed to an agent of another daemon."""

    code = 1006
    kind = "other_daemon"

    def __init__(self, address: str) -> None:
        shown = printable(address)
        super().__init__(f"{shown} is refused: only agents of this daemon", address=shown)


class AddressRefusedError(WrongParameterError):
    """A text is not a valid address of an agent."""

    hint = "an address is NAME, PARENT/NAME, NAME@PROJECT or *"

    def __init__(self, address: str, cause: str) -> None:
        shown = printable(address)
        super().__init__(f"{shown or 'the empty text'} is no address: {cause}", address=shown)
