"""Check the members and the direction of each kind of message. Pure.

Control kinds are requests and responses to shut down or to approve a plan. memd only delivers them:
it ends no process and approves nothing.
"""

import re
from math import inf

from memd.base.agents import (
    ANSWER_SECONDS,
    SHUTDOWN_TTL_SECONDS,
    TTL_LONGEST,
    TTL_SHORTEST,
    Agent,
    MessageKind,
)
from memd.base.errors import Invalid
from memd.messages.errors import message_refused
from memd.messages.values import SendRequest

_REQUEST_OF_RESPONSE = {
    MessageKind.SHUTDOWN_RESPONSE: MessageKind.SHUTDOWN_REQUEST,
    MessageKind.PLAN_RESPONSE: MessageKind.PLAN_REQUEST,
}
_NOTICE_IS_MEMDS = "notices are memd's own"
_UNREGISTERED_SENDER = "only a registered agent sends it"
_TO_ALL = "it goes to one agent, not to all"
_TO_CHILD = "it goes from an agent to one that works for it"
_TO_PARENT = "it goes from an agent to the one that it works for"
# A strict form, since it is shown beside the label, outside of the quoted text.
_MESSAGE_ID = r"m[0-9]{1,18}"
_WRONG_REPLY_TO = "reply_to is the id of a message, such as m12"
_WRONG_TTL = f"ttl is {TTL_SHORTEST:.0f} to {TTL_LONGEST:.0f} seconds"
_NO_BODY = "a message needs a body or a summary"
_NO_DECISION = "a response says approve: true or false, and names its request"
_WRONG_MEMBERS = "request, approve, reason and feedback are for requests and responses"


def _message_shape(cause: str) -> Invalid:
    return Invalid(f"the message is none: {cause}", cause=cause)


def check_shape(request: SendRequest) -> MessageKind:
    """Check that a request has the members of its kind, and return the kind.

    Raises Invalid and, for a notice, Refused.
    """
    kind = MessageKind(request.kind)
    if kind is MessageKind.NOTICE:
        raise message_refused(_NOTICE_IS_MEMDS)
    if request.reply_to and not re.fullmatch(_MESSAGE_ID, request.reply_to):
        raise _message_shape(_WRONG_REPLY_TO)
    if request.ttl is not None and not TTL_SHORTEST <= request.ttl <= TTL_LONGEST:
        raise _message_shape(_WRONG_TTL)
    if kind in _REQUEST_OF_RESPONSE:
        if request.approve is None or not request.request:
            raise _message_shape(_NO_DECISION)
    elif request.approve is not None or request.request:
        raise _message_shape(_WRONG_MEMBERS)
    if kind is MessageKind.TEXT:
        if request.reason or request.feedback:
            raise _message_shape(_WRONG_MEMBERS)
        if not (request.body.strip() or request.summary.strip()):
            raise _message_shape(_NO_BODY)
    return kind


def check_pair(kind: MessageKind, sender: Agent | None, receiver: Agent) -> None:
    """Check that a control message goes between an agent and its sub-agent in the right direction.

    Raises Refused.
    """
    if kind is MessageKind.TEXT:
        return
    if sender is None:
        raise message_refused(_UNREGISTERED_SENDER)
    to_child = kind in (MessageKind.SHUTDOWN_REQUEST, MessageKind.PLAN_RESPONSE)
    if to_child and receiver.parent != sender.id:
        raise message_refused(_TO_CHILD)
    if not to_child and sender.parent != receiver.id:
        raise message_refused(_TO_PARENT)


def check_broadcast(kind: MessageKind) -> None:
    """Check that a kind of message may go to all agents. Raises Refused."""
    if kind is not MessageKind.TEXT:
        raise message_refused(_TO_ALL)


def request_kind_of(kind: MessageKind) -> MessageKind | None:
    """Return the kind of request that a response answers, ``None`` if a kind is no response."""
    return _REQUEST_OF_RESPONSE.get(kind)


def lifetime(kind: MessageKind, ttl: float | None) -> float:
    """Return how many seconds a message may wait: ``ttl``, or the default of its kind."""
    if ttl is not None:
        return ttl
    return SHUTDOWN_TTL_SECONDS if kind is MessageKind.SHUTDOWN_REQUEST else inf


def answer_seconds(kind: MessageKind) -> float | None:
    """Return in how many seconds a kind of message needs an answer, ``None`` if it needs none."""
    return ANSWER_SECONDS if kind in _REQUEST_OF_RESPONSE.values() else None


def body_of(request: SendRequest, kind: MessageKind) -> str:
    """Return the stored body of a message: its body, reason and feedback, joined."""
    texts = (request.body, request.reason, request.feedback)
    return request.body if kind is MessageKind.TEXT else "\n\n".join(filter(None, texts))
