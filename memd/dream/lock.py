"""The locks of dreams with their rows in the state file: taken, settled, put right after a crash.

Rules of this file
- The row is written before the lock file is touched and goes only after the file is settled. What
  cannot be settled now keeps its row; the next taking in that directory, or the next start, puts
  it right. Until then the file names a holder, and no dream begins there.
- What the file gets back stands in the row: the time before, or the dream's own once its change
  is true (``state/dreams.py``). So an end that nobody could report still ends rightly.
"""

from contextlib import suppress
from dataclasses import dataclass, replace

from memd.core.clock import Clock
from memd.core.errors import MemdError
from memd.state.tables import DreamTable, LockRow
from memd.watch import locks
from memd.watch.locks import Alive, ConsolidationLock, LockUnusableError, Restored


@dataclass(frozen=True, slots=True)
class DreamLock:
    """Takes and settles locks. All methods block; ``is_alive`` tells of a PID in a lock."""

    table: DreamTable
    clock: Clock
    is_alive: Alive

    def take(self, directory: str) -> ConsolidationLock | None:
        """Take the lock of a directory, or return ``None`` when somebody is at it.

        Raises LockUnusableError and StateUnusableError.
        """
        self._put_right_in(directory)

        def remember(pid: int, taken_ns: int, prior_ns: int | None) -> None:
            self.table.remember(LockRow(directory, pid, taken_ns, prior_ns))

        held = None
        try:
            held = locks.take(directory, self.clock.now(), remember, self.is_alive)
        finally:
            if held is None:
                self._put_right_in(directory)
        return held

    def finish(self, held: ConsolidationLock, *, done: bool) -> None:
        """End a lock as its dream ended; never raises, for the dream has its own end to tell."""
        # What the disk or the state file refuses just now is left to the row.
        with suppress(MemdError):
            row = self._row(held.directory)
            held = replace(held, prior_ns=row.prior_ns) if row else held
        with suppress(MemdError):
            if done or held.prior_ns == held.taken_ns:
                held.commit()
            else:
                held.reset()
            self.table.forget(held.directory)

    def recover(self) -> tuple[str, ...]:
        """Settle what dreams left that a crash ended; call it before any dream.

        Returns sentences about it. Raises StateUnusableError.
        """
        said = (self._put_right(row) for row in self.table.locks())
        return tuple(sentence for sentence in said if sentence)

    def _put_right(self, row: LockRow) -> str:
        """Settle the lock of a dream that is over; return a sentence, "" where nothing was done."""
        try:
            restored = locks.restore(row.directory, row.pid, row.taken_ns, row.prior_ns)
        except LockUnusableError as error:
            return error.sentence
        if restored is not Restored.WAITS:
            self.table.forget(row.directory)
        if restored is not Restored.PUT_BACK:
            return ""
        then = "its work is done" if row.finished else "it may run again"
        return f"a dream in {row.directory} had ended with memd; {then}"

    def _put_right_in(self, directory: str) -> None:
        row = self._row(directory)
        if row is not None:
            self._put_right(row)

    def _row(self, directory: str) -> LockRow | None:
        return next((row for row in self.table.locks() if row.directory == directory), None)
