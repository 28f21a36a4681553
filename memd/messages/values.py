"""The requests to this room and its results; the results are sent on the wire as they are."""

from typing import Annotated

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from memd.base.agents import AgentMessage
from memd.base.text import iso_time
from memd.rpc.call import Call

Name = Annotated[str, msgspec.Meta(max_length=1000)]
Key = Annotated[str, msgspec.Meta(max_length=200)]
MessageId = Annotated[str, msgspec.Meta(max_length=100)]


class Registration(Struct, frozen=True):
    """A request to register an agent. ``key`` is the key of its parent, "" if it has none.

    ``pid`` is 0 if no process is known. ``session`` is the client's id of its conversation, and
    ``child`` the id of a sub-agent in it. ``caller`` is the process that makes the request, 0 if it
    is trusted to act for any session.
    """

    root: str
    directory: str
    name: str
    client: str = ""
    kind: str = ""
    session: str = ""
    child: str = ""
    parent: str = ""
    key: str = ""
    pid: int = 0
    transcript: str = ""
    caller: int = 0


class Registered(Struct, frozen=True):
    """A registered agent: its name, its address in its project, and its new key."""

    agent: str
    address: str
    key: str


class AgentEnded(Struct, frozen=True):
    """The end of an agent; ``returned`` is how many unread messages were refused."""

    ended: bool
    returned: int


class AgentRow(Struct, frozen=True):
    """One agent as ``agent.list`` shows it; ``since`` is ISO 8601, ``progress`` "" if unknown."""

    agent: str
    address: str
    client: str
    kind: str
    project: str
    state: str
    since: str
    progress: str
    unread: int


class Speaker(Struct, frozen=True):
    """Identifies the agent that makes a call: by its ``key``, or by its process above ``pid``."""

    key: str = ""
    pid: int = 0


class SendRequest(Struct, frozen=True):
    """A message to be sent. ``ttl`` is its lifetime in seconds, ``None`` for its kind's default.

    ``root`` is the sender's project.
    """

    to: str
    body: str = ""
    summary: str = ""
    kind: str = "text"
    reply_to: str = ""
    ttl: float | None = None
    request: str = ""
    approve: bool | None = None
    reason: str = ""
    feedback: str = ""
    request_id: str = ""
    root: str = ""
    client: str = ""


class Receiver(Struct, frozen=True):
    """One receiver of a message, and the state of its copy, with the reason if there is one."""

    address: str
    state: str
    reason: str = ""


class Sent(Struct, frozen=True):
    """A stored message; ``state`` combines the states of its copies."""

    id: str
    state: str
    recipients: tuple[Receiver, ...]


class MessageRow(msgspec.Struct, frozen=True, rename={"sender": "from"}):
    """One message; ``from`` is the sender's address, ``age`` seconds."""

    id: str
    sender: str
    client: str
    project: str
    kind: str
    summary: str
    body: str
    reply_to: str
    sent_at: str
    age: float
    delivery: int
    request: str
    approve: bool | None


class Received(Struct, frozen=True):
    """Messages that are leased for 30 s, and their quoted text; ``more`` says if others wait."""

    messages: tuple[MessageRow, ...]
    more: bool
    block: str


class LoggedMessage(msgspec.Struct, frozen=True, rename={"sender": "from"}):
    """One message without its body, with the state of each receiver's copy."""

    id: str
    sender: str
    kind: str
    summary: str
    sent_at: str
    state: str
    recipients: tuple[Receiver, ...]


def row_of(message: AgentMessage) -> MessageRow:
    """Return a message in the form that ``message.receive`` sends on the wire."""
    facts, sender = asdict(message), message.sender
    facts |= {"sender": sender.address, "client": sender.client}
    facts |= {"project": sender.project, "sent_at": iso_time(message.sent_at)}
    return MessageRow(**facts)


class Acknowledged(Struct, frozen=True):
    """How many messages were acknowledged; those that had ended before do not count."""

    acked: int


class Logged(Struct, frozen=True):
    """Messages, newest first."""

    messages: tuple[LoggedMessage, ...]


def speaker_of(call: Call, key: str, *, as_parent: bool) -> Speaker:
    """Return who acts: the agent with ``key``, or with ``as_parent`` the one above the caller.

    That is the registered agent whose process started the caller.
    """
    pid = call.caller.pid if as_parent and not key else 0
    return Speaker(key, pid)
