"""The user of the process at the other end of a local connection, from the kernel's tables."""

import os
import sys

_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_MAPPED = "0000000000000000FFFF0000"  # an IPv4 address within IPv6, as the table writes it
_LOCAL, _REMOTE, _USER = 1, 2, 7  # the columns of a table


def is_own_peer(peer: tuple[str, int], own: tuple[str, int]) -> bool:
    """Return whether the process at ``peer`` is this user's, root's, or of an unknown user.

    A forwarder of the system (into a virtual machine) is root's.
    """
    user = _peer_user(peer, own)
    return user is None or user in {0, os.geteuid()}


def _peer_user(peer: tuple[str, int], own: tuple[str, int]) -> int | None:
    """Return the user id in a connection's row of the tables, ``None`` if no row is found."""
    ends = [_in_table(*peer), _in_table(*own)]
    for table in _TABLES:
        try:
            with open(table, encoding="ascii") as file:
                for line in file:
                    fields = line.split()
                    row = [fields[column].removeprefix(_MAPPED) for column in (_LOCAL, _REMOTE)]
                    if row == ends:
                        return int(fields[_USER])
        except (OSError, ValueError, IndexError):
            continue
    return None


def _in_table(address: str, port: int) -> str:
    """Return an IPv4 address and a port as the kernel's table writes them."""
    parts = bytes(int(part) for part in address.split("."))
    return f"{int.from_bytes(parts, sys.byteorder):08X}:{port:04X}"
