"""Decide how failures delay work: retries after a pause, parked jobs and circuit breakers.

Rules of this file
1. A failure that may be temporary is retried; each pause is four times the last.
2. Two failures are equal if their kinds are, and their sentences without words that have a digit,
   since counts, ids and times differ from one try to the next.
3. The third equal failure in a row, or the sixth of any kind, parks the job: it ends as failed, and
   its request stays. A newer request of its session replaces it.
4. Failures of a model are counted for each memory directory. The third in a row opens the
   directory's breaker: until the pause is over its jobs run at once, without a model.
5. After the pause the next job uses a model again. If that fails, the next pause is twice as long,
   up to a limit. A model's success, or a person who retries a job, closes the breaker.
6. A clock that was set back does not lengthen a pause: one that began later than now is over.
7. A person's pause and the breakers are documents, so they outlast a restart.
"""

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from memd.base import limits
from memd.state import docs
from memd.state.docs import Docs

TIMES = "times"  # how often in a row a job failed the same way; a fact of its error
_WORD_WITH_DIGIT = re.compile(r"\S*\d\S*")


class Pause(Struct, frozen=True):
    """A person paused background work at ``since``, in seconds since 1970."""

    since: float


class Breaker(Struct, frozen=True):
    """A directory whose jobs run without a model for a while, because models failed for it.

    ``failures`` counts failures in a row, the last at ``since`` with the error message ``why``.
    After ``until`` the next job calls a model again. Times are seconds since 1970. A breaker exists
    from the first failure until a model works again.
    """

    directory: str
    failures: int
    since: float
    until: float
    why: str


def pause_before(attempts: int) -> float:
    """Return the seconds to wait before a job's next try after ``attempts`` (rule 1)."""
    earlier_attempts = max(attempts, 1) - 1
    return float(limits.RETRY_SECONDS * limits.RETRY_GROWTH**earlier_attempts)


def failures_in_a_row(before: Mapping[str, Any] | None, error: Mapping[str, Any]) -> int:
    """Return how often in a row a job has failed with this error (rule 2).

    ``before`` is the error of its last try, ``None`` for none.
    """
    if before is None or _comparable(before) != _comparable(error):
        return 1
    times = before.get(TIMES, 1)
    return times + 1 if isinstance(times, int) else 1


def must_park(times: int, attempts: int) -> bool:
    """Return whether a job is parked instead of tried again (rule 3)."""
    return times >= limits.PARK_AFTER or attempts >= limits.ATTEMPTS_MOST


def breaker_after_failure(before: Breaker | None, directory: str, why: str, now: float) -> Breaker:
    """Return a directory's breaker after one more failure of a model (rules 4 and 5)."""
    failures = 1 if before is None else before.failures + 1
    doublings = failures - limits.BREAKER_AFTER
    # The exponent is bounded, as a float would overflow.
    pause = limits.BREAKER_SECONDS * 2.0 ** min(doublings, 32)
    seconds = 0.0 if doublings < 0 else min(pause, limits.BREAKER_SECONDS_MOST)
    return Breaker(directory, failures, now, now + seconds, why)


def is_open(breaker: Breaker | None, now: float) -> bool:
    """Return whether a directory's jobs have to run without a model now (rules 4 and 6)."""
    return breaker is not None and breaker.since <= now < breaker.until


def _comparable(error: Mapping[str, Any]) -> tuple[str, str]:
    """Return an error's kind and its sentence without words that have a digit (rule 2)."""
    return str(error.get("kind")), _WORD_WITH_DIGIT.sub("#", str(error.get("message")))


class WorkState(Struct, frozen=True):
    """The state of background work.

    ``paused_since`` is in seconds since 1970, null if it is not paused. ``waiting`` counts the jobs
    that wait or run; ``breakers`` are the open ones.
    """

    paused_since: float | None
    waiting: int
    breakers: tuple[Breaker, ...]


def pause_work(table: Docs, now: float) -> None:
    """Store that a person paused work; an earlier pause keeps its time. Blocks."""
    with table.transaction() as cursor:
        if docs.get(cursor, Pause) is None:
            docs.put(cursor, Pause(now))


def resume_work(table: Docs) -> None:
    """Delete the pause and all breakers. Blocks. Raises StateUnusableError."""
    with table.transaction() as cursor:
        docs.delete(cursor, Pause)
        docs.delete_all(cursor, Breaker)


def model_failed(table: Docs, directory: str, why: str, now: float) -> None:
    """Count a failure of a model for a directory. Blocks. Raises StateUnusableError."""
    with table.transaction() as cursor:
        before = docs.get(cursor, Breaker, directory)
        docs.put(cursor, breaker_after_failure(before, directory, why, now), directory)


def model_worked(table: Docs, directory: str) -> None:
    """Close the breaker of a directory. Blocks. Raises StateUnusableError."""
    if table.get(Breaker, directory) is not None:
        table.delete(Breaker, directory)


def work_state(table: Docs, now: float, waiting: int) -> WorkState:
    """Return the state of work; ``waiting`` is the number of jobs that wait or run.

    Blocks. Raises StateUnusableError.
    """
    pause, breakers = table.get(Pause), table.list_all(Breaker).values()
    open_breakers = sorted(
        (breaker for breaker in breakers if is_open(breaker, now)),
        key=lambda breaker: breaker.directory,
    )
    return WorkState(pause.since if pause else None, waiting, tuple(open_breakers))
