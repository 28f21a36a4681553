"""End the copies of messages as read, refused or expired, and tell senders. Blocks.

A message has one copy for each receiver. A notice is memd's own message to a sender about a copy
that was not read.
"""

from collections.abc import Callable, Iterable, Sequence
from math import inf

from msgspec import Struct, field

from memd.base.agents import Agent, AgentState, MessageKind, MessageState, Sender
from memd.messages.mailboxes import Mailboxes
from memd.messages.register import Register
from memd.state.messages import MessageCopy, NewMessage, Notice, StoredMessage

_MEMD = Sender(0, "memd", "memd")
_RUNNING = (AgentState.LIVE, AgentState.IDLE)


class CopyEnd(Struct, frozen=True):
    """A copy that ended: its message, its receiver's address, its last state and the reason."""

    message: StoredMessage
    address: str
    state: MessageState
    reason: str = ""


class Arrival(Struct, frozen=True):
    """A message that now waits for an agent; ``number`` is 0 for memd's own notices."""

    agent: Agent
    number: int
    sender: str
    summary: str


class StepEffects(Struct):
    """What a step changed under the lock, to be published after the step.

    ``due`` is when the first new copy expires or its answer is overdue, in seconds since 1970. The
    agents with the ids in ``released`` can lease messages again.
    """

    arrived: list[Arrival] = field(default_factory=list)
    due: float = inf
    ended: list[CopyEnd] = field(default_factory=list)
    released: set[int] = field(default_factory=set)


class Endings:
    """Ends copies, each once, and stores a notice for the sender if a copy was not read."""

    def __init__(self, register: Register, mailboxes: Mailboxes, now: Callable[[], float]) -> None:
        self.register = register
        self.mailboxes = mailboxes
        self._table = mailboxes.table
        self._now = now

    def mark_read(self, agent: int, numbers: Sequence[int], effects: StepEffects) -> int:
        """End an agent's copies of messages as read; return how many had not ended before."""
        ended = self.mailboxes.acknowledge(agent, numbers)
        if ended:
            stored = self._table.get([number for number, _ in ended])
            receiver = self.register.get(agent)
            name = receiver.name if receiver else ""
            effects.ended += [CopyEnd(message, name, MessageState.READ) for message in stored]
            effects.released.add(agent)
        return len(ended)

    def end(
        self,
        copies: Iterable[MessageCopy],
        state: MessageState,
        reason: str,
        effects: StepEffects,
    ) -> int:
        """End copies and tell their senders; return how many had not ended before."""
        # By message and receiver, which identify a copy.
        by_key = {(copy.message, copy.receiver): copy for copy in copies}
        numbers = [number for number, _ in by_key]
        stored = {message.number: message for message in self._table.get(numbers)}
        state_text = f"{state.value} ({reason})" if reason else state.value
        notices: dict[tuple[int, int], Notice] = {}
        for key, copy in by_key.items():
            message = stored.get(copy.message)
            if message is None or state is MessageState.READ:
                continue
            text = f"m{message.number} to {copy.address}: {state_text}"
            notice = self._make_notice(message, message.sender.agent, text)
            if notice is not None:
                notices[key] = notice
        # Another step may have ended a copy before; its notice is not stored then.
        ended = self.mailboxes.end(by_key, state, reason, notices)
        self._count_notices([notices[key] for key in ended if key in notices], effects)
        effects.ended += [
            CopyEnd(stored[number], by_key[number, receiver].address, state, reason)
            for number, receiver in ended
            if number in stored and stored[number].kind is not MessageKind.NOTICE
        ]
        return len(ended)

    def sweep(self, effects: StepEffects) -> None:
        """End overdue leases and copies, and report requests without an answer."""
        effects.released |= self.mailboxes.remove_ended_leases()
        for copy in self.mailboxes.expired_copies():
            # Held copies have a time limit too.
            reason = "nobody decided" if copy.state is MessageState.HELD else ""
            self.end([copy], MessageState.EXPIRED, reason, effects)
        for message in self._table.unanswered(self.mailboxes.steady_now()):
            self._report_unanswered(message, effects)

    def refuse_unread(self, agents: Iterable[int], effects: StepEffects) -> int:
        """Refuse the messages that wait for agents that have ended; return their number."""
        ids = tuple(agents)
        effects.released |= set(ids)  # wakes their calls that wait for a message
        copies = [copy for agent in ids for copy in self._table.of_receiver(agent)]
        return self.end(copies, MessageState.REFUSED, "the receiver has ended", effects)

    def _report_unanswered(self, message: StoredMessage, effects: StepEffects) -> None:
        """Tell the sender of a request that no answer came in time, once for each receiver."""
        notices: list[Notice] = []
        for copy in self._table.copies(message.number):
            receiver = self.register.get(copy.receiver)
            is_gone = receiver is None or self.register.state(receiver) not in _RUNNING
            cause = "gone" if is_gone else "no_answer"
            text = f"the {message.kind.value} m{message.number} to {copy.address}: {cause}"
            notice = self._make_notice(message, message.sender.agent, text)
            if notice is not None:
                notices.append(notice)
        if self._table.close(message.number, notices):
            self._count_notices(notices, effects)

    def _make_notice(self, about: StoredMessage, agent: int, text: str) -> Notice | None:
        """Return a notice for an agent about a message.

        Return ``None`` if the agent has ended or the message is itself a notice.
        """
        receiver = self.register.get(agent) if agent else None
        if receiver is None or receiver.ended is not None or about.kind is MessageKind.NOTICE:
            return None
        reply_to = f"m{about.number}"
        notice = NewMessage(_MEMD, MessageKind.NOTICE, "", text, self._now(), reply_to=reply_to)
        copy = MessageCopy(
            0,  # the table gives the number
            receiver.id,
            receiver.name,
            0,  # memd is no agent
            MessageState.QUEUED,
            size=len(text),
        )
        return notice, copy

    def _count_notices(self, notices: Iterable[Notice], effects: StepEffects) -> None:
        """Count stored notices in their mailboxes and add them to the arrivals."""
        for notice, copy in notices:
            self.mailboxes.recount(copy.receiver)
            receiver = self.register.get(copy.receiver)
            if receiver is not None:
                effects.arrived.append(Arrival(receiver, 0, _MEMD.address, notice.body))
