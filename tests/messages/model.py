"""A pure model of the queue of messages, made from what is promised and not from the program.

Where the promise leaves room (a message that expires while it is leased, a mailbox that is full to
within a kibibyte, answers back and forth) the model says what may be and takes what is.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

LEASE = 30.0
MESSAGES, SIZE, SLACK = 200, 1024 * 1024, 1024
ANSWERS, ANSWER_SECONDS = 8, 600.0
SENDS, SEND_SECONDS = 60, 60.0
WAITING = ("queued", "leased", "held")
ENDS = ("refused", "expired")


@dataclass(slots=True)
class Copy:
    """One receiver's copy of a message; ``loose`` once it was held, as its order then is."""

    message: str
    number: int
    sender: str
    receiver: str
    body: str
    at: float
    until: float
    state: str = "queued"
    deliveries: int = 0
    lease_until: float = 0.0
    loose: bool = False
    unsure: tuple[str, ...] = ()
    answered: bool = False  # its end was the answer of the send, which nobody has to tell again

    @property
    def waits(self) -> bool:
        """Whether it has not ended."""
        return self.state in WAITING


@dataclass(slots=True)
class Model:
    """All copies that were ever answered for; time is seconds since the start."""

    now: float = 0.0
    copies: list[Copy] = field(default_factory=list)
    ended: set[str] = field(default_factory=set)
    sends: list[tuple[str, float]] = field(default_factory=list)  # by whom and when

    def of(self, receiver: str) -> list[Copy]:
        """Return the copies of a receiver that have not ended."""
        return [each for each in self.copies if each.receiver == receiver and each.waits]

    def by_message(self, message: str) -> list[Copy]:
        """Return the copies of a message."""
        return [each for each in self.copies if each.message == message]

    def advance(self, seconds: float) -> None:
        """Let time go by: leases lapse, messages expire."""
        self.now += seconds
        for each in self.copies:
            self._lapse(each)

    def _lapse(self, each: Copy) -> None:
        expired = each.waits and each.until <= self.now
        if each.state == "leased" and each.lease_until <= self.now:
            each.state = "expired" if expired else "queued"
        elif each.state == "leased" and expired:
            each.unsure = ("leased", "expired")
        elif expired:
            each.state = "expired"

    def accepted(self, each: Copy) -> None:
        """Queue what a person accepted: from now on it has the time that its sender gave it."""
        each.state, each.until = "queued", self.now + each.until - each.at

    @staticmethod
    def unlease(each: Copy) -> None:
        """End a lease: the copy is queued again."""
        if each.state == "leased":
            each.state = "queued"

    def lease(self, each: Copy) -> None:
        """Give a copy to its receiver."""
        each.state, each.lease_until = "leased", self.now + LEASE
        each.deliveries += 1

    def deliverable(self, receiver: str) -> dict[str, list[Copy]]:
        """Return what a receiver may get now, by sender in order."""
        results: dict[str, list[Copy]] = {}
        for each in self.of(receiver):
            results.setdefault(each.sender, []).append(each)
        return {
            sender: [each for each in pair if each.state == "queued"]
            for sender, pair in results.items()
            if is_loose(pair) or not any(each.state == "leased" for each in pair)
        }

    def full(self, receiver: str, size: int, *, held: bool) -> bool | None:
        """Say whether a mailbox has no room for a body, ``None`` where it is a matter of bytes."""
        mine = [each for each in self.of(receiver) if (each.state == "held") == held]
        used = sum(len(each.body) for each in mine) + size
        if len(mine) >= MESSAGES or used > SIZE:
            return True
        return None if used + SLACK * (len(mine) + 1) > SIZE else False

    def back_and_forth(self, one: str, other: str) -> int:
        """Return how many messages of a pair answered one of the other side, as far as counts."""
        pair = [each for each in self.copies if {each.sender, each.receiver} == {one, other}]
        recent = [each for each in pair if each.at + ANSWER_SECONDS > self.now]
        return sum(a.sender != b.sender for a, b in pairwise(recent))

    def may_send(self, sender: str) -> bool:
        """Say whether a sender has messages left in this minute."""
        recent = [at for who, at in self.sends if who == sender]
        return sum(at + SEND_SECONDS > self.now for at in recent) < SENDS

    def to_tell(self) -> Iterator[tuple[str, str]]:
        """Yield each sender and message whose end it has to hear of."""
        for each in self.copies:
            if (
                each.state in ENDS
                and not each.answered
                and each.sender not in self.ended | {"shell"}
            ):
                yield each.sender, each.message


def is_loose(pair: list[Copy]) -> bool:
    """Say whether copies of a pair were accepted by a person, in any order."""
    return any(each.loose for each in pair)
