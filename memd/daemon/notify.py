"""Report the daemon's state to systemd with sd_notify(3) and its watchdog."""

import socket
from collections.abc import Mapping
from contextlib import suppress

READY = "READY=1"
STOPPING = "STOPPING=1"
WATCHDOG = "WATCHDOG=1"


def notify(environ: Mapping[str, str], *states: str) -> bool:
    """Send states to the supervisor; return whether there is one and it received them.

    A state is ``READY``, ``STOPPING`` or ``WATCHDOG``. A leading ``@`` in ``NOTIFY_SOCKET`` means
    the abstract namespace. Never fails: a supervisor that does not listen must not stop the daemon.
    """
    address = environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return False
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.settimeout(0)
        target = "\0" + address[1:] if address.startswith("@") else address
        return channel.sendto("\n".join(states).encode(), target) > 0
    return False


def watchdog_seconds(environ: Mapping[str, str], pid: int) -> float | None:
    """Return how often ``WATCHDOG`` is to be sent (half the time allowed), ``None`` for never."""
    microseconds = environ.get("WATCHDOG_USEC", "")
    if environ.get("WATCHDOG_PID", str(pid)) != str(pid) or not microseconds.isdecimal():
        return None
    return int(microseconds) / 2_000_000 or None
