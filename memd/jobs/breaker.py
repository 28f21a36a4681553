"""What holds work up: another try after a pause, parking, a breaker, or a person's pause.

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
from dataclasses import dataclass
from typing import Any

from memd.core import limits
from memd.state.tables import Breaker, Pauses

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


@dataclass(frozen=True, slots=True)
class WorkState:
    """Since when background work is paused (seconds since 1970), null when it is not.

    ``waiting`` is how many jobs wait or run, ``breakers`` are those that are open.
    """

    paused_since: float | None
    waiting: int
    breakers: tuple[Breaker, ...]


class PauseControl:
    """A person's pause and the directories' breakers: in memory, and in rows that change first.

    Used under the lock of ``Jobs``; what changes something blocks and may raise
    StateUnusableError.
    """

    def __init__(self, rows: Pauses) -> None:
        self._rows = rows
        self._breakers: dict[str, Breaker] = {}
        self.paused_since: float | None = None

    def load(self) -> None:
        """Read what an earlier daemon left."""
        self._breakers = {row.directory: row for row in self._rows.breakers()}
        self.paused_since = self._rows.since()

    def pause(self, now: float) -> float:
        """Pause everything; return since when it is."""
        self._rows.pause(now)
        if self.paused_since is None:
            self.paused_since = now
        return self.paused_since

    def resume(self) -> None:
        """Let work go on."""
        self._rows.resume()
        self.paused_since = None

    def model_failed(self, directory: str, why: str, now: float) -> None:
        """Count a failure of a model for a directory."""
        now_is = failed(self._breakers.get(directory), directory, why, now)
        self._rows.save(now_is)
        self._breakers[directory] = now_is

    def model_worked(self, directory: str) -> None:
        """Close a directory's breaker."""
        if directory in self._breakers:
            self._rows.forget(directory)
            del self._breakers[directory]

    def model_allowed(self, directory: str, now: float) -> bool:
        """Whether jobs of a directory may ask a model."""
        return not is_open(self._breakers.get(directory), now)

    def state(self, now: float, waiting: int) -> WorkState:
        """Return what holds work up now, with so many jobs that wait or run."""
        breakers = (self._breakers[directory] for directory in sorted(self._breakers))
        opened = tuple(row for row in breakers if is_open(row, now))
        return WorkState(self.paused_since, waiting, opened)
