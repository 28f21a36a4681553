"""Waiting for a daemon's socket."""

import time

from memd.base.places import Places
from memd.client.errors import DaemonUnavailableError
from memd.client.launch import Client

_PAUSE_SECONDS = 0.01


def wait_until_up(places: Places, deadline: float = 10.0) -> None:
    """Wait until a daemon listens at the socket, for ``deadline`` seconds at most."""
    until = time.monotonic() + deadline
    while True:
        try:
            Client(places.socket).close()
        except DaemonUnavailableError:
            if time.monotonic() >= until:
                raise
            time.sleep(_PAUSE_SECONDS)
        else:
            return
