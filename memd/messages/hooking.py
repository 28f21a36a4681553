"""Lease messages to the hooks of sessions and acknowledge those that a hook printed. Blocks.

A hook runs at an event of a client's session and prints a block of messages for its model. A
receipt is the number of such a block.

Rules of this file
- The next event of the session acknowledges a block if the hook said that it printed it. Otherwise
  the messages are queued again.
- A message that was shown in its short form stays in the mailbox to be read whole; no hook shows it
  again.
"""

from collections.abc import Iterable
from itertools import count

from msgspec import Struct

from memd.core.agents import LEASED_BYTES
from memd.messages import block
from memd.messages.mailboxes import LeaseHolder, Mailboxes, number_of


class _ShownBlock(Struct):
    """The block of the last event: its receipt and the numbers of messages that are whole in it.

    ``printed`` says whether the hook said that it printed the block.
    """

    receipt: int
    numbers: tuple[int, ...]
    printed: bool = False


class HookLeases:
    """The messages that the last event of each agent's session got; ``agent`` is an agent's id."""

    def __init__(self, mailboxes: Mailboxes) -> None:
        self._mailboxes = mailboxes
        self._last_blocks: dict[int, _ShownBlock] = {}
        self._announced: dict[int, set[int]] = {}  # messages that were shown in their short form
        self._held_counts: dict[int, int] = {}  # held messages that the person does not know of yet
        self._receipts = count(1)  # 0 stands for no block

    def has_messages(self, agent: int) -> bool:
        """Return whether the last event of an agent's session got messages."""
        return agent in self._last_blocks

    def lease(self, agent: int, limit: int, room: int) -> tuple[str, int]:
        """Lease up to ``limit`` messages for one event; return their block and its receipt.

        The block has at most ``room`` UTF-16 units. It is "", with receipt 0, if nothing fits.
        """
        announced = self._announced.get(agent, set())  # not shown again
        waiting = self._mailboxes.next_messages(agent, limit, LEASED_BYTES, announced.__contains__)
        layout = block.lay_out(waiting.messages, room)
        if not layout.text:
            return "", 0
        whole_messages = {number_of(id_) for id_ in layout.whole}
        holder = LeaseHolder(("hook", agent), lambda: True)  # the next event ends the lease
        copies = [copy for copy in waiting.copies if copy.message in whole_messages]
        self._mailboxes.lease_copies(agent, holder, copies)
        if layout.shortened:
            self._announced.setdefault(agent, set()).update(map(number_of, layout.shortened))
        receipt = next(self._receipts)
        self._last_blocks[agent] = _ShownBlock(receipt, tuple(whole_messages))
        return layout.text, receipt

    def printed(self, receipt: int) -> None:
        """Note that a hook printed the block with this receipt."""
        blocks = tuple(self._last_blocks.values())  # a snapshot: a step in a thread may change it
        for shown in blocks:
            if shown.receipt == receipt:
                shown.printed = True

    def finish_event(self, agent: int) -> tuple[int, ...]:
        """Return the numbers of the last event's messages, which were read if it printed them.

        Messages of a block that was not printed are queued again.
        """
        shown = self._last_blocks.pop(agent, None)
        if shown is None or not shown.printed:
            self._mailboxes.release(("hook", agent))
            return ()
        return shown.numbers

    def requeue(self, agent: int) -> None:
        """Queue an agent's last messages again, and let short forms be shown again.

        It is called if the session ended or starts with an empty context.
        """
        self._last_blocks.pop(agent, None)
        self._announced.pop(agent, None)
        self._mailboxes.release(("hook", agent))

    def count_held(self, agents: Iterable[int]) -> None:
        """Count one held message, which a person must decide, for each agent in the list."""
        for agent in agents:
            self._held_counts[agent] = self._held_counts.get(agent, 0) + 1

    def take_held_count(self, agent: int) -> int:
        """Return how many messages to an agent were held since the last call."""
        return self._held_counts.pop(agent, 0)
