"""Store what holds up background work: a person's pause, and a breaker of each directory's models.

Rules of this file
1. Failures of models are counted for each memory directory. The third in a row opens its breaker:
   until the pause is over its jobs run at once, without a model.
2. After the pause the next job uses a model again. If that fails, the next pause is twice as long,
   up to a limit. A model's success, or a person's ``resume``, closes the breaker.
3. A clock that was set back does not lengthen a pause: one that began later than now is over.
4. Both are documents, so they outlast a restart. The functions block and raise StateUnusableError.
"""

from msgspec import Struct

from memd.base import limits
from memd.state import docs
from memd.state.docs import Docs


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

    def is_open(self, now: float) -> bool:
        """Return whether the directory's jobs have to run without a model now."""
        return self.since <= now < self.until


class WorkState(Struct, frozen=True):
    """The state of background work.

    ``paused_since`` is in seconds since 1970, null if it is not paused. ``waiting`` counts the jobs
    that wait or run; ``breakers`` are the open ones.
    """

    paused_since: float | None
    waiting: int
    breakers: tuple[Breaker, ...]


def pause_work(table: Docs, now: float) -> None:
    """Store that a person paused work; an earlier pause keeps its time."""
    with table.transaction() as cursor:
        if docs.get(cursor, Pause) is None:
            docs.put(cursor, Pause(now))


def resume_work(table: Docs) -> None:
    """Delete the pause and all breakers."""
    with table.transaction() as cursor:
        docs.delete(cursor, Pause)
        docs.delete_all(cursor, Breaker)


def model_failed(table: Docs, directory: str, why: str, now: float) -> None:
    """Count a failure of a model for a directory (rules 1 and 2)."""
    with table.transaction() as cursor:
        before = docs.get(cursor, Breaker, directory)
        failures = before.failures + 1 if before else 1
        seconds = 0.0
        if failures >= limits.BREAKER_AFTER:
            # The exponent is bounded, as a float would overflow.
            pause = limits.BREAKER_SECONDS * 2.0 ** min(failures - limits.BREAKER_AFTER, 32)
            seconds = min(pause, limits.BREAKER_SECONDS_MOST)
        docs.put(cursor, Breaker(directory, failures, now, now + seconds, why), directory)


def model_worked(table: Docs, directory: str) -> None:
    """Close the breaker of a directory."""
    if table.get(Breaker, directory) is not None:
        table.delete(Breaker, directory)


def model_allowed(table: Docs, directory: str, now: float) -> bool:
    """Return whether a directory's jobs may use a model now."""
    breaker = table.get(Breaker, directory)
    return breaker is None or not breaker.is_open(now)


def work_state(table: Docs, now: float, waiting: int) -> WorkState:
    """Return the state of work; ``waiting`` is the number of jobs that wait or run."""
    pause, breakers = table.get(Pause), table.list_all(Breaker).values()
    by_directory = sorted(breakers, key=lambda breaker: breaker.directory)
    open_breakers = tuple(breaker for breaker in by_directory if breaker.is_open(now))
    return WorkState(pause.since if pause else None, waiting, open_breakers)
