"""Hold the request that the daemon ends, with or without a restart in the same process."""

import anyio


class Ending:
    """The requested end of a daemon. Used only on the event loop.

    ``requested`` is set once it is to end. ``restarting`` says whether a new daemon follows in this
    process; a stop overrides a restart, in whichever order they come.
    """

    def __init__(self) -> None:
        self.requested = anyio.Event()
        self.restarting = False

    def stop(self) -> None:
        """Request the daemon's end, also during a restart."""
        self.restarting = False
        self.requested.set()

    def restart(self) -> None:
        """Request a restart, unless the daemon is already to end."""
        if not self.requested.is_set():
            self.restarting = True
            self.requested.set()
