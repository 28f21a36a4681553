"""What hooks have shown to sessions: leased with an answer, acknowledged by the next event. Blocks.

Rules of this file
- Only what a hook says that it has printed is acknowledged. The rest is queued again.
- A message that was shown shortened stays in the mailbox, to be read whole; no hook shows it again.
"""

from collections.abc import Iterable
from itertools import count

from msgspec import Struct

from memd.core.agents import LEASED_BYTES
from memd.messages import block
from memd.messages.mailboxes import LeaseHolder, Mailboxes, number_of


class _Shown(Struct):
    receipt: int
    numbers: tuple[int, ...]
    printed: bool = False


class HookLeases:
    """What the last event of each agent's session was given. An agent is its id."""

    def __init__(self, mailboxes: Mailboxes) -> None:
        self._mailboxes = mailboxes
        self._shown: dict[int, _Shown] = {}
        self._announced: dict[int, set[int]] = {}
        self._undecided: dict[int, int] = {}
        self._receipts = count(1)

    def holds(self, agent: int) -> bool:
        """Say whether an agent's last event was given messages."""
        return agent in self._shown

    def lease(self, agent: int, limit: int, room: int) -> tuple[str, int]:
        """Lease messages for one event; return them as a block, and the receipt."""
        announced = self._announced.get(agent, set())
        waiting = self._mailboxes.next(agent, limit, LEASED_BYTES, announced.__contains__)
        laid = block.lay_out(waiting.messages, room)
        if not laid.text:
            return "", 0
        whole = {number_of(each) for each in laid.whole}
        holder = LeaseHolder(("hook", agent), lambda: True)
        self._mailboxes.take(
            agent, holder, [each for each in waiting.copies if each.message in whole]
        )
        if laid.shortened:
            self._announced.setdefault(agent, set()).update(map(number_of, laid.shortened))
        receipt = next(self._receipts)
        self._shown[agent] = _Shown(receipt, tuple(whole))
        return laid.text, receipt

    def printed(self, receipt: int) -> None:
        """Note that the block of a receipt has been printed."""
        for shown in tuple(self._shown.values()):  # a step may be on its way in its thread
            if shown.receipt == receipt:
                shown.printed = True

    def over(self, agent: int) -> tuple[int, ...]:
        """Return what is read now, since the session goes on; the rest is queued again."""
        shown = self._shown.pop(agent, None)
        if shown is None or not shown.printed:
            self._mailboxes.release(("hook", agent))
            return ()
        return shown.numbers

    def back(self, agent: int) -> None:
        """Queue again what an agent was given last; all is shown anew."""
        self._shown.pop(agent, None)
        self._announced.pop(agent, None)
        self._mailboxes.release(("hook", agent))

    def held(self, agents: Iterable[int]) -> None:
        """Count messages to agents that wait for the person."""
        for agent in agents:
            self._undecided[agent] = self._undecided.get(agent, 0) + 1

    def undecided(self, agent: int) -> int:
        """Return how many messages to an agent began to wait since the last time."""
        return self._undecided.pop(agent, 0)
