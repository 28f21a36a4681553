"""List stored messages with the states of their copies, and decide about held ones. Blocks.

A message has one copy for each receiver. A held one waits until the person accepts or refuses it.
"""

from memd.base.agents import MessageKind, MessageState
from memd.base.inbox import Answer, InboxItem, ItemKind, PlacedItem
from memd.base.text import iso_time
from memd.messages.ending import Arrival, Endings, StepEffects
from memd.messages.errors import message_not_found, message_not_held
from memd.messages.mailboxes import number_of
from memd.messages.values import LoggedMessage, Receiver, Sent
from memd.state.messages import MessageCopy, StoredMessage

_LISTED = 200  # held messages in one list
# A message has the first of these states that one of its copies has.
_WAITING_STATES = (MessageState.LEASED, MessageState.QUEUED, MessageState.HELD)


class StoredMessages(Endings):
    """Lists messages and decides about those that are held."""

    def entry(self, message: str) -> LoggedMessage:
        """Return a message without its body, with the state of each copy. Raises NotFound."""
        return self._log_entry(self._find(message))

    def log(
        self, *, agent: int = 0, root: str = "", state: str = "", before: str = "", limit: int = 50
    ) -> tuple[LoggedMessage, ...]:
        """Return messages without their bodies, newest first, at most ``limit``.

        They are of one agent or project, in one state, and older than the message ``before``; 0 and
        "" do not restrict them.
        """
        rows = self._table.log(
            agent=agent, root=root, state=state, before=number_of(before), limit=limit
        )
        return tuple(map(self._log_entry, rows))

    def held(self, root: str = "", message: str = "") -> tuple[PlacedItem, ...]:
        """Return the newest messages that are held, as items with their receivers' directories.

        They are those of a project or of all, or the one ``message``. Raises NotFound and Conflict
        for that.
        """
        if message:
            rows: tuple[StoredMessage, ...] = (self._find_held(message)[0],)
        else:
            rows = self._table.log(root=root, state=MessageState.HELD.value, limit=_LISTED)
        return tuple(map(self._item, rows))

    def _item(self, stored: StoredMessage) -> PlacedItem:
        """Return a held message as an item, with the memory directory of its first receiver."""
        _, copies = self._find_held(f"m{stored.number}")
        receiver, sender = self.register.get(copies[0].receiver), stored.sender
        to = copies[0].address if len(copies) == 1 else f"{len(copies)} agents"
        kind = "" if stored.kind is MessageKind.TEXT else f", {stored.kind.replace('_', ' ')}"
        item = InboxItem(
            id=f"m{stored.number}",
            kind=ItemKind.MESSAGE,
            project=receiver.root if receiver else sender.root,
            at=iso_time(stored.sent),
            title=f"{sender.address} writes to {to}{kind}.",
            text="\n\n".join(filter(None, (stored.summary, stored.body))),
            origin=", ".join(filter(None, (sender.address, sender.client, sender.project))),
            choices=(Answer.ACCEPT, Answer.REFUSE),
            why=tuple(dict.fromkeys(copy.reason for copy in copies if copy.reason)),
            person_only=True,
        )
        return receiver.directory if receiver else "", item

    def decide(self, message: str, effects: StepEffects, *, accept: bool) -> Sent:
        """Queue or refuse the held copies of a message.

        Raises NotFound and Conflict.
        """
        stored, copies = self._find_held(message)
        number = stored.number
        for copy in copies:
            receiver = self.register.get(copy.receiver)
            if accept and receiver is not None and receiver.ended is None:
                # Its lifetime starts again, as it may have been held for longer.
                until = self.mailboxes.steady_now() + stored.ttl
                if self._table.accept(number, copy.receiver, until):
                    self.mailboxes.recount(copy.receiver)
                    effects.due = min(effects.due, until)
                    sender = stored.sender.address
                    effects.arrived.append(Arrival(receiver, number, sender, stored.summary))
            else:
                self.end([copy], MessageState.REFUSED, "refused by the person", effects)
        return self._describe_sent(number)

    def _find(self, message: str) -> StoredMessage:
        """Return a message that is no notice of memd's own. Raises NotFound."""
        stored = self._find_stored(number_of(message))
        if stored is None or stored.kind is MessageKind.NOTICE:
            raise message_not_found(message)
        return stored

    def _find_held(self, message: str) -> tuple[StoredMessage, list[MessageCopy]]:
        """Return a message and its held copies.

        Raises NotFound and Conflict.
        """
        stored = self._find(message)
        copies = self._table.copies(stored.number)
        held = [copy for copy in copies if copy.state is MessageState.HELD]
        if not held:
            raise message_not_held(message, self._describe_sent(stored.number).state)
        return stored, held

    def _find_stored(self, number: int) -> StoredMessage | None:
        """Return the message with a number, ``None`` if there is none."""
        return next(iter(self._table.get([number])), None)

    def _describe_sent(self, number: int) -> Sent:
        """Return the id and state of a message, with the state of each copy, for its sender."""
        receivers = self._receivers_of(number)
        return Sent(f"m{number}", _combined_state(receivers), receivers)

    def _receivers_of(self, number: int) -> tuple[Receiver, ...]:
        """Return the address, state and reason of each copy of a message."""
        return tuple(
            Receiver(copy.address, self._shown_state(copy).value, copy.reason)
            for copy in self._table.copies(number)
        )

    def _shown_state(self, copy: MessageCopy) -> MessageState:
        """Return the state of a copy. A lease is only in memory, so it is looked up there."""
        is_queued = copy.state is MessageState.QUEUED
        if is_queued and self.mailboxes.is_leased(copy.message, copy.receiver):
            return MessageState.LEASED
        return copy.state

    def _log_entry(self, stored: StoredMessage) -> LoggedMessage:
        """Return a message as the log shows it, with the state of each copy."""
        receivers = self._receivers_of(stored.number)
        return LoggedMessage(
            f"m{stored.number}",
            stored.sender.address,
            stored.kind.value,
            stored.summary,
            iso_time(stored.sent),
            _combined_state(receivers),
            receivers,
        )


def _combined_state(receivers: tuple[Receiver, ...]) -> str:
    """Return the state of a message: that of a copy that still waits, or else of the first one.

    A message without copies counts as read.
    """
    states = [receiver.state for receiver in receivers]
    for state in _WAITING_STATES:
        if state in states:
            return state.value
    return states[0] if states else MessageState.READ.value
