"""How fast agents may send, and how long two may answer each other. Pure; in memory alone.

``now`` is always in monotonic seconds.
"""

from collections import deque

from memd.core.agents import BACK_AND_FORTH, BACK_AND_FORTH_SECONDS, BROADCASTS_PER_MINUTE
from memd.core.recent import Recent
from memd.messages.errors import TooManyMessagesError

_MINUTE = 60.0
_SENDERS = 1_000  # remembered; the oldest are forgotten


class Pace:
    """How much each sender sent in the last minute; a sender is an agent's id, 0 for all others."""

    def __init__(self) -> None:
        self._sent: Recent[tuple[int, bool], deque[float]] = Recent(_SENDERS)

    def count(self, sender: int, limit: int, now: float, *, broadcast: bool) -> None:
        """Count one message. Raises TooManyMessagesError, and counts nothing then."""
        kinds = ((False, limit, "messages"), (True, BROADCASTS_PER_MINUTE, "messages to all"))
        sent = [(self._recent((sender, kind), now), most, what) for kind, most, what in kinds]
        counted = sent if broadcast else sent[:1]
        for times, most, what in counted:
            if len(times) >= most:
                raise TooManyMessagesError(most, what, times[0] + _MINUTE - now)
        for times, _, _ in counted:
            times.append(now)

    def _recent(self, key: tuple[int, bool], now: float) -> deque[float]:
        times = self._sent.setdefault(key, deque())
        while times and times[0] <= now - _MINUTE:
            times.popleft()
        return times


class Exchanges:
    """Answers back and forth between two agents since a person last spoke to either."""

    def __init__(self) -> None:
        self._turns: Recent[frozenset[int], deque[tuple[float, int]]] = Recent(_SENDERS)

    def is_endless(self, sender: int, receiver: int, now: float) -> bool:
        """Say whether one more answer would be one too many."""
        turns = self._recent(sender, receiver, now)
        answers = len(turns) - 1  # the first one answered nobody
        return bool(turns) and turns[-1][1] != sender and answers >= BACK_AND_FORTH

    def count(self, sender: int, receiver: int, now: float) -> None:
        """Count a message that went out; several of one sender in a row are one turn."""
        turns = self._recent(sender, receiver, now)
        if not turns or turns[-1][1] != sender:
            turns.append((now, sender))

    def prompted(self, agent: int) -> None:
        """Begin anew with all that an agent exchanges: a person spoke to it."""
        for pair in [pair for pair in tuple(self._turns) if agent in pair]:
            self._turns.pop(pair, None)

    def _recent(self, sender: int, receiver: int, now: float) -> deque[tuple[float, int]]:
        turns = self._turns.setdefault(frozenset((sender, receiver)), deque())
        while turns and turns[0][0] <= now - BACK_AND_FORTH_SECONDS:
            turns.popleft()
        return turns
