"""Addresses of the network, as texts."""

from ipaddress import ip_address

_NAMES = ("localhost", "localhost.localdomain", "ip6-localhost")


def is_loopback(host: str) -> bool:
    """Say whether a host's name or address is this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() in _NAMES
