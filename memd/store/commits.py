"""Commits as the service makes them: around each one, what others do at the same time is kept.

Blocks; the caller holds the lock of the directory meant.
"""

from contextlib import suppress
from dataclasses import replace

from memd.core.errors import MemdError
from memd.core.events import MEMORY_CHANGED, Event
from memd.core.values import Outcome, Provenance
from memd.state.journal import Journal
from memd.store.changes import Changes, Committed, Request
from memd.store.external import External
from memd.store.held import BY as LATE
from memd.store.held import Held, Holding, Late, late_plan
from memd.store.looks import Looks


class Commits:
    """Makes changes, and looks after the files that they replace."""

    def __init__(
        self, journal: Journal, changes: Changes, external: External, looks: Looks
    ) -> None:
        self._journal = journal
        self._changes = changes
        self._external = external
        self._looks = looks
        self._held = Held()

    def change(self, request: Request) -> Committed:
        """Commit, and hold on to the files that were replaced; raises what ``commit`` does."""
        holding = Holding()
        try:
            wanted = replace(request, plan=holding.plan(request.plan))
            committed = self._changes.commit(wanted, self._looks.listed(request.directory))
            record = self._journal.change(request.directory, committed.outcome.change or "")
            if record is not None and not committed.outcome.repeated:
                self._held.keep(request.directory, holding, record.steps, request.monotonic)
                paths = [step.path for step in record.steps]
                self._external.learn(request.directory, paths, request.at)
                for path in paths:
                    self._looks.tell(request.directory, path)
        finally:
            holding.close()
        return committed

    def rehearse(self, request: Request) -> Committed:
        """Return what ``change`` would do; raises what ``Changes.rehearse`` does."""
        return self._changes.rehearse(request, self._looks.listed(request.directory))

    def directories(self) -> frozenset[str]:
        """Return every directory that memd has changed or looked at."""
        return frozenset((*self._journal.directories(), *self._external.directories()))

    def late(self, real: str, at: float, now: float) -> tuple[list[Outcome], bool]:
        """Bring back saves that went into files which memd had just replaced.

        ``at`` is seconds since 1970, ``now`` seconds that never go back. Says, too, whether one
        more call is wanted later.
        """
        late, again = self._held.late(real, now)
        return [self._save(real, each, at, now) for each in late], again

    def close(self) -> None:
        """Let go of every file."""
        self._held.close()

    def _save(self, real: str, late: Late, at: float, now: float) -> Outcome:
        request = Request(real, late_plan(late), LATE, at, monotonic=now)
        with suppress(MemdError):
            outcome = self.change(request).outcome
            if outcome.change is not None:
                return outcome
        return self._external.keep(real, late, at).outcome()


def event_of(directory: str, outcome: Outcome, by: Provenance) -> Event:
    """Return the event that tells of a change, by the path that callers use."""
    files = [{"path": file.path, "action": file.action} for file in outcome.files]
    params = {
        "change": outcome.change,
        "actor": by.actor.value,
        "client": by.client,
        "files": files,
    }
    return Event(MEMORY_CHANGED, directory, params)
