"""What this room is asked and answers; the results are the shapes of the wire."""

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from memd.core.agents import AgentMessage
from memd.core.text import iso_time


class Registration(Struct, frozen=True):
    """Who wants to be registered. ``key`` is the parent's where it is to have one.

    ``pid`` is 0 where no process is known. ``session`` is the client's name for its conversation,
    and ``child`` that of a sub-agent within it. ``caller`` is the process that asks, 0 for one that
    is trusted to know whose session it is.
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
    """An agent that is registered: its name, its address in the project, and its newest key."""

    agent: str
    address: str
    key: str


class AgentEnded(Struct, frozen=True):
    """An agent that has ended; ``returned`` is how many messages it had not read."""

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
    """In whose name something is done: who has the ``key``, or whose process started ``pid``."""

    key: str = ""
    pid: int = 0


class SendRequest(Struct, frozen=True):
    """A message to be sent. ``ttl`` is seconds, ``None`` for the kind's own.

    ``root`` is the sender's project, ``hop`` says that another memd passes it on.
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
    hop: str = ""


class RelayedMessage(Struct, frozen=True):
    """A message for an agent of another memd, at ``path``; ``ttl`` is seconds.

    ``hop`` is its sender's address as the other memd shows it. ``known`` is the other memd's id of
    it, "" where it has not stored it yet; ``listed`` says that the settings still name its socket.
    """

    number: int
    path: str
    to: str
    hop: str
    root: str
    summary: str
    body: str
    ttl: float
    request_id: str
    known: str = ""
    listed: bool = True


class RelayAnswer(Struct, frozen=True):
    """What another memd says of a message; ``state`` is "" where it is to be tried again.

    ``silent`` says that it did not answer at all.
    """

    id: str = ""
    state: str = ""
    reason: str = ""
    silent: bool = False


class Receiver(Struct, frozen=True):
    """One receiver of a message, and what became of its copy, with the reason if there is one."""

    address: str
    state: str
    reason: str = ""


class Sent(Struct, frozen=True):
    """A message that was stored; ``state`` is that of its copies together."""

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
    """Messages that are leased for 30 s, and all of them as quoted text."""

    messages: tuple[MessageRow, ...]
    more: bool
    block: str


class LoggedMessage(msgspec.Struct, frozen=True, rename={"sender": "from"}):
    """One message without its body, and what became of each receiver's copy."""

    id: str
    sender: str
    kind: str
    summary: str
    sent_at: str
    state: str
    recipients: tuple[Receiver, ...]


def row_of(message: AgentMessage) -> MessageRow:
    """Return a message as ``message.receive`` answers it."""
    facts, sender = asdict(message), message.sender
    facts |= {"sender": sender.address, "client": sender.client}
    facts |= {"project": sender.project, "sent_at": iso_time(message.sent_at)}
    return MessageRow(**facts)
