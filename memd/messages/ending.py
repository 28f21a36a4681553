"""The ends of messages: read, refused, expired, parked, unanswered; senders are told. Blocks."""

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct, field

from memd.core.agents import TTL_SECONDS, Agent, AgentState, MessageKind, MessageState, Sender
from memd.messages.mailboxes import Mailboxes
from memd.messages.register import Register
from memd.state.tables import MessageCopy, NewMessage, Notice, StoredMessage

_MEMD = Sender(0, "memd", "memd")
_THERE = (AgentState.LIVE, AgentState.IDLE)


class CopyEnd(Struct, frozen=True):
    """A copy that ended, for the sender: whose it was, and why."""

    message: StoredMessage
    address: str
    state: MessageState
    reason: str = ""


class Arrival(Struct, frozen=True):
    """A message that waits for an agent now; ``due`` is when it ends by itself, 0 if unknown."""

    agent: Agent
    number: int
    sender: str
    summary: str
    due: float = 0.0


class Happened(Struct):
    """What a step under the lock did, for those who wait outside of it.

    ``waiting`` are agents with a message more that waits for the person, ``freed`` those of whose
    messages some may be leased again.
    """

    arrived: list[Arrival] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    ended: list[CopyEnd] = field(default_factory=list)
    freed: set[int] = field(default_factory=set)


class Endings:
    """Ends copies, each once, and stores a notice for the sender of one that was not read."""

    def __init__(self, register: Register, mailboxes: Mailboxes, now: Callable[[], float]) -> None:
        self.register = register
        self.mailboxes = mailboxes
        self._table = mailboxes.table
        self._now = now

    def read(self, agent: int, numbers: Sequence[int], happened: Happened) -> int:
        """End messages as read; return how many had not ended."""
        ended = self.mailboxes.acknowledge(agent, numbers)
        if ended:
            stored = self._table.get([number for number, _ in ended])
            address = self.register.get(agent)
            name = address.name if address else ""
            happened.ended += [CopyEnd(each, name, MessageState.READ) for each in stored]
            happened.freed.add(agent)
        return len(ended)

    def end(
        self,
        copies: Iterable[MessageCopy],
        state: MessageState,
        reason: str,
        happened: Happened,
    ) -> int:
        """End copies and tell their senders; return how many had not ended."""
        by_key = {(copy.message, copy.receiver): copy for copy in copies}
        stored = {each.number: each for each in self._table.get([key[0] for key in by_key])}
        words = f"{state.value}{f' ({reason})' if reason else ''}"
        notices: dict[tuple[int, int], Notice] = {}
        for key, copy in by_key.items():
            message = stored.get(copy.message)
            if message is not None and state is not MessageState.READ:
                text = f"m{message.number} to {copy.address}: {words}"
                if notice := self._notice(message, message.sender.agent, text):
                    notices[key] = notice
        ended = self.mailboxes.end(by_key, state, reason, notices)
        self._tell(filter(None, (notices.get(key) for key in ended)), happened)
        happened.ended += [
            CopyEnd(stored[key[0]], by_key[key].address, state, reason)
            for key in ended
            if key[0] in stored and stored[key[0]].kind is not MessageKind.NOTICE
        ]
        return len(ended)

    def sweep(self, happened: Happened, receivers: Iterable[int] = ()) -> None:
        """End what is overdue: copies, answers, deliveries that nobody acknowledged."""
        happened.freed |= self.mailboxes.void()
        for receiver in happened.freed | set(receivers):
            keys = set(self.mailboxes.exhausted(receiver))
            copies = [
                copy
                for copy in (self._table.waiting(receiver) if keys else ())
                if (copy.message, copy.receiver) in keys
            ]
            self.end(copies, MessageState.PARKED, "delivered and never acknowledged", happened)
        for copy in self.mailboxes.expired():
            reason = "nobody decided" if copy.state is MessageState.HELD else ""
            self.end([copy], MessageState.EXPIRED, reason, happened)
        for message in self._table.unanswered(self.mailboxes.steady()):
            self._unanswered(message, happened)

    def returned(self, agents: Iterable[int], happened: Happened) -> int:
        """Refuse the messages that wait for agents that have ended; return how many."""
        ended = tuple(agents)
        happened.freed |= set(ended)  # wakes who waits for a message from them
        copies = [copy for agent in ended for copy in self._table.of_receiver(agent)]
        return self.end(copies, MessageState.REFUSED, "the receiver has ended", happened)

    def _unanswered(self, message: StoredMessage, happened: Happened) -> None:
        """Tell the sender of a request that nobody answered in time."""
        notices = []
        for copy in self._table.copies(message.number):
            receiver = self.register.get(copy.receiver)
            there = (AgentState.LIVE, AgentState.IDLE)
            gone = receiver is None or self.register.state(receiver) not in there
            word = "gone" if gone else "no_answer"
            text = f"the {message.kind.value} m{message.number} to {copy.address}: {word}"
            notices.append(self._notice(message, message.sender.agent, text))
        stored = [notice for notice in notices if notice is not None]
        if self._table.close(message.number, stored):
            self._tell(stored, happened)

    def _notice(self, about: StoredMessage, agent: int, text: str) -> Notice | None:
        """Return a notice for an agent that is there; of memd's own messages there is none."""
        to = self.register.get(agent) if agent else None
        if to is None or to.ended is not None or about.kind is MessageKind.NOTICE:
            return None
        name, now = f"m{about.number}", self._now()
        notice = NewMessage(_MEMD, MessageKind.NOTICE, "", text, now, reply_to=name)
        queued, until = MessageState.QUEUED, self.mailboxes.steady() + TTL_SECONDS
        return notice, MessageCopy(0, to.id, to.name, 0, queued, size=len(text), until=until)

    def _tell(self, notices: Iterable[Notice], happened: Happened) -> None:
        """Count notices that were stored."""
        for notice, copy in notices:
            self.mailboxes.recount(copy.receiver)
            if (to := self.register.get(copy.receiver)) is not None:
                happened.arrived.append(Arrival(to, 0, _MEMD.address, notice.body))
