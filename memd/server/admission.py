"""Limit the rates of requests, bytes and failed logins. Pure: callers pass the time.

Rules of this file
- A sender's span begins with its first amount; when the span is over, everything is allowed again.
- Amounts above the limit count too, so a single large body may exceed it.
- After too many failures an address can neither join nor try another wrong token. Right tokens
  still work: other people share the address, and 256 bits cannot be guessed.
- At most ``_MOST_SENDERS`` senders are stored, so that memory is bounded.
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
_MOST_SENDERS = 10_000
_LOOPBACK = ip_address("127.0.0.1")
_V6_PREFIX = 64  # one sender usually has all addresses of such a network


class Rate:
    """A limit of ``amount`` per span of ``seconds``, for each sender separately."""

    def __init__(self, amount: int, seconds: float) -> None:
        self._limit = amount
        self._seconds = seconds
        self._spans: Recent[str, tuple[float, int]] = Recent(_MOST_SENDERS)  # starts and amounts

    def spend(self, sender: str, amount: int, now: float) -> None:
        """Count an amount that a sender used."""
        start, spent = self._current(sender, now)
        self._spans[sender] = start, spent + amount

    def wait(self, sender: str, now: float) -> float:
        """Return the seconds until a sender may go on, 0 for at once."""
        start, spent = self._current(sender, now)
        return start + self._seconds - now if spent >= self._limit else 0.0

    def _current(self, sender: str, now: float) -> tuple[float, int]:
        """Return the start of the sender's current span in seconds, and the amount spent in it."""
        start, spent = self._spans.get(sender, (now, 0))
        # A clock that was set back begins a new span, so that no sender is locked out by it.
        return (start, spent) if start <= now < start + self._seconds else (now, 0)


class Admission:
    """The rate limits of tokens and addresses, with the amounts used so far."""

    def __init__(self) -> None:
        self._requests = Rate(REQUESTS_A_MINUTE, 60.0)
        self._bytes = Rate(BYTES_AN_HOUR, 3600.0)
        self._failed_logins = Rate(FAILED_LOGINS_A_MINUTE, 60.0)

    def check_address(self, address: str, now: float) -> None:
        """Raise SlowDownError for an address that failed too often."""
        seconds = self._failed_logins.wait(_sender(address), now)
        if seconds:
            raise SlowDownError(what="failed logins", retry_after=seconds)

    def failed(self, address: str, now: float) -> None:
        """Count an invalid token or code of an address. Raises SlowDownError after too many."""
        self.check_address(address, now)
        self._failed_logins.spend(_sender(address), 1, now)

    def admit(self, session: Session, now: float) -> None:
        """Count a request of a session. Raises SlowDownError after too many requests or bytes."""
        sender = str(session.token)
        for what, rate in (("requests", self._requests), ("bytes", self._bytes)):
            seconds = rate.wait(sender, now)
            if seconds:
                raise SlowDownError(what, seconds)
        self._requests.spend(sender, 1, now)

    def received(self, session: Session, amount: int, now: float) -> None:
        """Count bytes that came with a request of a session."""
        self._bytes.spend(str(session.token), amount, now)


def client_address(peer: str | None, forwarded: str, proxies: Sequence[Network]) -> str:
    """Return the client's address: that of ``peer``, or behind a proxy the last non-proxy hop.

    ``forwarded`` is the list of hops in the proxy's header. ``peer`` is ``None`` for a Unix socket,
    which counts as a proxy. If proxies are configured, a peer that is neither a proxy nor on this
    machine raises RoleMissingError, because it avoided them.
    """
    address = _LOOPBACK if peer is None else _parse_address(peer) or _LOOPBACK
    if not proxies:
        return str(address)
    is_proxy = peer is None or _is_in_networks(address, proxies)
    if not is_proxy:
        if not address.is_loopback:
            raise RoleMissingError(needed="proxy")
        return str(address)
    for text in reversed(forwarded.split(",")):  # each proxy adds the address that it saw
        hop = _parse_address(text.strip())
        if hop is None:
            break
        address = hop
        if not _is_in_networks(hop, proxies):
            break
    return str(address)


def _parse_address(text: str) -> Address | None:
    """Return the address in a text, ``None`` for other text; IPv4 inside IPv6 becomes IPv4."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _is_in_networks(address: Address, networks: Sequence[Network]) -> bool:
    """Return whether an address is in one of the networks."""
    return any(address in network for network in networks)


def _sender(address: str) -> str:
    """Return the key under which an address is counted: itself, or its IPv6 network."""
    if ":" not in address:
        return address
    return str(ip_network((address.partition("%")[0], _V6_PREFIX), strict=False))
