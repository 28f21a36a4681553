"""That the daemon is to end, and whether its next version goes on in the same process."""

import anyio


class Ending:
    """What was asked of a daemon about its end. Belongs to the event loop.

    ``requested`` is set once it is to end. ``restarting`` says whether a next one follows at once;
    a stop wins over it, whichever came first.
    """

    def __init__(self) -> None:
        self.requested = anyio.Event()
        self.restarting = False

    def stop(self) -> None:
        """Have the daemon end for good."""
        self.restarting = False
        self.requested.set()

    def restart(self) -> None:
        """Have the daemon give way to its next version, unless it ends already."""
        if not self.requested.is_set():
            self.restarting = True
            self.requested.set()
