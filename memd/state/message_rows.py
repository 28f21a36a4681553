"""What rows of messages and their copies hold, and what is stored of new ones. Pure."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from memd.core.agents import TTL_SECONDS, MessageKind, MessageState, Sender
from memd.state.database import Row

T = TypeVar("T")
_CONTROL = (
    MessageKind.SHUTDOWN_REQUEST,
    MessageKind.SHUTDOWN_RESPONSE,
    MessageKind.PLAN_REQUEST,
    MessageKind.PLAN_RESPONSE,
)


@dataclass(frozen=True, slots=True)
class NewMessage:
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


@dataclass(frozen=True, slots=True)
class MessageCopy:
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


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message as it is stored, with its number; the body is "" once all copies ended."""

    number: int
    sender: Sender
    kind: MessageKind
    summary: str
    body: str
    sent: float
    reply_to: str
    request: int
    approve: bool | None
    answer_by: float | None
    ttl: float


Notice = tuple[NewMessage, MessageCopy]  # of memd's own, about a message


def is_control(kind: MessageKind) -> bool:
    """Say whether a kind of message goes before others."""
    return kind in _CONTROL


def each_of(rows: Iterable[Row], read: Callable[[Row], T]) -> Iterator[T]:
    """Yield what rows say; one that makes no sense is passed over."""
    for row in rows:
        with suppress(ValueError, TypeError):
            yield read(row)


def message_of(row: Row) -> StoredMessage:
    """Return a message's row. Raises ValueError and TypeError."""
    names = ("sender", "address", "client", "root", "project")
    return StoredMessage(
        number=int(row["number"]),
        sender=Sender(*(row[name] for name in names)),
        kind=MessageKind(row["kind"]),
        summary=row["summary"],
        body=row["body"],
        sent=float(row["sent"]),
        reply_to=row["reply_to"],
        request=int(row["request"]),
        approve=None if row["approve"] is None else bool(row["approve"]),
        answer_by=row["answer_by"],
        ttl=float(row["ttl"]),
    )


def copy_of(row: Row) -> MessageCopy:
    """Return a copy's row. Raises ValueError and TypeError."""
    return MessageCopy(
        message=int(row["message"]),
        receiver=int(row["receiver"]),
        address=row["address"],
        sender=int(row["sender"]),
        state=MessageState(row["state"]),
        reason=row["reason"],
        control=bool(row["control"]),
        size=int(row["size"]),
        deliveries=int(row["deliveries"]),
        until=float(row["until"]),
        ended=row["ended"],
    )
