"""The queue of each agent: leased, acknowledged, parked, expired. Blocks; one thread at a time.

Rules of this file
- A lease is in memory alone. It ends with its time, its holder or the daemon; the copy is then
  queued again, so no clock that is set keeps a message away.
- While a copy is leased, later ones of the same sender to the same receiver wait, other than
  control kinds: their order holds across deliveries.
- An acknowledgement is good while the copy has not ended, leased or not.
- A copy that was delivered ``DELIVERIES`` times is parked instead of delivered again. Its last
  lease outlives its connection: who lost that may still say that it has read.
- Counts are in memory. What failed may have come true on the disk, so they are read anew then.
- Copies expire by a clock that nobody sets: the time of the start, and what has passed since.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from memd.core.agents import DELIVERIES, LEASED_BYTES, LEASED_MESSAGES, AgentMessage, MessageState
from memd.state.tables import MessageCopy, MessageTable, Notice, StoredMessage

Copies = Iterable[tuple[int, int]]  # each by message and receiver


class LeaseHolder(Struct, frozen=True):
    """Who reads: ``name`` tells one from another, ``alive`` whether it can still acknowledge.

    ``until`` is when its lease ends, in monotonic seconds; ``None`` for when it says so.
    """

    name: object
    alive: Callable[[], bool]
    until: float | None = None


class _Lease(Struct, frozen=True):
    holder: LeaseHolder
    copy: MessageCopy


class NextMessages(Struct, frozen=True):
    """Messages with their copies, and whether more wait that could be leased."""

    copies: tuple[MessageCopy, ...] = ()
    messages: tuple[AgentMessage, ...] = ()
    more: bool = False


class Mailboxes:
    """The mailboxes of all agents. ``now`` is seconds since 1970, ``monotonic`` never goes back."""

    def __init__(
        self, table: MessageTable, now: Callable[[], float], monotonic: Callable[[], float]
    ) -> None:
        self.table = table
        self._now = now
        self._monotonic = monotonic
        self._leases: dict[tuple[int, int], _Lease] = {}
        self._unread: dict[int, int] | None = None
        self._doubtful = False
        self._offset = now() - monotonic()

    def steady(self) -> float:
        """Return seconds since 1970 as they were at the start, and what has passed since."""
        return self._offset + self._monotonic()

    def doubt(self) -> None:
        """Note that a transaction failed: what is counted may not be what is stored."""
        self._doubtful = True

    def load(self) -> None:
        """Count what waits in each mailbox; ``unread`` needs no disk from then on."""
        if self._unread is None or self._doubtful:
            self._unread = self.table.unread()
            self._doubtful = False

    def unread(self, receiver: int) -> int:
        """Return how many messages wait for a receiver, leased ones among them."""
        return (self._unread or {}).get(receiver, 0)

    def recount(self, receiver: int) -> None:
        """Count anew what waits for a receiver."""
        counts = self._unread if self._unread is not None else {}
        counts[receiver] = self.table.unread_of(receiver)
        if not counts[receiver]:
            del counts[receiver]

    def added(self, receiver: int) -> None:
        """Count one copy more that waits for a receiver."""
        if self._unread is not None:
            self._unread[receiver] = self.unread(receiver) + 1

    def next(
        self,
        receiver: int,
        limit: int = LEASED_MESSAGES,
        size: int = LEASED_BYTES,
        skip: Callable[[int], bool] | None = None,
    ) -> NextMessages:
        """Return a receiver's next messages; nobody has them before ``take``.

        ``size`` is bytes of all together, of which the first may have more. ``skip`` says which
        numbers not to return.
        """
        if self._unread is not None and not self.unread(receiver):
            return NextMessages()
        self.void()
        copies = self._open(receiver, -1 if skip else limit + 1)
        if skip is not None:
            copies = [each for each in copies if not skip(each.message)]
        chosen: list[MessageCopy] = []
        total = 0
        for copy in copies:
            if len(chosen) == limit or (chosen and total + copy.size > size):
                break
            chosen.append(copy)
            total += copy.size
        stored = {each.number: each for each in self.table.get([c.message for c in chosen])}
        chosen = [copy for copy in chosen if copy.message in stored]
        now = self._now()
        messages = tuple(as_message(stored[c.message], now, c.deliveries + 1) for c in chosen)
        return NextMessages(tuple(chosen), messages, more=len(copies) > len(chosen))

    def take(self, receiver: int, holder: LeaseHolder, copies: Sequence[MessageCopy]) -> None:
        """Lease copies that ``next`` returned."""
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
        """Lease the next messages of a receiver and return them."""
        result = self.next(receiver, limit, size)
        self.take(receiver, holder, result.copies)
        return result

    def acknowledge(self, receiver: int, numbers: Sequence[int]) -> frozenset[tuple[int, int]]:
        """End copies as read; return those that had not ended and had been delivered."""
        waiting = {each.message: each for each in self.table.waiting(receiver)}
        good = [
            (number, receiver)
            for number in dict.fromkeys(numbers)
            if number in waiting and waiting[number].deliveries
        ]
        return self.end(good, MessageState.READ)

    def end(
        self,
        copies: Copies,
        state: MessageState,
        reason: str = "",
        notices: Mapping[tuple[int, int], Notice] | None = None,
    ) -> frozenset[tuple[int, int]]:
        """End copies and store the notices of those; return which had not ended before."""
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
        """Queue again what a holder has leased; return whose mailboxes that concerns."""
        return self._forget(lambda lease: lease.holder.name == name)

    def leased(self, number: int, receiver: int) -> bool:
        """Say whether a copy is leased now."""
        lease = self._leases.get((number, receiver))
        return lease is not None and self._holds(lease)

    def lease_end(self, receiver: int = 0) -> float | None:
        """Return when the next lease ends by its time, in monotonic seconds; of one receiver.

        ``None`` where none does.
        """
        ends = (
            lease.holder.until
            for (_, owner), lease in tuple(self._leases.items())  # a step may be on its way
            if receiver in (0, owner)
        )
        return min((end for end in ends if end is not None), default=None)

    def expired(self) -> tuple[MessageCopy, ...]:
        """Return copies whose time is over and that nobody has leased."""
        return tuple(
            copy
            for copy in self.table.overdue(self.steady())
            if not self.leased(copy.message, copy.receiver)
        )

    def void(self) -> frozenset[int]:
        """Forget leases that have ended; return whose mailboxes that concerns."""
        return self._forget(lambda lease: not self._holds(lease))

    def exhausted(self, receiver: int) -> tuple[tuple[int, int], ...]:
        """Return a receiver's copies that were delivered often enough and are not leased."""
        return tuple(
            (copy.message, receiver)
            for copy in self.table.waiting(receiver, deliveries=(DELIVERIES, 1_000_000))
            if not self.leased(copy.message, receiver)
        )

    def _forget(self, over: Callable[[_Lease], bool]) -> frozenset[int]:
        """Forget leases; return whose mailboxes that concerns."""
        gone = [key for key, lease in self._leases.items() if over(lease)]
        for key in gone:
            del self._leases[key]
        return frozenset(receiver for _, receiver in gone)

    def _open(self, receiver: int, most: int) -> list[MessageCopy]:
        """Return the copies that may be leased now, at least ``most`` if there are so many."""
        busy = {
            lease.copy.sender
            for (_, owner), lease in self._leases.items()
            if owner == receiver and not lease.copy.control
        }
        leased = any(owner == receiver for _, owner in self._leases)
        most = -1 if leased else most  # any of the others may have to wait for one that is leased
        return [
            copy
            for copy in self.table.waiting(receiver, most=most, deliveries=(0, DELIVERIES))
            if (copy.message, receiver) not in self._leases
            and (copy.control or copy.sender not in busy)
        ]

    def _holds(self, lease: _Lease) -> bool:
        until = lease.holder.until
        if until is None:
            return lease.holder.alive()
        is_last = lease.copy.deliveries + 1 >= DELIVERIES
        return self._monotonic() < until and (is_last or lease.holder.alive())


def as_message(stored: StoredMessage, now: float, delivery: int) -> AgentMessage:
    """Return a message as its receiver gets it."""
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
    """Return the number of a message's id, 0 for what is none."""
    digits = message.removeprefix("m")
    fits = message.startswith("m") and digits.isascii() and digits.isdigit() and len(digits) < 19  # noqa: PLR2004 - SQLite's integers
    return int(digits) if fits else 0
