"""Who is let in, and how often. Nobody waits here and no clock is read.

Rules of this file
- A span begins with the first amount, and all is allowed again when it is over.
- What was spent counts, also where it was more than is allowed: a sender that goes on is no
  sooner free, and one body may go over the bound.
- An address that failed too often joins with no code, and each wrong token of it waits. A token
  that is right goes on: others have the same address, and nobody guesses 256 bits.
- Senders beyond ``_SENDERS`` push out those that were met first, so memory has a bound.
"""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from memd.core.recent import Recent
from memd.server.errors import RoleMissingError, SlowDownError
from memd.server.values import Session

REQUESTS_A_MINUTE = 120
BYTES_AN_HOUR = 20 * 1024 * 1024
FAILED_LOGINS_A_MINUTE = 10
Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
_SENDERS = 10_000
_LOOPBACK = ip_address("127.0.0.1")
_V6_PREFIX = 64  # who has one address of it has all of them


class Rate:
    """An amount in so many seconds, for each sender by itself."""

    def __init__(self, amount: int, seconds: float) -> None:
        self._amount = amount
        self._seconds = seconds
        self._spent: Recent[str, tuple[float, int]] = Recent(_SENDERS)  # since when, how much

    def spend(self, sender: str, amount: int, now: float) -> None:
        """Count an amount that a sender used."""
        start, spent = self._current(sender, now)
        self._spent[sender] = start, spent + amount

    def wait(self, sender: str, now: float) -> float:
        """Return the seconds until a sender may go on, 0 for at once."""
        start, spent = self._current(sender, now)
        return start + self._seconds - now if spent >= self._amount else 0.0

    def _current(self, sender: str, now: float) -> tuple[float, int]:
        start, spent = self._spent.get(sender, (now, 0))
        # A clock that was set back begins a new span: nobody is locked out by it.
        return (start, spent) if start <= now < start + self._seconds else (now, 0)


class Admission:
    """The bounds of tokens and addresses, and what counts against them."""

    def __init__(self) -> None:
        self._requests = Rate(REQUESTS_A_MINUTE, 60.0)
        self._bytes = Rate(BYTES_AN_HOUR, 3600.0)
        self._failed = Rate(FAILED_LOGINS_A_MINUTE, 60.0)

    def check_address(self, address: str, now: float) -> None:
        """Raise SlowDownError for an address that failed too often."""
        if wait := self._failed.wait(_sender(address), now):
            raise SlowDownError(what="failed logins", retry_after=wait)

    def failed(self, address: str, now: float) -> None:
        """Count a token or a code that is none. Raises SlowDownError where there were too many."""
        self.check_address(address, now)
        self._failed.spend(_sender(address), 1, now)

    def admit(self, session: Session, now: float) -> None:
        """Count a request of a session. Raises SlowDownError where there were too many."""
        sender = str(session.token)
        for what, rate in (("requests", self._requests), ("bytes", self._bytes)):
            if wait := rate.wait(sender, now):
                raise SlowDownError(what, wait)
        self._requests.spend(sender, 1, now)

    def received(self, session: Session, amount: int, now: float) -> None:
        """Count bytes that came with a request of a session."""
        self._bytes.spend(str(session.token), amount, now)


def client_address(peer: str | None, forwarded: str, proxies: Sequence[Network]) -> str:
    """Return whose request it is: the last of ``forwarded`` that is no proxy, where a proxy asks.

    ``peer`` is ``None`` for a Unix socket, which counts as a proxy: its mode says who may open it.
    Raises RoleMissingError for a peer that is neither a proxy nor of this machine, where there
    are proxies: what it sends came past them.
    """
    address = _LOOPBACK if peer is None else _parsed(peer) or _LOOPBACK
    if not proxies:
        return str(address)
    if peer is not None and not _within(address, proxies):
        if not address.is_loopback:
            raise RoleMissingError(needed="proxy")
        return str(address)
    for text in reversed(forwarded.split(",")):
        hop = _parsed(text.strip())
        if hop is None:
            break
        address = hop
        if not _within(hop, proxies):
            break
    return str(address)


def _parsed(text: str) -> Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _within(address: Address, networks: Sequence[Network]) -> bool:
    return any(address in network for network in networks)


def _sender(address: str) -> str:
    if ":" not in address:
        return address
    return str(ip_network((address.partition("%")[0], _V6_PREFIX), strict=False))
