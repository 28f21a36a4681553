"""Send messages: find their receivers, check them, and queue, hold or refuse each copy. Blocks."""

from collections.abc import Callable

from msgspec.structs import replace

from memd.base.agents import (
    BODY_BYTES,
    MAILBOX_BYTES,
    MAILBOX_MESSAGES,
    RECEIVERS,
    SUMMARY_CHARACTERS,
    Agent,
    AgentState,
    MessageKind,
    MessageState,
    Sender,
)
from memd.base.errors import Busy, Off, Secret
from memd.base.settings import MessagesSettings
from memd.base.text import one_line, sha256
from memd.messages import kinds, names
from memd.messages.ending import Arrival, StepEffects
from memd.messages.errors import (
    agent_not_found,
    message_refused,
    message_size,
    request_not_open,
    too_many_receivers,
)
from memd.messages.mailboxes import Mailboxes, number_of
from memd.messages.pace import Exchanges, Pace
from memd.messages.register import Register
from memd.messages.stored import StoredMessages
from memd.messages.values import SendRequest, Sent
from memd.state.messages import MessageCopy, NewMessage
from memd.store import secret

UNREGISTERED = "unregistered"
_SETTINGS_REFUSE = "the receiver's settings refuse it"
_MAILBOX_FULL = "mailbox_full"
_WAITS_FOR_PERSON = "it waits for the person: memctl review"
_ENDLESS_EXCHANGE = "the two agents answer each other without their person"
_BODY_AND_UNIT, _SUMMARY_AND_UNIT = ("body", "bytes"), ("summary", "characters")
_ANSWERABLE = (MessageState.QUEUED, MessageState.READ)


class PostOffice(StoredMessages):
    """Sends messages and ends them.

    ``settings`` returns the settings of a project's root. ``now`` returns seconds since 1970,
    ``monotonic`` seconds that never go back. ``socket`` is the path of this daemon's.
    """

    def __init__(
        self,
        register: Register,
        mailboxes: Mailboxes,
        settings: Callable[[str], MessagesSettings],
        now: Callable[[], float],
        monotonic: Callable[[], float],
        *,
        socket: str,
    ) -> None:
        super().__init__(register, mailboxes, now)
        self._settings = settings
        self._monotonic = monotonic
        self._socket = socket
        self._pace = Pace()  # limits the messages of each sender
        self._exchanges = Exchanges()  # recognises agents that answer each other without end
        register.has_mail = self._has_mail

    def send(self, request: SendRequest, agent: Agent | None, effects: StepEffects) -> Sent:
        """Store a message with a copy for each receiver, and return its state.

        ``agent`` is the sender, ``None`` if it is not registered. A request whose id was used
        before stores nothing and returns the message that it sent then. Raises MemdError.
        """
        root = agent.root if agent else request.root
        self.settings(root)
        request = replace(request, to=names.without_socket(request.to, self._socket))
        sender = self._make_sender(agent, request)
        kind = _check_content(request)
        request_key = _request_key(sender, request) if request.request_id else ""
        earlier = self._table.earlier(sender.agent, request_key) if request_key else 0
        if earlier:  # the client lost the first answer
            return self._describe_sent(earlier)
        if request.reply_to:
            self._find(request.reply_to)
        receivers = self._find_receivers(request, kind, agent, root)
        self._check_response(request, kind, agent, receivers)
        if agent is not None:
            # The sender's address as the receiver has to write it in an answer.
            sender = replace(sender, address=self.register.address(agent, receivers[0].root))
        # Only counted now: a message that is refused above does not use up the sender's limit.
        self._pace.count(sender.agent, self._monotonic())
        body = kinds.body_of(request, kind)
        size = len(body.encode()) + len(request.summary.encode())
        copies = [self._make_copy(sender, kind, each, size, request.ttl) for each in receivers]
        if request.to != "*":  # of a message to all, refused copies are in the result
            _raise_refusal(copies[0])
        message = NewMessage(
            sender,
            kind,
            one_line(request.summary, SUMMARY_CHARACTERS),
            body,
            self._now(),
            reply_to=request.reply_to,
            request=number_of(request.request),
            approve=request.approve,
            answer_by=self._answer_time(kind, receivers),
            ttl=kinds.lifetime(kind, request.ttl),
            request_id=request_key,
        )
        number = self._table.add(message, copies)
        for receiver, copy in zip(receivers, copies, strict=True):
            self._note_copy(message, number, receiver, copy, effects)
        return self._describe_sent(number)

    def _answer_time(self, kind: MessageKind, receivers: tuple[Agent, ...]) -> float | None:
        """Return when an answer to a message is overdue, in seconds since 1970.

        Return ``None`` if this kind of message needs no answer.
        """
        seconds = kinds.answer_seconds(kind)
        if seconds is None:
            return None
        # If its receiver is gone, the sender gets the notice "gone" at once.
        is_gone = self.register.state(receivers[0]) is AgentState.GONE
        return self.mailboxes.steady_now() + (0.0 if is_gone else seconds)

    def _note_copy(
        self,
        message: NewMessage,
        number: int,
        receiver: Agent,
        copy: MessageCopy,
        effects: StepEffects,
    ) -> None:
        """Count a stored copy that is queued or held, and add it to the effects."""
        if copy.state is not MessageState.REFUSED:
            due = copy.until if message.answer_by is None else message.answer_by
            effects.due = min(effects.due, due)
        if copy.state is MessageState.QUEUED:
            if message.sender.agent:
                self._exchanges.count(message.sender.agent, receiver.id, self._monotonic())
            self.mailboxes.count_added(receiver.id)
            sender = message.sender.address
            effects.arrived.append(Arrival(receiver, number, sender, message.summary))

    def _has_mail(self, agent: int) -> bool:
        """Return whether messages wait for an agent, also those that are held for the person."""
        stored = [self.mailboxes.table.use(agent, held=held).messages for held in (False, True)]
        return any(stored) or bool(self.mailboxes.unread(agent))

    def settings(self, root: str) -> MessagesSettings:
        """Return the settings of a project. Raises Off if they disable messages."""
        settings = self._settings(root)
        if not settings.enabled:
            raise Off(
                "messages between agents are switched off",
                kind="messages_off",
                hint="messages.enabled = true in memd.toml",
            )
        return settings

    def prompted(self, agent: int) -> None:
        """Note that a person prompted an agent, so its answers to others are counted from 0."""
        self._exchanges.prompted(agent)

    def _make_sender(self, agent: Agent | None, request: SendRequest) -> Sender:
        """Return the sender of a request: a registered agent, or who the caller says that it is."""
        if agent is None:
            project = request.root.rpartition("/")[2]
            return Sender(0, UNREGISTERED, request.client, request.root, project)
        project = agent.root.rpartition("/")[2]
        return Sender(agent.id, agent.name, agent.client, agent.root, project)

    def _find_receivers(
        self, request: SendRequest, kind: MessageKind, agent: Agent | None, root: str
    ) -> tuple[Agent, ...]:
        """Return the receivers of a message: one agent, or for "*" all others of the project.

        Raises an error if there is none, there are too many, or the kind may not go to them.
        """
        if request.to == "*":
            kinds.check_broadcast(kind)
            receivers = self.register.audience(root, agent.id if agent else 0)
            if not receivers:
                raise agent_not_found(request.to)
            if len(receivers) > RECEIVERS:
                raise too_many_receivers(len(receivers), RECEIVERS)
            return receivers
        receiver = self.register.resolve(request.to, root)
        kinds.check_pair(kind, agent, receiver)
        return (receiver,)

    def _check_response(
        self,
        request: SendRequest,
        kind: MessageKind,
        agent: Agent | None,
        receivers: tuple[Agent, ...],
    ) -> None:
        """Raise Conflict if a response answers no open request of its receiver.

        A request is open if its sender still waits for an answer and this agent got it.
        """
        request_kind = kinds.request_kind_of(kind)
        if request_kind is None:  # it is no response
            return
        stored = self._find_stored(number_of(request.request))
        if stored is None or stored.kind is not request_kind or agent is None:
            raise request_not_open(request.request)
        is_expected = stored.answer_by is not None and stored.sender.agent == receivers[0].id
        was_received = any(
            copy.receiver == agent.id and copy.state in _ANSWERABLE
            for copy in self._table.copies(stored.number)
        )
        if not (is_expected and was_received):
            raise request_not_open(request.request)

    def _make_copy(
        self, sender: Sender, kind: MessageKind, receiver: Agent, size: int, ttl: float | None
    ) -> MessageCopy:
        """Return one receiver's copy of a message: queued, held or refused.

        ``size`` is the bytes of the message, ``ttl`` its lifetime in seconds.
        """
        settings = self._settings(receiver.root)
        decision = settings.inbound_unregistered
        if sender.agent:
            is_near = sender.root == receiver.root
            decision = settings.inbound if is_near else settings.inbound_across
        now = self._monotonic()
        state, reason = MessageState.QUEUED, ""
        if decision == "refuse":
            state, reason = MessageState.REFUSED, _SETTINGS_REFUSE
        elif decision == "hold":
            state, reason = MessageState.HELD, _WAITS_FOR_PERSON
        elif sender.agent and self._exchanges.is_endless(sender.agent, receiver.id, now):
            state, reason = MessageState.HELD, _ENDLESS_EXCHANGE
        # Held messages have a limit of their own, so that unknown senders cannot fill the mailbox.
        use = self.mailboxes.table.use(receiver.id, held=state is MessageState.HELD)
        is_full = use.messages >= MAILBOX_MESSAGES or use.bytes + size > MAILBOX_BYTES
        if is_full and state is not MessageState.REFUSED:
            state, reason = MessageState.REFUSED, _MAILBOX_FULL
        is_refused = state is MessageState.REFUSED
        return MessageCopy(
            0,  # the table gives the number
            receiver.id,
            self.register.address(receiver, sender.root),
            sender.agent,
            state,
            reason,
            size=size,
            until=self.mailboxes.steady_now() + kinds.lifetime(kind, ttl),
            ended=self._now() if is_refused else None,
        )


def _check_content(request: SendRequest) -> MessageKind:
    """Check the members, size and secrets of a message, and return its kind.

    Raises TooLarge, Secret and the errors of ``kinds.check_shape``.
    """
    kind = kinds.check_shape(request)
    body = kinds.body_of(request, kind)
    size = len(body.encode(errors="replace"))
    if size > BODY_BYTES:
        raise message_size(*_BODY_AND_UNIT, size, BODY_BYTES)
    if len(request.summary) > SUMMARY_CHARACTERS:
        raise message_size(*_SUMMARY_AND_UNIT, len(request.summary), SUMMARY_CHARACTERS)
    for part, text in (("summary", request.summary), ("body", body)):
        for finding in secret.find(text):
            raise Secret(
                f"line {finding.line} of the {part} looks like a secret "
                f"({finding.rule}); nothing was sent",
                hint="say where the secret is kept instead",
                rule=finding.rule,
                part=part,
                line=finding.line,
            )
    return kind


def _request_key(sender: Sender, request: SendRequest) -> str:
    """Return the key by which a repeated request is recognised: its sender, id and content.

    The last word of the id is a hash of all parameters, an agent's key among them. It is left out,
    since the agent has a new key if it registered again between the two calls.
    """
    id_ = request.request_id.rpartition(" ")[0] or request.request_id
    texts = (request.to, request.body, request.summary, request.kind, request.reply_to)
    answer = (request.request, request.approve, request.reason, request.feedback)
    content_hash = sha256(repr((texts, answer)).encode())[:16]
    # The table separates the requests of agents, but not those of unregistered senders.
    prefix = "" if sender.agent else f"{sender.client} {sender.root} "
    return f"{prefix}{id_} {content_hash}"


def _raise_refusal(copy: MessageCopy) -> None:
    """Raise Busy or Refused if a copy is refused."""
    if copy.state is MessageState.REFUSED:
        if copy.reason == _MAILBOX_FULL:
            raise Busy(
                f"the mailbox of {copy.address} is full",
                kind="mailbox_full",
                hint="send it again once the receiver has read",
                address=copy.address,
            )
        raise message_refused(copy.reason)
