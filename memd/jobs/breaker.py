"""What a failure leads to: another try, parking, or a directory without its model. Pure.

Rules of this file
1. A failure that may pass is tried again; the pauses between the tries grow fourfold.
2. Two failures are the same when their kinds agree and their sentences do, but for words that hold
   a digit: counts, ids and times differ from one try to the next.
3. The third same failure in a row, or the sixth of any sort, parks the job: it ends as failed, is
   told with ``parked`` among the facts of its error, and keeps what was asked. Only a person puts
   it back (``job.retry``); a newer request of its session takes its place for good.
4. Failures of a model are counted by memory directory, over all its jobs. The third in a row opens
   the directory's breaker: until the pause is over its jobs run without a model, at once, and
   nothing that needs no model waits.
5. After the pause the next job asks a model again. If that fails, the pause is twice as long as
   the last, up to the longest; the first run of a model that ends well closes the breaker.
   So does a person who puts a job back: it is to be done as it was meant.
6. A clock that was set back lengthens no pause: one that began later than now is over.
"""

import re
from collections.abc import Mapping
from typing import Any

from memd.core import limits
from memd.state.pauses import Breaker

TIMES = "times"  # how often in a row a job failed the same way; a fact of its error
PARKED = "parked"
_NUMBERED = re.compile(r"\S*\d\S*")


def pause_before(attempts: int) -> float:
    """Return the seconds before a job is tried again after so many attempts (rule 1)."""
    grown = limits.RETRY_SECONDS * limits.RETRY_GROWTH ** (max(attempts, 1) - 1)
    return float(grown)


def repeated(before: Mapping[str, Any] | None, error: Mapping[str, Any]) -> int:
    """Return how often in a row a job has now failed this way (rule 2); ``before`` is its last."""
    if before is None or _sort(before) != _sort(error):
        return 1
    times = before.get(TIMES, 1)
    return times + 1 if isinstance(times, int) else 1


def parks(times: int, attempts: int) -> bool:
    """Whether a job is not tried again (rule 3)."""
    return times >= limits.PARK_AFTER or attempts >= limits.ATTEMPTS_MOST


def failed(before: Breaker | None, directory: str, why: str, now: float) -> Breaker:
    """Return a directory's breaker after one more failure of a model (rules 4 and 5)."""
    failures = 1 if before is None else before.failures + 1
    over = failures - limits.BREAKER_AFTER
    # A pause is bounded, and so is the exponent.
    seconds = 0.0 if over < 0 else limits.BREAKER_SECONDS * 2.0 ** min(over, 32)
    until = now + min(seconds, limits.BREAKER_SECONDS_MOST)
    return Breaker(directory, failures, now, until, why)


def is_open(breaker: Breaker | None, now: float) -> bool:
    """Whether a directory's jobs do without a model now (rules 4 and 6)."""
    return breaker is not None and breaker.since <= now < breaker.until


def _sort(error: Mapping[str, Any]) -> tuple[str, str]:
    return str(error.get("kind")), _NUMBERED.sub("#", str(error.get("message")))
