"""Which kind of message may go from whom to whom, and what it says. Pure.

memd acts on none of them: it ends no process and approves nothing.
"""

import re

from memd.core.agents import (
    ANSWER_SECONDS,
    SHUTDOWN_TTL_SECONDS,
    TTL_LONGEST,
    TTL_SECONDS,
    TTL_SHORTEST,
    Agent,
    MessageKind,
)
from memd.core.errors import WrongParameterError
from memd.messages.errors import MessageRefusedError
from memd.messages.values import SendRequest

_ANSWERS = {
    MessageKind.SHUTDOWN_RESPONSE: MessageKind.SHUTDOWN_REQUEST,
    MessageKind.PLAN_RESPONSE: MessageKind.PLAN_REQUEST,
}
_OWN = "notices are memd's own"
_NOBODY = "only a registered agent sends it"
_TO_ALL = "it goes to one agent, not to all"
_TO_CHILD = "it goes from an agent to one that works for it"
_TO_PARENT = "it goes from an agent to the one that it works for"
# It is shown beside the label, outside of what is quoted: it says nothing of the sender's own.
_ID = re.compile(r"m[0-9]{1,18}")
_NO_ID = "reply_to is the id of a message, such as m12"
_NO_BODY = "a message needs a body or a summary"
_NO_DECISION = "a response says approve: true or false, and names its request"
_NOT_HERE = "request, approve, reason and feedback are for requests and responses"


class MessageShapeError(WrongParameterError):
    """The members of a message do not belong together."""

    def __init__(self, cause: str) -> None:
        super().__init__(f"the message is none: {cause}", cause=cause)


class MessageTimeError(WrongParameterError):
    """A message is to live for too short or too long a time."""

    def __init__(self, ttl: float) -> None:
        super().__init__(
            f"ttl is {TTL_SHORTEST:.0f} to {TTL_LONGEST:.0f} seconds, not {ttl:g}", ttl=ttl
        )


def check_shape(request: SendRequest) -> MessageKind:
    """Return a message's kind. Raises MessageShapeError, MessageTimeError, MessageRefusedError."""
    kind = MessageKind(request.kind)
    if kind is MessageKind.NOTICE:
        raise MessageRefusedError(_OWN)
    if request.reply_to and not _ID.fullmatch(request.reply_to):
        raise MessageShapeError(_NO_ID)
    if request.ttl is not None and not TTL_SHORTEST <= request.ttl <= TTL_LONGEST:
        raise MessageTimeError(request.ttl)
    if kind in _ANSWERS:
        if request.approve is None or not request.request:
            raise MessageShapeError(_NO_DECISION)
    elif request.approve is not None or request.request:
        raise MessageShapeError(_NOT_HERE)
    if kind is MessageKind.TEXT:
        if request.reason or request.feedback:
            raise MessageShapeError(_NOT_HERE)
        if not (request.body.strip() or request.summary.strip()):
            raise MessageShapeError(_NO_BODY)
    return kind


def check_pair(kind: MessageKind, sender: Agent | None, receiver: Agent) -> None:
    """Check that a control kind goes the way it may. Raises MessageRefusedError."""
    if kind is MessageKind.TEXT:
        return
    if sender is None:
        raise MessageRefusedError(_NOBODY)
    down = kind in (MessageKind.SHUTDOWN_REQUEST, MessageKind.PLAN_RESPONSE)
    if down and receiver.parent != sender.id:
        raise MessageRefusedError(_TO_CHILD)
    if not down and sender.parent != receiver.id:
        raise MessageRefusedError(_TO_PARENT)


def check_broadcast(kind: MessageKind) -> None:
    """Check that a kind may go to all. Raises MessageRefusedError."""
    if kind is not MessageKind.TEXT:
        raise MessageRefusedError(_TO_ALL)


def answered(kind: MessageKind) -> MessageKind | None:
    """Return the kind of request that a response answers, ``None`` for what is no response."""
    return _ANSWERS.get(kind)


def lifetime(kind: MessageKind, ttl: float | None) -> float:
    """Return for how many seconds a message may wait."""
    if ttl is not None:
        return ttl
    return SHUTDOWN_TTL_SECONDS if kind is MessageKind.SHUTDOWN_REQUEST else TTL_SECONDS


def answer_seconds(kind: MessageKind) -> float | None:
    """Return within how many seconds a kind wants an answer, ``None`` for none."""
    return ANSWER_SECONDS if kind in _ANSWERS.values() else None


def body_of(request: SendRequest, kind: MessageKind) -> str:
    """Return what stands in a message: its body, reason and feedback."""
    texts = (request.body, request.reason, request.feedback)
    return request.body if kind is MessageKind.TEXT else "\n\n".join(filter(None, texts))
