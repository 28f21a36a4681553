"""Whether a place on the disk takes writes: two failures in a row close it, a probe opens it.

After a failed fsync nobody knows what of the last writes is on the disk. One failure may be chance;
after two in a row writes are refused until a small write of memd's own has reached the disk. That
is tried at most once a second, when somebody asks for a write: no timer, no restart.
"""

import errno
from enum import Enum

LIMIT = 2
PROBE_SECONDS = 1.0
# The process or the kernel is short of something; that says nothing about the disk.
_NOT_THE_DISK = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR)


class WriteDecision(Enum):
    """What to do with a wish to write."""

    GO = "go"
    PROBE = "probe"
    REFUSE = "refuse"


class Health:
    """How the last waits for one disk ended. Used by one thread at a time."""

    def __init__(self) -> None:
        self.cause = ""
        self._failures = 0
        self._probed: float | None = None

    def succeeded(self) -> None:
        """Note that something reached the disk."""
        self._failures, self._probed, self.cause = 0, None, ""

    def failed(self, code: int | None, cause: str) -> None:
        """Note that something did not; ``code`` is its errno where there is one."""
        if code not in _NOT_THE_DISK:
            self._failures += 1
            self.cause = cause

    def decision(self, now: float) -> WriteDecision:
        """Return what to do with a wish to write; ``now`` is in seconds.

        PROBE is said at most once a second, also when the clock was set back meanwhile.
        """
        if self._failures < LIMIT:
            return WriteDecision.GO
        if self._probed is not None and 0 <= now - self._probed < PROBE_SECONDS:
            return WriteDecision.REFUSE
        self._probed = now
        return WriteDecision.PROBE
