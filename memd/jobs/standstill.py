"""What holds background work up now: in memory, and in its rows, which change first.

Used under the lock of ``Jobs``; what changes something blocks and may raise StateUnusableError.
"""

from dataclasses import dataclass

from memd.jobs import breaker
from memd.state.pauses import Breaker, Pauses


@dataclass(frozen=True, slots=True)
class Standing:
    """Since when background work is paused (seconds since 1970), null when it is not.

    ``waiting`` is how many jobs wait or run, ``breakers`` are those that are open.
    """

    paused_since: float | None
    waiting: int
    breakers: tuple[Breaker, ...]


class Standstill:
    """A person's pause and the directories' breakers."""

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
        now_is = breaker.failed(self._breakers.get(directory), directory, why, now)
        self._rows.keep(now_is)
        self._breakers[directory] = now_is

    def model_worked(self, directory: str) -> None:
        """Close a directory's breaker."""
        if directory in self._breakers:
            self._rows.forget(directory)
            del self._breakers[directory]

    def model_allowed(self, directory: str, now: float) -> bool:
        """Whether jobs of a directory may ask a model."""
        return not breaker.is_open(self._breakers.get(directory), now)

    def standing(self, now: float, waiting: int) -> Standing:
        """Return how things stand, with so many jobs that wait or run."""
        found = (self._breakers[directory] for directory in sorted(self._breakers))
        opened = tuple(row for row in found if breaker.is_open(row, now))
        return Standing(self.paused_since, waiting, opened)
