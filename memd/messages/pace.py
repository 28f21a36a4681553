"""Limit how fast agents send, and how often two of them answer each other. Pure; only in memory.

``now`` is always in monotonic seconds.
"""

from collections import deque
from typing import NamedTuple

from memd.base.agents import BACK_AND_FORTH, BACK_AND_FORTH_SECONDS, MESSAGES_PER_MINUTE
from memd.base.recent import Recent
from memd.messages.errors import too_many_messages

_MINUTE = 60.0
_MOST_SENDERS = 1_000  # the limit of senders and pairs in memory; the oldest are removed


class Pace:
    """Counts the messages of each sender in the last minute.

    A sender is an agent's id; all unregistered senders together are 0.
    """

    def __init__(self) -> None:
        self._send_times: Recent[int, deque[float]] = Recent(_MOST_SENDERS)

    def count(self, sender: int, now: float) -> None:
        """Count one message of a sender.

        Raises Limit without counting if the sender sent ``MESSAGES_PER_MINUTE``.
        """
        times = self._send_times.setdefault(sender, deque())
        while times and times[0] <= now - _MINUTE:
            times.popleft()
        if len(times) >= MESSAGES_PER_MINUTE:
            raise too_many_messages(MESSAGES_PER_MINUTE, times[0] + _MINUTE - now)
        times.append(now)


class _Turn(NamedTuple):
    """One or more messages in a row of one of two agents: when the first was sent, and by whom."""

    at: float
    sender: int


class Exchanges:
    """Counts how often two agents answered each other since a person last prompted one of them."""

    def __init__(self) -> None:
        self._turns: Recent[frozenset[int], deque[_Turn]] = Recent(_MOST_SENDERS)  # by two agents

    def is_endless(self, sender: int, receiver: int, now: float) -> bool:
        """Return whether one more answer would be more than ``BACK_AND_FORTH`` in ten minutes."""
        turns = self._recent_turns(sender, receiver, now)
        answers = len(turns) - 1  # the first turn is no answer
        return bool(turns) and turns[-1].sender != sender and answers >= BACK_AND_FORTH

    def count(self, sender: int, receiver: int, now: float) -> None:
        """Count a delivered message; several messages of one sender in a row are one turn."""
        turns = self._recent_turns(sender, receiver, now)
        if not turns or turns[-1].sender != sender:
            turns.append(_Turn(now, sender))

    def prompted(self, agent: int) -> None:
        """Start counting again for all pairs with an agent, since a person prompted it."""
        for pair in tuple(self._turns):
            if agent in pair:
                self._turns.pop(pair, None)

    def _recent_turns(self, sender: int, receiver: int, now: float) -> deque[_Turn]:
        """Return the turns of two agents in the last ten minutes."""
        turns = self._turns.setdefault(frozenset((sender, receiver)), deque())
        while turns and turns[0].at <= now - BACK_AND_FORTH_SECONDS:
            turns.popleft()
        return turns
