"""Do without a model that failed several times in a row, for a while.

Rules of this file
1. Failures are counted for each memory directory, those of its jobs and those of its prompts
   separately: a prompt waits four seconds for a model, a job minutes. The third in a row starts a
   pause, in which this work is done without a model.
2. After the pause the next job or prompt asks a model again. If that fails, the next pause is twice
   as long, up to a limit. A model's success, or a person's ``resume``, ends it.
3. A clock that was set back does not lengthen a pause: one that began later than now is over.
4. Breakers are documents, so they outlast a restart. Functions block and raise StateUnusableError.
"""

from typing import Literal

from msgspec import Struct

from memd.base import limits
from memd.state import docs
from memd.state.docs import Docs

JOBS: Literal["jobs"] = "jobs"
PROMPTS: Literal["prompts"] = "prompts"
Work = Literal["jobs", "prompts"]


class Breaker(Struct, frozen=True):
    """A directory whose jobs or prompts have to do without a model, because models failed for them.

    ``failures`` counts failures in a row, the last at ``since`` with the error message ``why``.
    After ``until`` a model is asked again. Times are seconds since 1970. A breaker exists from the
    first failure until a model works again.
    """

    directory: str
    work: Work
    failures: int
    since: float
    until: float
    why: str

    def is_open(self, now: float) -> bool:
        """Return whether the work has to do without a model now."""
        return self.since <= now < self.until


def find(table: Docs, directory: str, work: Work) -> Breaker | None:
    """Return the breaker of a directory's work, ``None`` if the last use of a model succeeded."""
    return table.get(Breaker, directory, work)


def model_allowed(table: Docs, directory: str, work: Work, now: float) -> bool:
    """Return whether a directory's work may use a model now."""
    breaker = find(table, directory, work)
    return breaker is None or not breaker.is_open(now)


def model_failed(table: Docs, directory: str, work: Work, why: str, now: float) -> None:
    """Count a failure of a model for a directory's work (rules 1 and 2)."""
    with table.transaction() as cursor:
        before = docs.get(cursor, Breaker, directory, work)
        failures = before.failures + 1 if before else 1
        seconds = 0.0
        if failures >= limits.BREAKER_AFTER:
            # The exponent is bounded, as a float would overflow.
            pause = limits.BREAKER_SECONDS * 2.0 ** min(failures - limits.BREAKER_AFTER, 32)
            seconds = min(pause, limits.BREAKER_SECONDS_MOST)
        after = Breaker(directory, work, failures, now, now + seconds, why)
        docs.put(cursor, after, directory, work)


def model_worked(table: Docs, directory: str, work: Work) -> None:
    """Close the breaker of a directory's work."""
    if find(table, directory, work) is not None:
        table.delete(Breaker, directory, work)


def open_breakers(table: Docs, now: float) -> tuple[Breaker, ...]:
    """Return the breakers that are open now, ordered by directory."""
    breakers = (each for each in table.list_all(Breaker).values() if each.is_open(now))
    return tuple(sorted(breakers, key=lambda each: (each.directory, each.work)))
