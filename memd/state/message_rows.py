"""What rows of messages and their copies hold, and what is stored of new ones. Pure."""

from collections.abc import Iterable

from msgspec import Struct

from memd.core.agents import TTL_SECONDS, MessageKind, MessageState, Sender
from memd.state.database import Row
from memd.state.rows import read_rows

_CONTROL = (
    MessageKind.SHUTDOWN_REQUEST,
    MessageKind.SHUTDOWN_RESPONSE,
    MessageKind.PLAN_REQUEST,
    MessageKind.PLAN_RESPONSE,
)


class NewMessage(Struct, frozen=True):
    """A message that is to be stored; times are seconds since 1970.

    ``request`` is the number of the message that a response answers, 0 for none. ``answer_by`` is
    when an answer is due, ``None`` where none is wanted. ``ttl`` is for how many seconds it
    may wait. An empty ``request_id`` is none.
    """

    sender: Sender
    kind: MessageKind
    summary: str
    body: str
    sent: float
    reply_to: str = ""
    request: int = 0
    approve: bool | None = None
    answer_by: float | None = None
    ttl: float = TTL_SECONDS
    request_id: str = ""


class MessageCopy(Struct, frozen=True):
    """One receiver's copy; ``until`` is when it expires, seconds since 1970."""

    message: int
    receiver: int
    address: str
    sender: int
    state: MessageState
    reason: str = ""
    control: bool = False
    size: int = 0
    deliveries: int = 0
    until: float = 0.0
    ended: float | None = None


class StoredMessage(NewMessage, frozen=True, kw_only=True):
    """A message as it is stored, with its number; the body is "" once all copies ended."""

    number: int


Notice = tuple[NewMessage, MessageCopy]  # of memd's own, about a message


def is_control(kind: MessageKind) -> bool:
    """Say whether a kind of message goes before others."""
    return kind in _CONTROL


def stored_messages(rows: Iterable[Row]) -> tuple[StoredMessage, ...]:
    """Return what rows of messages say, each with its sender's columns as one member."""
    result: list[StoredMessage] = []
    for row in rows:
        facts = {name: value for name, value in dict(row).items() if value is not None}
        sender = facts | {"agent": facts["sender"]}
        result += read_rows([facts | {"sender": sender}], StoredMessage)
    return tuple(result)
