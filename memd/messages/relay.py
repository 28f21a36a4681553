"""Messages for agents of another memd of the same user, at another socket. Blocks, under the lock.

Rules of this file
- A message goes to a socket that the user lists in ``messages.peers``, and one hop: what another
  memd passes on is for an agent of this one.
- The copy is ours until the other memd has stored the message, under an id made of ours, so that it
  is stored once however often it is passed on. From then on our copy says what theirs does.
- A copy for another memd is that of receiver 0, whose address is the socket and the agent there.
"""

import re
from collections.abc import Awaitable, Callable

from memd.core.agents import (
    MAILBOX_BYTES,
    MAILBOX_MESSAGES,
    TTL_SHORTEST,
    MessageKind,
    MessageState,
)
from memd.core.settings import MessagesSettings
from memd.messages import kinds, names
from memd.messages.ending import Endings, Happened
from memd.messages.errors import (
    AddressRefusedError,
    MailboxFullError,
    MessageRefusedError,
    PeerRefusedError,
)
from memd.messages.names import PeerAddress
from memd.messages.values import RelayAnswer, RelayedMessage, SendRequest
from memd.state.tables import MessageCopy, MessageTable

SCHEME = "uds:"
_ELSEWHERE = 0  # the receiver of each copy that is for another memd
_ENDS = (MessageState.READ, MessageState.REFUSED, MessageState.EXPIRED, MessageState.PARKED)
_KNOWN = re.compile(r" there as (m[0-9]{1,18})$")
_HOP_CHARACTERS = 500
_MAILBOXES = 5  # as much as so many agents' waits for all of one memd's
_ONE_HOP = "what another memd passes on goes to an agent of this one"
_NOT_LISTED = "it is not listed in messages.peers"
_TEXT_ONLY = "only text goes to another memd"
_NO_HOP = "a hop is uds:, a socket's path, # and the sender's address there"
_NO_PEERS = "no other memd is reached from here"

CheckPeer = Callable[[str], None]


def _no_peers(path: str) -> None:
    """Refuse every socket. Raises PeerRefusedError."""
    raise PeerRefusedError(path, _NO_PEERS)


def place(
    request: SendRequest, kind: MessageKind, settings: MessagesSettings, check_peer: CheckPeer
) -> PeerAddress | None:
    """Return where a message goes that is for another memd, ``None`` for any other.

    Raises PeerRefusedError, MessageRefusedError, AddressRefusedError.
    """
    if request.hop:
        _check_hop(request)
    if not request.to.startswith(SCHEME):
        return None
    there = names.parse(request.to)
    if not isinstance(there, PeerAddress):
        raise AddressRefusedError(request.to, _NO_HOP)
    if kind is not MessageKind.TEXT:
        raise MessageRefusedError(_TEXT_ONLY)
    if there.path not in settings.peers:
        raise PeerRefusedError(there.path, _NOT_LISTED)
    check_peer(there.path)
    return there


def copy_for(
    there: PeerAddress, request: SendRequest, size: int, now: float, table: MessageTable
) -> MessageCopy:
    """Return the copy that waits for another memd. Raises MailboxFullError."""
    at_peer = f"{SCHEME}{there.path}#"
    waiting = [each for each in table.of_receiver(_ELSEWHERE) if each.address.startswith(at_peer)]
    theirs = [each for each in waiting if each.address == request.to]
    for copies, mailboxes in ((theirs, 1), (waiting, _MAILBOXES)):
        used = size + sum(copy.size for copy in copies)
        if len(copies) >= mailboxes * MAILBOX_MESSAGES or used > mailboxes * MAILBOX_BYTES:
            raise MailboxFullError(there.path)
    until = now + kinds.lifetime(MessageKind.TEXT, request.ttl)
    state = MessageState.QUEUED
    return MessageCopy(0, _ELSEWHERE, request.to, 0, state, size=size, until=until)


class Relays:
    """What waits for other memds.

    ``own`` is the path of this one's socket, ``check_peer`` refuses that of another where it may
    not be used, and ``pass_on`` tries what waits for a socket now.
    """

    own = ""
    check_peer: CheckPeer
    pass_on: Callable[[str], Awaitable[object]]

    def __init__(
        self,
        endings: Endings,
        now: Callable[[], float],
        settings: Callable[[str], MessagesSettings],
    ) -> None:
        self._settings = settings
        self.check_peer = _no_peers  # until somebody brings others
        self._endings = endings
        self._table = endings.mailboxes.table
        self._now = now

    def waiting(self) -> tuple[RelayedMessage, ...]:
        """Return the messages that wait for another memd or have not ended there, in order."""
        copies = {each.message: each for each in self._table.of_receiver(_ELSEWHERE)}
        result = []
        for stored in self._table.get(tuple(copies)):
            copy = copies[stored.number]
            there = names.parse(copy.address)
            if not isinstance(there, PeerAddress):
                continue
            known = _KNOWN.search(copy.reason)
            message = RelayedMessage(
                number=stored.number,
                path=there.path,
                to=there.address,
                hop=f"{SCHEME}{self.own}#{stored.sender.address}",
                root=stored.sender.root,
                summary=stored.summary,
                body=stored.body,
                ttl=max(TTL_SHORTEST, copy.until - self._now()),
                # Numbers begin anew where a state file was deleted; the time tells them apart.
                request_id=f"m{stored.number}-{stored.sent:.3f}",
                known=known[1] if known else "",
                listed=there.path in self._settings(stored.sender.root).peers,
            )
            result.append(message)
        return tuple(result)

    def apply(self, message: RelayedMessage, answer: RelayAnswer, happened: Happened) -> None:
        """Have our copy say what the other memd answered."""
        number = message.number
        open_ = [
            copy
            for copy in self._table.copies(number)
            if copy.receiver == _ELSEWHERE and copy.ended is None
        ]
        if answer.state in _ENDS:
            self._endings.end(open_, MessageState(answer.state), answer.reason, happened)
        elif open_:
            there = f"{answer.state} there as {answer.id}"
            reason = there if answer.id else f"not stored there yet: {answer.reason}"
            changed = any(copy.reason != reason for copy in open_)
            if changed and (answer.id or not message.known):
                self._table.note(number, _ELSEWHERE, reason)


def _check_hop(request: SendRequest) -> None:
    """Check what another memd passes on. Raises PeerRefusedError, AddressRefusedError."""
    if request.to == "*" or request.to.startswith(SCHEME):
        raise PeerRefusedError(request.to, _ONE_HOP)
    path, mark, sender = request.hop.removeprefix(SCHEME).rpartition("#")
    whole = request.hop.startswith(f"{SCHEME}/") and path and mark and sender
    if not whole or len(request.hop) > _HOP_CHARACTERS or not request.hop.isprintable():
        raise AddressRefusedError(request.hop, _NO_HOP)
