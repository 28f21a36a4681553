"""Decide whether to write to a disk: two failures in a row stop writes until a probe succeeds.

After a failed fsync nobody knows which of the last writes are on the disk. One failure may be
chance. After two in a row writes are refused until a small write of memd's own, the probe, has
reached the disk. The probe is tried at most once a second, and only when a write is requested.
"""

import errno
from enum import Enum

LIMIT = 2  # failures in a row
PROBE_SECONDS = 1.0  # between two probes
# The process or the kernel has too few descriptors or too little memory; the disk may be fine.
_NOT_THE_DISK = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR)


class WriteDecision(Enum):
    """Whether to write, to probe the disk first, or to refuse."""

    GO = "go"
    PROBE = "probe"
    REFUSE = "refuse"


class Health:
    """The failures of the last writes to one disk. Used by one thread at a time."""

    def __init__(self) -> None:
        self.cause = ""  # of the last failure, in words
        self._failures = 0  # in a row
        self._probed_at: float | None = None  # when the last probe was decided, in seconds

    def succeeded(self) -> None:
        """Note that a write reached the disk."""
        self._failures, self._probed_at, self.cause = 0, None, ""

    def failed(self, code: int | None, cause: str) -> None:
        """Note that a write failed; ``code`` is its errno where there is one."""
        if code not in _NOT_THE_DISK:
            self._failures += 1
            self.cause = cause

    def decision(self, now: float) -> WriteDecision:
        """Return whether to write, to probe or to refuse; ``now`` is in seconds.

        PROBE is returned at most once a second, or at once after the clock was set back.
        """
        if self._failures < LIMIT:
            return WriteDecision.GO
        if self._probed_at is not None and 0 <= now - self._probed_at < PROBE_SECONDS:
            return WriteDecision.REFUSE
        self._probed_at = now
        return WriteDecision.PROBE
