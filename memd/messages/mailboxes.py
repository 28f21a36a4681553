"""The mailbox of each agent: lease, acknowledge and end its copies. Blocks; one thread at a time.

A copy is a message to one receiver. A lease gives copies to a reader for some seconds: if the
reader does not acknowledge them, they are queued again.

Rules of this file
- A lease is only in memory. It ends after its time, with its reader's connection or with the
  daemon, by monotonic time, so setting the clock delays no message.
- While a copy is leased, later copies from the same sender to the same receiver wait, except
  control kinds. So they stay in order if the lease ends and the copy is delivered again.
- An acknowledgement is valid until the copy has ended, leased or not.
- Counts are in memory. A failed transaction may still be on the disk, so they are read again then.
- Copies expire by the time of the start plus monotonic seconds, which nobody can set.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from memd.base.agents import LEASED_BYTES, LEASED_MESSAGES, AgentMessage, MessageState
from memd.state.messages import MessageCopy, MessageTable, Notice, StoredMessage

Copies = Iterable[tuple[int, int]]  # each by message and receiver


class LeaseHolder(Struct, frozen=True):
    """The reader of leased messages.

    ``name`` identifies it, and ``alive`` returns whether it can still acknowledge. ``until`` is
    when its lease ends, in monotonic seconds; ``None`` if only the reader ends it.
    """

    name: object
    alive: Callable[[], bool]
    until: float | None = None


class _Lease(Struct, frozen=True):
    """A copy that a reader has and has not acknowledged yet."""

    holder: LeaseHolder
    copy: MessageCopy


class NextMessages(Struct, frozen=True):
    """The next messages with their copies, and whether more could be leased."""

    copies: tuple[MessageCopy, ...] = ()
    messages: tuple[AgentMessage, ...] = ()
    more: bool = False


class Mailboxes:
    """The mailboxes of all agents, by the id of the receiver.

    ``now`` returns seconds since 1970, ``monotonic`` seconds that never go back.
    """

    def __init__(
        self, table: MessageTable, now: Callable[[], float], monotonic: Callable[[], float]
    ) -> None:
        self.table = table
        self._now = now
        self._monotonic = monotonic
        self._leases: dict[tuple[int, int], _Lease] = {}  # by message and receiver
        # How many messages wait for each receiver; ``None`` until they are counted.
        self._unread: dict[int, int] | None = None
        self._counts_are_doubtful = False  # after a transaction failed
        self._monotonic_offset = now() - monotonic()  # turns monotonic seconds into those of 1970

    def steady_now(self) -> float:
        """Return the time in seconds since 1970, unaffected by a clock set after the start."""
        return self._monotonic_offset + self._monotonic()

    def mark_doubtful(self) -> None:
        """Note that a transaction failed, so that ``load`` reads the counts again."""
        self._counts_are_doubtful = True

    def load(self) -> None:
        """Count the messages in each mailbox, if that was not done or the counts are in doubt."""
        if self._unread is None or self._counts_are_doubtful:
            self._unread = self.table.unread()
            self._counts_are_doubtful = False

    def unread(self, receiver: int) -> int:
        """Return how many messages wait for a receiver, including leased ones, from memory."""
        return (self._unread or {}).get(receiver, 0)

    def recount(self, receiver: int) -> None:
        """Read again from disk how many messages wait for a receiver."""
        count = self.table.unread_of(receiver)
        if self._unread is None:
            return
        if count:
            self._unread[receiver] = count
        else:
            self._unread.pop(receiver, None)

    def count_added(self, receiver: int) -> None:
        """Add one stored copy to the count of a receiver."""
        if self._unread is not None:
            self._unread[receiver] = self.unread(receiver) + 1

    def next_messages(
        self,
        receiver: int,
        limit: int = LEASED_MESSAGES,
        size: int = LEASED_BYTES,
        skip: Callable[[int], bool] | None = None,
    ) -> NextMessages:
        """Return the next messages of a receiver, without leasing them.

        ``limit`` is their number and ``size`` the bytes of all together; the first may have more.
        ``skip`` returns whether to leave out the message with a number.
        """
        if self._unread is not None and not self.unread(receiver):
            return NextMessages()
        self.remove_ended_leases()
        # One more than the limit shows whether more are waiting. If some are skipped, nobody knows
        # how many are needed.
        waiting = self._leasable(receiver, -1 if skip else limit + 1)
        if skip is not None:
            waiting = [copy for copy in waiting if not skip(copy.message)]
        copies: list[MessageCopy] = []
        total = 0
        for copy in waiting:
            if len(copies) == limit or (copies and total + copy.size > size):
                break
            copies.append(copy)
            total += copy.size
        stored = {each.number: each for each in self.table.get([c.message for c in copies])}
        copies = [copy for copy in copies if copy.message in stored]
        now = self._now()
        messages = tuple(as_message(stored[c.message], now, c.deliveries + 1) for c in copies)
        return NextMessages(tuple(copies), messages, more=len(waiting) > len(copies))

    def lease_copies(
        self, receiver: int, holder: LeaseHolder, copies: Sequence[MessageCopy]
    ) -> None:
        """Lease copies that ``next_messages`` returned, and count one more delivery of each."""
        if copies:
            self.table.delivered(receiver, [copy.message for copy in copies])
        for copy in copies:
            self._leases[copy.message, receiver] = _Lease(holder, copy)

    def lease(
        self,
        receiver: int,
        holder: LeaseHolder,
        limit: int = LEASED_MESSAGES,
        size: int = LEASED_BYTES,
    ) -> NextMessages:
        """Lease the next messages of a receiver, up to a number and bytes, and return them."""
        result = self.next_messages(receiver, limit, size)
        self.lease_copies(receiver, holder, result.copies)
        return result

    def acknowledge(self, receiver: int, numbers: Sequence[int]) -> frozenset[tuple[int, int]]:
        """End a receiver's copies as read; skip those that ended before or were never delivered.

        Return the message and receiver of each copy that ended.
        """
        waiting = {copy.message: copy for copy in self.table.waiting(receiver)}
        delivered = [
            (number, receiver)
            for number in dict.fromkeys(numbers)
            if number in waiting and waiting[number].deliveries
        ]
        return self.end(delivered, MessageState.READ)

    def end(
        self,
        copies: Copies,
        state: MessageState,
        reason: str = "",
        notices: Mapping[tuple[int, int], Notice] | None = None,
    ) -> frozenset[tuple[int, int]]:
        """End copies that have not ended before, store their notices, and return these copies."""
        copies = tuple(copies)
        if not copies:
            return frozenset()
        ended = self.table.end(copies, state, self._now(), reason, notices)
        for copy in ended:
            self._leases.pop(copy, None)
        for receiver in {receiver for _, receiver in ended}:
            self.recount(receiver)
        return ended

    def release(self, name: object) -> frozenset[int]:
        """End all leases of the holder with this name; return their receivers."""
        return self._end_leases(lambda lease: lease.holder.name == name)

    def is_leased(self, number: int, receiver: int) -> bool:
        """Return whether a receiver's copy of a message is leased now."""
        lease = self._leases.get((number, receiver))
        return lease is not None and self._is_valid(lease)

    def next_lease_end(self, receiver: int = 0) -> float | None:
        """Return when the next lease of a receiver ends, in monotonic seconds; 0 is all receivers.

        Return ``None`` if no lease has an end.
        """
        ends = (
            lease.holder.until
            # A snapshot: the loop calls this while a step may change leases in a thread.
            for (_, owner), lease in tuple(self._leases.items())
            if receiver in (0, owner)
        )
        return min((end for end in ends if end is not None), default=None)

    def expired_copies(self) -> tuple[MessageCopy, ...]:
        """Return the copies that are past their time and not leased."""
        return tuple(
            copy
            for copy in self.table.overdue(self.steady_now())
            if not self.is_leased(copy.message, copy.receiver)
        )

    def remove_ended_leases(self) -> frozenset[int]:
        """Remove the leases that have ended; return their receivers."""
        return self._end_leases(lambda lease: not self._is_valid(lease))

    def _end_leases(self, condition: Callable[[_Lease], bool]) -> frozenset[int]:
        """Remove the leases that meet a condition; return their receivers."""
        ended = [copy for copy, lease in self._leases.items() if condition(lease)]
        for copy in ended:
            del self._leases[copy]
        return frozenset(receiver for _, receiver in ended)

    def _leasable(self, receiver: int, wanted: int) -> list[MessageCopy]:
        """Return the copies that may be leased now, at least ``wanted`` if there are so many.

        -1 returns all of them.
        """
        senders_to_wait = {  # a leased copy of theirs comes first
            lease.copy.sender
            for (_, owner), lease in self._leases.items()
            if owner == receiver and not lease.copy.control
        }
        has_leases = any(owner == receiver for _, owner in self._leases)
        most = -1 if has_leases else wanted  # with leases, some of the first are left out below
        return [
            copy
            for copy in self.table.waiting(receiver, most)
            if (copy.message, receiver) not in self._leases
            and (copy.control or copy.sender not in senders_to_wait)
        ]

    def _is_valid(self, lease: _Lease) -> bool:
        """Return whether a lease has not ended."""
        until = lease.holder.until
        return lease.holder.alive() and (until is None or self._monotonic() < until)


def as_message(stored: StoredMessage, now: float, delivery: int) -> AgentMessage:
    """Return a stored message as its receiver gets it; ``now`` is seconds since 1970."""
    return AgentMessage(
        id=f"m{stored.number}",
        sender=stored.sender,
        kind=stored.kind,
        summary=stored.summary,
        body=stored.body,
        sent_at=stored.sent,
        age=max(0.0, now - stored.sent),
        delivery=delivery,
        reply_to=stored.reply_to,
        request=f"m{stored.request}" if stored.request else "",
        approve=stored.approve,
    )


def number_of(message: str) -> int:
    """Return the number in the id of a message, such as 12 for m12, and 0 if it is no id."""
    digits = message.removeprefix("m")
    fits = message.startswith("m") and digits.isascii() and digits.isdigit() and len(digits) < 19  # noqa: PLR2004 - SQLite's integers
    return int(digits) if fits else 0
