"""Lease messages to the hooks of sessions and acknowledge those that a hook printed. Blocks.

A hook runs at an event of a client's session and prints a block of messages for its model.

Rules of this file
- The next event of the session acknowledges a block if the hook said that it printed it. Otherwise
  the messages are queued again.
- A message that was shown in its short form stays in the mailbox to be read whole; no hook shows it
  again.
"""

from msgspec import Struct

from memd.base.agents import LEASED_BYTES
from memd.messages import block
from memd.messages.mailboxes import LeaseHolder, Mailboxes, number_of


class ShownBlock(Struct):
    """The block of an event, with the numbers of the messages that are whole in it.

    ``printed`` is set once the hook says that it printed the block.
    """

    text: str
    numbers: tuple[int, ...]
    printed: bool = False


class HookLeases:
    """The messages that the last event of each agent's session got; ``agent`` is an agent's id."""

    def __init__(self, mailboxes: Mailboxes) -> None:
        self._mailboxes = mailboxes
        self._last_blocks: dict[int, ShownBlock] = {}
        self._announced: dict[int, set[int]] = {}  # messages that were shown in their short form

    def has_messages(self, agent: int) -> bool:
        """Return whether the last event of an agent's session got messages."""
        return agent in self._last_blocks

    def lease(self, agent: int, limit: int, room: int) -> ShownBlock | None:
        """Lease up to ``limit`` messages for one event; return their block, ``None`` for none.

        The block has at most ``room`` UTF-16 units.
        """
        announced = self._announced.get(agent, set())  # not shown again
        waiting = self._mailboxes.next_messages(agent, limit, LEASED_BYTES, announced.__contains__)
        layout = block.lay_out(waiting.messages, room)
        if not layout.text:
            return None
        whole_messages = {number_of(id_) for id_ in layout.whole}
        holder = LeaseHolder(("hook", agent), lambda: True)  # the next event ends the lease
        copies = [copy for copy in waiting.copies if copy.message in whole_messages]
        self._mailboxes.lease_copies(agent, holder, copies)
        if layout.shortened:
            self._announced.setdefault(agent, set()).update(map(number_of, layout.shortened))
        shown = self._last_blocks[agent] = ShownBlock(layout.text, tuple(whole_messages))
        return shown

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
