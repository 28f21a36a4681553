"""Whose process is at the other end of a connection on this machine, as far as the kernel tells."""

import os
import sys

_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_MAPPED = "0000000000000000FFFF0000"  # an IPv4 address within IPv6, as the table writes it
_LOCAL, _REMOTE, _USER = 1, 2, 7


def is_own_peer(peer: tuple[str, int], own: tuple[str, int]) -> bool:
    """Whether the connection from ``peer`` is this user's, root's, or nobody can tell.

    A forwarder of the system (into a virtual machine) is root's.
    """
    user = _user(peer, own)
    return user is None or user in {0, os.geteuid()}


def _user(peer: tuple[str, int], own: tuple[str, int]) -> int | None:
    ends = [_written(*peer), _written(*own)]
    for table in _TABLES:
        try:
            with open(table, encoding="ascii") as file:
                for line in file:
                    fields = line.split()
                    row = [fields[_LOCAL].removeprefix(_MAPPED), fields[_REMOTE]]
                    if [row[0], row[1].removeprefix(_MAPPED)] == ends:
                        return int(fields[_USER])
        except (OSError, ValueError, IndexError):
            continue
    return None


def _written(address: str, port: int) -> str:
    """Return an IPv4 address and a port as the kernel's table writes them."""
    parts = bytes(int(part) for part in address.split("."))
    return f"{int.from_bytes(parts, sys.byteorder):08X}:{port:04X}"
