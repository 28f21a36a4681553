"""How a dream may end without having done anything. Pure."""

from memd.agent.service import Ended
from memd.core.errors import MemdError


class DreamTimeoutError(MemdError):
    """The dream took longer than the settings allow."""

    code = 1004
    kind = "dream_timeout"
    hint = "raise dream.max_minutes in the settings"

    def __init__(self, minutes: float) -> None:
        super().__init__(f"the dream took longer than {minutes:g} minutes", minutes=minutes)


class DreamEndedError(MemdError):
    """The dream was cancelled before it could commit."""

    code = -32800
    kind = "cancelled"

    def __init__(self) -> None:
        super().__init__("the dream was cancelled; nothing was written")


class LockLostError(MemdError):
    """Another program took the consolidation lock while memd held it."""

    code = 1004
    kind = "lock_lost"
    retryable = True

    def __init__(self, directory: str) -> None:
        super().__init__(
            f"another program began to consolidate {directory}; nothing was written",
            directory=directory,
        )


class DreamFailedError(MemdError):
    """A model did not come to an end with the memories; nothing was kept of its work."""

    code = 1022
    kind = "dream_failed"
    retryable = True
    of_model = True
    hint = "memctl job show tells what the model did"

    def __init__(self, ended: Ended) -> None:
        super().__init__(ended.unfinished, reason=str(ended.reason), turns=ended.turns)
