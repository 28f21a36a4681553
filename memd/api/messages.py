"""message.*: send, receive and acknowledge messages between agents."""

from typing import Annotated

import msgspec

from memd.api.agents import Key, Name, connected
from memd.api.services import Services
from memd.base.agents import LEASED_MESSAGES, WAIT_SECONDS, MessageKind, MessageState
from memd.messages.errors import message_refused
from memd.messages.service import LeaseHolder, Speaker
from memd.messages.values import HeldMessage, LoggedMessage, Received, SendRequest, Sent
from memd.methods.method import Limit, Result, method
from memd.rpc.call import Call

_READ_BY_THE_PERSON = "the person reads what is held, in a terminal of their own"
_NOT_THE_PERSON = "the person decides, in a terminal of their own"
MessageId = Annotated[str, msgspec.Meta(max_length=100)]


class Acknowledged(Result):
    """How many messages were acknowledged; those that had ended before do not count."""

    acked: int


class Logged(Result):
    """Messages, newest first."""

    messages: tuple[LoggedMessage, ...]


class Held(Result):
    """Messages that wait for the person, newest first."""

    messages: tuple[HeldMessage, ...]


class Decided(Result):
    """The new state of a held message."""

    state: str


@method("message.send", "write")
async def message_send(
    services: Services,
    call: Call,
    *,
    to: Name,
    body: str = "",
    summary: str = "",
    cwd: str = "",
    key: Key = "",
    as_parent: bool = False,
    kind: MessageKind = MessageKind.TEXT,
    reply_to: MessageId = "",
    request: MessageId = "",
    approve: bool | None = None,
    reason: str = "",
    feedback: str = "",
    ttl: float | None = None,
    request_id: Name = "",
) -> Sent:
    """Send a message to an agent, or with ``*`` to all of the project; it is stored on disk then.

    The sender is the agent with this ``key`` or, with ``as_parent``, the agent whose process
    started the caller. Otherwise it is an unregistered caller in the project of ``cwd``. A response
    names its ``request``.
    """
    caller = call.caller
    speaker = _speaker(call, key, as_parent=as_parent) if key or as_parent else None
    root = ""
    if speaker is None:
        root = (await services.callers.find(call, cwd))[0].root
    return await services.messages.send(
        SendRequest(
            to=to,
            body=body,
            summary=summary,
            kind=kind.value,
            reply_to=reply_to,
            ttl=ttl,
            request=request,
            approve=approve,
            reason=reason,
            feedback=feedback,
            request_id=request_id,
            root=root,
            client=caller.client,
        ),
        speaker,
    )


@method("message.receive", "read")
async def message_receive(
    services: Services,
    call: Call,
    *,
    key: Key = "",
    as_parent: bool = False,
    limit: Annotated[int, msgspec.Meta(ge=1, le=LEASED_MESSAGES)] = LEASED_MESSAGES,
    wait: Annotated[float, msgspec.Meta(ge=0, le=WAIT_SECONDS)] = 0.0,
) -> Received:
    """The next messages of an agent, leased for 30 s: they come again unless acknowledged.

    Where there is none, the call waits up to ``wait`` seconds for one.
    """
    holder = LeaseHolder(call.connection, connected(call.connection))
    speaker = _speaker(call, key, as_parent=as_parent)
    return await services.messages.receive(speaker, holder, limit, wait)


@method("message.ack", "write")
async def message_ack(
    services: Services,
    call: Call,
    *,
    ids: Annotated[list[MessageId], msgspec.Meta(max_length=1000)],
    key: Key = "",
    as_parent: bool = False,
) -> Acknowledged:
    """Mark messages as read, so that they are not delivered again."""
    speaker = _speaker(call, key, as_parent=as_parent)
    return Acknowledged(acked=await services.messages.acknowledge(speaker, ids))


@method("message.status", "read")
async def message_status(services: Services, _call: Call, *, id_: MessageId) -> Sent:
    """The state of a message, as after ``message.send``."""
    return await services.messages.status(id_)


@method("message.log", "read")
async def message_log(
    services: Services,
    call: Call,
    *,
    cwd: str,
    agent: Name = "",
    state: MessageState | None = None,
    before: MessageId = "",
    limit: Limit = 50,
) -> Logged:
    """The messages of a project, or of one agent, newest first and without bodies."""
    project, *_ = await services.callers.find(call, cwd)
    entries = await services.messages.log(project.root, agent, state or "", before, limit)
    return Logged(messages=entries)


@method("message.held", "operate")
async def message_held(
    services: Services, call: Call, *, cwd: str = "", id_: MessageId = "", limit: Limit = 50
) -> Held:
    """The messages that are held for the person, newest first and with their texts.

    They are those of the project of ``cwd``, or without it of all; ``id`` selects one of any
    project. A program that an assistant started does not read them.
    """
    if await services.callers.started_by_an_assistant(call):
        raise message_refused(_READ_BY_THE_PERSON)
    root = (await services.callers.find(call, cwd))[0].root if cwd else ""
    return Held(messages=await services.messages.held(root, id_, limit))


@method("message.decide", "operate")
async def message_decide(
    services: Services, call: Call, *, id_: MessageId, accept: bool
) -> Decided:
    """Accept or refuse a message that is held for the person.

    A program that an assistant started does not decide for the person.
    """
    if await services.callers.started_by_an_assistant(call):
        raise message_refused(_NOT_THE_PERSON)
    return Decided(state=(await services.messages.decide(id_, accept=accept)).state)


def _speaker(call: Call, key: str, *, as_parent: bool) -> Speaker:
    """Return who acts: the agent with ``key``, or with ``as_parent`` the one above the caller.

    That is the registered agent whose process started the caller.
    """
    pid = call.caller.pid if as_parent and not key else 0
    return Speaker(key, pid)
