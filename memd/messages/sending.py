"""What is done with messages under the room's one lock: sent, ended, decided, shown. Blocks."""

from collections.abc import Callable

from msgspec.structs import replace

from memd.core.agents import (
    BODY_BYTES,
    HELD_SECONDS,
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
from memd.core.settings import MessagesSettings
from memd.core.text import iso_time, one_line, sha256
from memd.messages import kinds, policy, relay
from memd.messages.ending import Arrival, Endings, Happened
from memd.messages.errors import (
    AgentNotFoundError,
    MailboxFullError,
    MessageNotFoundError,
    MessageRefusedError,
    MessageSizeError,
    MessagesOffError,
    RequestNotOpenError,
    TooManyReceiversError,
)
from memd.messages.mailboxes import Mailboxes, number_of
from memd.messages.pace import Exchanges, Pace
from memd.messages.register import Register
from memd.messages.relay import Relays
from memd.messages.values import LoggedMessage, Receiver, SendRequest, Sent
from memd.state.tables import MessageCopy, NewMessage, StoredMessage

UNREGISTERED = "unregistered"
_REFUSED = "the receiver's settings refuse it"
_FULL = "mailbox_full"
_HELD = "it waits for the person: memctl message accept or refuse"
_ENDLESS = "the two agents answer each other without their person"
_BODY, _SUMMARY = ("body", "bytes"), ("summary", "characters")
_ANSWERABLE = (MessageState.QUEUED, MessageState.READ)
_STATES = (MessageState.LEASED, MessageState.QUEUED, MessageState.HELD)  # of all copies together


class PostOffice(Endings):
    """Sends messages and sees to their ends. ``settings`` are those of a project's root."""

    def __init__(
        self,
        register: Register,
        mailboxes: Mailboxes,
        settings: Callable[[str], MessagesSettings],
        now: Callable[[], float],
        monotonic: Callable[[], float],
    ) -> None:
        super().__init__(register, mailboxes, now)
        self._settings = settings
        self._monotonic = monotonic
        self.relays = Relays(self, mailboxes.steady, settings)
        self._pace = Pace()
        self._exchanges = Exchanges()
        register.has_mail = self._has_mail

    def send(self, request: SendRequest, agent: Agent | None, happened: Happened) -> Sent:
        """Store a message for all whom it is for; return it once it is on the disk.

        Raises what ``MESSAGE_ERRORS`` of the api lists.
        """
        root = agent.root if agent else request.root
        settings = self.settings(root)
        sender = self._sender(agent, request)
        kind = _checked(request)
        if request.request_id and (
            earlier := self._table.earlier(sender.agent, _request_key(sender, request))
        ):
            return self._sent(earlier)
        to_all = request.to == "*"
        there = relay.place(request, kind, settings, self.relays.check_peer)
        receivers = () if there else self._receivers(request, kind, agent, root)
        self._check_request(request, kind, agent, receivers)
        if agent is not None and (receivers or there):  # its name, as the receiver writes it
            address = self.register.address(agent, receivers[0].root if receivers else "")
            sender = replace(sender, address=address)
        now = self._monotonic()
        self._pace.count(sender.agent, settings.per_minute, now, broadcast=to_all)
        body = kinds.body_of(request, kind)
        size = len(body.encode()) + len(request.summary.encode())
        copies = [self._copy(sender, kind, each, size, request.ttl) for each in receivers]
        if there:
            copies = [relay.copy_for(there, request, size, self.mailboxes.steady(), self._table)]
        if not to_all:
            _raise_refusal(copies[0])
        answer = kinds.answer_seconds(kind)
        if answer and self.register.state(receivers[0]) is AgentState.GONE:
            answer = 0.0
        message = NewMessage(
            sender,
            kind,
            one_line(request.summary, SUMMARY_CHARACTERS),
            body,
            self._now(),
            reply_to=request.reply_to,
            request=number_of(request.request),
            approve=request.approve,
            answer_by=None if answer is None else self.mailboxes.steady() + answer,
            ttl=kinds.lifetime(kind, request.ttl),
            request_id=_request_key(sender, request) if request.request_id else "",
        )
        number = self._table.add(message, copies)
        for each, copy in zip(receivers, copies, strict=there is None):
            if agent is not None and copy.state is MessageState.QUEUED:
                self._exchanges.count(agent.id, each.id, now)
            if copy.state is MessageState.QUEUED:
                self.mailboxes.added(each.id)
                due = copy.until if message.answer_by is None else message.answer_by
                arrival = Arrival(each, number, sender.address, message.summary, due)
                happened.arrived.append(arrival)
            elif copy.state is MessageState.HELD:
                happened.waiting.append(each.id)
        return self._sent(number)

    def _has_mail(self, agent: int) -> bool:
        """Say whether anything waits for an agent, or for a person to decide it."""
        use = self.mailboxes.table.use
        stored = use(agent, held=False).messages or use(agent, held=True).messages
        return bool(stored or self.mailboxes.unread(agent))

    def settings(self, root: str) -> MessagesSettings:
        """Return the settings of a project. Raises MessagesOffError where it has no messages."""
        settings = self._settings(root)
        if not settings.enabled:
            raise MessagesOffError
        return settings

    def prompted(self, agent: int) -> None:
        """Note that a person spoke to an agent."""
        self._exchanges.prompted(agent)

    def status(self, message: str) -> Sent:
        """Return what became of a message. Raises MessageNotFoundError."""
        number = number_of(message)
        stored = self._table.get([number])
        if not stored or stored[0].kind is MessageKind.NOTICE:
            raise MessageNotFoundError(message)
        return self._sent(number)

    def log(
        self, *, agent: int = 0, root: str = "", state: str = "", before: str = "", limit: int = 50
    ) -> tuple[LoggedMessage, ...]:
        """Return messages without their bodies, newest first."""
        rows = self._table.log(
            agent=agent, root=root, state=state, before=number_of(before), limit=limit
        )
        return tuple(map(self._entry, rows))

    def decide(self, message: str, happened: Happened, *, accept: bool) -> Sent:
        """Queue or refuse the held copies of a message. Raises MessageNotFoundError."""
        number = number_of(message)
        waiting = [copy for copy in self._table.copies(number) if copy.state is MessageState.HELD]
        (stored, *_) = self._table.get([number]) or (None,)
        if not waiting or stored is None:
            raise MessageNotFoundError(message)
        for copy in waiting:
            receiver = self.register.get(copy.receiver)
            if accept and receiver is not None and receiver.ended is None:
                until = self.mailboxes.steady() + stored.ttl
                if self._table.accept(number, copy.receiver, until):
                    self.mailboxes.recount(copy.receiver)
                    sender = stored.sender.address
                    happened.arrived.append(Arrival(receiver, number, sender, stored.summary))
            else:
                self.end([copy], MessageState.REFUSED, "refused by the person", happened)
        return self._sent(number)

    def _sender(self, agent: Agent | None, request: SendRequest) -> Sender:
        if agent is None:
            project = request.root.rpartition("/")[2]
            # Whom another memd passes on is no more than its caller's word here.
            client = f"{request.client} for {request.hop}" if request.hop else request.client
            return Sender(0, UNREGISTERED, client, request.root, project)
        project = agent.root.rpartition("/")[2]
        return Sender(agent.id, agent.name, agent.client, agent.root, project)

    def _receivers(
        self, request: SendRequest, kind: MessageKind, agent: Agent | None, root: str
    ) -> tuple[Agent, ...]:
        if request.to == "*":
            kinds.check_broadcast(kind)
            receivers = self.register.audience(root, agent.id if agent else 0)
            if not receivers:
                raise AgentNotFoundError(request.to)
            if len(receivers) > RECEIVERS:
                raise TooManyReceiversError(len(receivers), RECEIVERS)
            return receivers
        receiver = self.register.resolve(request.to, root)
        kinds.check_pair(kind, agent, receiver)
        return (receiver,)

    def _check_request(
        self,
        request: SendRequest,
        kind: MessageKind,
        agent: Agent | None,
        receivers: tuple[Agent, ...],
    ) -> None:
        """Check that a response has an open request. Raises RequestNotOpenError."""
        wanted = kinds.answered(kind)
        if wanted is None:
            return
        number = number_of(request.request)
        (stored, *_) = self._table.get([number]) or (None,)
        open_here = (
            stored is not None
            and agent is not None
            and stored.kind is wanted
            and stored.answer_by is not None
            and stored.sender.agent == receivers[0].id
            and any(
                copy.receiver == agent.id and copy.state in _ANSWERABLE
                for copy in self._table.copies(number)
            )
        )
        if not open_here:
            raise RequestNotOpenError(request.request)

    def _copy(
        self, sender: Sender, kind: MessageKind, to: Agent, size: int, ttl: float | None
    ) -> MessageCopy:
        """Return the copy of one receiver, in the state in which it begins."""
        decision = policy.inbound(self._settings(to.root), sender, to)
        state, reason = MessageState.QUEUED, ""
        if decision == "refuse":
            state, reason = MessageState.REFUSED, _REFUSED
        elif decision == "hold":
            state, reason = MessageState.HELD, _HELD
        elif sender.agent and self._exchanges.is_endless(sender.agent, to.id, self._monotonic()):
            state, reason = MessageState.HELD, _ENDLESS
        # What is held has room of its own: strangers fill no mailbox that colleagues write to.
        use = self.mailboxes.table.use(to.id, held=state is MessageState.HELD)
        full = use.messages >= MAILBOX_MESSAGES or use.bytes + size > MAILBOX_BYTES
        if full and state is not MessageState.REFUSED:
            state, reason = MessageState.REFUSED, _FULL
        is_held = state is MessageState.HELD
        seconds = HELD_SECONDS if is_held else kinds.lifetime(kind, ttl)
        refused = state is MessageState.REFUSED
        return MessageCopy(
            0,
            to.id,
            self.register.address(to, sender.root),
            sender.agent,
            state,
            reason,
            size=size,
            until=self.mailboxes.steady() + seconds,
            ended=self._now() if refused else None,
        )

    def _sent(self, number: int) -> Sent:
        """Return a message as its sender is told of it."""
        receivers = self._receivers_of(number)
        return Sent(f"m{number}", _together(receivers), receivers)

    def _receivers_of(self, number: int) -> tuple[Receiver, ...]:
        return tuple(
            Receiver(copy.address, self._state(copy).value, copy.reason)
            for copy in self._table.copies(number)
        )

    def _state(self, copy: MessageCopy) -> MessageState:
        queued = copy.state is MessageState.QUEUED
        leased = queued and self.mailboxes.leased(copy.message, copy.receiver)
        return MessageState.LEASED if leased else copy.state

    def _entry(self, stored: StoredMessage) -> LoggedMessage:
        receivers = self._receivers_of(stored.number)
        return LoggedMessage(
            f"m{stored.number}",
            stored.sender.address,
            stored.kind.value,
            stored.summary,
            iso_time(stored.sent),
            _together(receivers),
            receivers,
        )


def _checked(request: SendRequest) -> MessageKind:
    """Check all that needs no mailbox, and return the kind."""
    kind = kinds.check_shape(request)
    body = kinds.body_of(request, kind)
    size = len(body.encode(errors="replace"))
    if size > BODY_BYTES:
        raise MessageSizeError(*_BODY, size, BODY_BYTES)
    if len(request.summary) > SUMMARY_CHARACTERS:
        raise MessageSizeError(*_SUMMARY, len(request.summary), SUMMARY_CHARACTERS)
    policy.check_secrets(summary=request.summary, body=body)
    return kind


def _request_key(sender: Sender, request: SendRequest) -> str:
    """Return what makes a request the same one again: who sends it, its id, what it says.

    The id's last word stands for all parameters, an agent's key among them. That is a new one once
    the agent has registered anew, and then the request is the same one still.
    """
    id_ = request.request_id.rpartition(" ")[0] or request.request_id
    texts = (request.to, request.body, request.summary, request.kind, request.reply_to)
    answer = (request.request, request.approve, request.reason, request.feedback)
    who = "" if sender.agent else f"{sender.client} {sender.root} "
    return f"{who}{id_} {sha256(repr((texts, answer)).encode())[:16]}"


def _raise_refusal(copy: MessageCopy) -> None:
    """Raise for the only receiver's copy that is refused at once."""
    if copy.state is MessageState.REFUSED:
        if copy.reason == _FULL:
            raise MailboxFullError(copy.address)
        raise MessageRefusedError(copy.reason)


def _together(receivers: tuple[Receiver, ...]) -> str:
    """Return the state of a message from those of its copies: one that waits comes first."""
    states = [receiver.state for receiver in receivers]
    first = [state.value for state in _STATES if state in states]
    return (first or states or [MessageState.READ.value])[0]
