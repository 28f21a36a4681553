"""The rows of messages between agents, and of each receiver's copy of a message. Pure."""

from collections.abc import Iterable
from math import inf

from msgspec import Struct

from memd.base.agents import MessageKind, MessageState, Sender
from memd.state.database import Row
from memd.state.rows import read_rows

# Kinds that are delivered before all others.
_CONTROL_KINDS = (
    MessageKind.SHUTDOWN_REQUEST,
    MessageKind.SHUTDOWN_RESPONSE,
    MessageKind.PLAN_REQUEST,
    MessageKind.PLAN_RESPONSE,
)


class NewMessage(Struct, frozen=True):
    """A message to be stored; times are seconds since 1970."""

    sender: Sender
    kind: MessageKind
    summary: str
    body: str
    sent: float
    reply_to: str = ""
    request: int = 0  # the number of the request that a response answers, 0 for none
    approve: bool | None = None
    answer_by: float | None = None  # when an answer is due, ``None`` if none is wanted
    ttl: float = inf  # seconds that the message may wait
    request_id: str = ""  # the sender's own id of the call, "" for none


class MessageCopy(Struct, frozen=True):
    """One receiver's copy of a message; times are seconds since 1970."""

    message: int  # its number
    receiver: int  # the id of an agent, like ``sender``
    address: str
    sender: int
    state: MessageState
    reason: str = ""
    control: bool = False  # it is delivered before others
    size: int = 0
    deliveries: int = 0  # how often it was delivered
    until: float = inf  # when it expires
    ended: float | None = None


class StoredMessage(NewMessage, frozen=True, kw_only=True):
    """A stored message with its number; the body is "" once all copies have ended."""

    number: int


Notice = tuple[NewMessage, MessageCopy]  # a message of memd's own about another message


def is_control(kind: MessageKind) -> bool:
    """Return whether messages of a kind are delivered before others."""
    return kind in _CONTROL_KINDS


def stored_messages(rows: Iterable[Row]) -> tuple[StoredMessage, ...]:
    """Return the messages in rows, with the sender's columns as one member; skip damaged rows."""
    result: list[StoredMessage] = []
    for row in rows:
        # Without NULLs, so that the defaults of the class apply.
        columns = {name: value for name, value in dict(row).items() if value is not None}
        sender_columns = columns | {"agent": columns["sender"]}
        result += read_rows([columns | {"sender": sender_columns}], StoredMessage)
    return tuple(result)
