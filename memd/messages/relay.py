"""Keep messages for agents of another memd (a peer) until it has them. Blocks, under the lock.

Rules of this file
- A peer is a memd of the same user, whose socket the user lists in ``messages.peers``. Messages go
  one hop: a message from a peer can only be for an agent of this memd.
- A peer stores a message under a request id made from our id, so it stores it only once, however
  often it is sent. From then on our copy has the state of the peer's copy.
- A copy for a peer has receiver 0. Its address is the socket and the agent's address there.
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
from memd.messages.ending import Endings, StepEffects
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
_PEER = 0  # the receiver of each copy for a peer
_END_STATES = (MessageState.READ, MessageState.REFUSED, MessageState.EXPIRED, MessageState.PARKED)
_ID_AT_PEER = re.compile(r" there as (m[0-9]{1,18})$")
_HOP_CHARACTERS = 500
_PEER_MAILBOXES = 5  # all agents of one peer have the room of this many mailboxes here
_ONE_HOP = "what another memd passes on goes to an agent of this one"
_NOT_LISTED = "it is not listed in messages.peers"
_TEXT_ONLY = "only text goes to another memd"
_NO_HOP = "a hop is uds:, a socket's path, # and the sender's address there"
_NO_PEERS = "no other memd is reached from here"

CheckPeer = Callable[[str], None]


def _no_peers(path: str) -> None:
    """Raise PeerRefusedError for every socket."""
    raise PeerRefusedError(path, _NO_PEERS)


def peer_of(
    request: SendRequest, kind: MessageKind, settings: MessagesSettings, check_peer: CheckPeer
) -> PeerAddress | None:
    """Return the address of a message for a peer, ``None`` if the message is for this memd.

    Raises PeerRefusedError, MessageRefusedError or AddressRefusedError if it may not be sent there.
    """
    if request.hop:
        _check_hop(request)
    if not request.to.startswith(SCHEME):
        return None
    address = names.parse(request.to)
    if not isinstance(address, PeerAddress):
        raise AddressRefusedError(request.to, _NO_HOP)
    if kind is not MessageKind.TEXT:
        raise MessageRefusedError(_TEXT_ONLY)
    if address.path not in settings.peers:
        raise PeerRefusedError(address.path, _NOT_LISTED)
    check_peer(address.path)
    return address


def peer_copy(
    peer: PeerAddress, request: SendRequest, size: int, now: float, table: MessageTable
) -> MessageCopy:
    """Return the copy of a message for a peer, of ``size`` bytes. Raises MailboxFullError.

    ``now`` is seconds since 1970. An agent there has the room of one mailbox, all agents of the
    peer together that of five.
    """
    address_start = f"{SCHEME}{peer.path}#"
    for_peer = [c for c in table.of_receiver(_PEER) if c.address.startswith(address_start)]
    for_agent = [copy for copy in for_peer if copy.address == request.to]
    for copies, mailboxes in ((for_agent, 1), (for_peer, _PEER_MAILBOXES)):
        used = size + sum(copy.size for copy in copies)
        if len(copies) >= mailboxes * MAILBOX_MESSAGES or used > mailboxes * MAILBOX_BYTES:
            raise MailboxFullError(peer.path)
    until = now + kinds.lifetime(MessageKind.TEXT, request.ttl)
    state = MessageState.QUEUED
    return MessageCopy(0, _PEER, request.to, 0, state, size=size, until=until)


class Relays:
    """The messages that wait for peers.

    ``own`` is the path of this memd's socket. ``check_peer`` raises PeerRefusedError if the socket
    at a path may not be used. ``pass_on`` sends the messages that wait for a socket now.
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
        self._settings = settings  # returns the settings of a project's root
        self.check_peer = _no_peers  # until the daemon sets another check
        self._endings = endings
        self._table = endings.mailboxes.table
        self._now = now  # returns seconds since 1970

    def waiting(self) -> tuple[RelayedMessage, ...]:
        """Return the messages that wait for a peer or have not ended there, in order of sending."""
        copies = {each.message: each for each in self._table.of_receiver(_PEER)}
        result = []
        for stored in self._table.get(tuple(copies)):
            copy = copies[stored.number]
            peer = names.parse(copy.address)
            if not isinstance(peer, PeerAddress):
                continue
            peer_id = _ID_AT_PEER.search(copy.reason)
            message = RelayedMessage(
                number=stored.number,
                path=peer.path,
                to=peer.address,
                hop=f"{SCHEME}{self.own}#{stored.sender.address}",
                root=stored.sender.root,
                summary=stored.summary,
                body=stored.body,
                ttl=max(TTL_SHORTEST, copy.until - self._now()),
                # With the time, since numbers start again if the state file was deleted.
                request_id=f"m{stored.number}-{stored.sent:.3f}",
                known=peer_id[1] if peer_id else "",
                listed=peer.path in self._settings(stored.sender.root).peers,
            )
            result.append(message)
        return tuple(result)

    def apply(self, message: RelayedMessage, answer: RelayAnswer, effects: StepEffects) -> None:
        """End our copy of a message as the peer's copy ended, or note the state there."""
        number = message.number
        open_copies = [
            copy
            for copy in self._table.copies(number)
            if copy.receiver == _PEER and copy.ended is None
        ]
        if answer.state in _END_STATES:
            self._endings.end(open_copies, MessageState(answer.state), answer.reason, effects)
            return
        # A failed call must not overwrite the peer's id, which ``waiting`` reads.
        if not answer.id and message.known:
            return
        if answer.id:
            reason = f"{answer.state} there as {answer.id}"
        else:
            reason = f"not stored there yet: {answer.reason}"
        if any(copy.reason != reason for copy in open_copies):
            self._table.note(number, _PEER, reason)


def _check_hop(request: SendRequest) -> None:
    """Check the receiver and the hop (socket and sender) of a message that a peer passes on.

    Raises PeerRefusedError if the receiver is not one agent of this memd, AddressRefusedError if
    the hop is not valid.
    """
    if request.to == "*" or request.to.startswith(SCHEME):
        raise PeerRefusedError(request.to, _ONE_HOP)
    path, _, sender = request.hop.removeprefix(SCHEME).rpartition("#")
    is_complete = request.hop.startswith(f"{SCHEME}/") and path and sender
    if not is_complete or len(request.hop) > _HOP_CHARACTERS or not request.hop.isprintable():
        raise AddressRefusedError(request.hop, _NO_HOP)
