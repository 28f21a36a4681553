"""The locks of dreams with their rows in the state file: taken, settled, put right after a crash.

Rules of this file
- The row is written before the lock file is touched and goes only after the file is settled. What
  cannot be settled now keeps its row; the next taking in that directory, or the next start, puts
  it right. Until then the file names a holder, and no dream begins there.
- What the file gets back stands in the row: the time before, or the dream's own once its change
  is true (``state/dreams.py``). So an end that nobody could report still ends rightly.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from memd.core.clock import Clock
from memd.core.errors import MemdError
from memd.state.tables import DreamTable, LockRow
from memd.watch import locks
from memd.watch.locks import Alive, ConsolidationLock, LockUnusableError, Restored


class DreamLock:
    """Takes and settles locks. All methods block; ``is_alive`` tells of a PID in a lock."""

    def __init__(self, table: DreamTable, clock: Clock, is_alive: Alive) -> None:
        self._table = table
        self._clock = clock
        self._is_alive = is_alive

    def take(self, directory: str) -> ConsolidationLock | None:
        """Take the lock of a directory, or return ``None`` when somebody is at it.

        Raises LockUnusableError and StateUnusableError.
        """
        left = self._row(directory)
        if left is not None:
            self._put_right(left)
        rows: list[LockRow] = []

        def remember(pid: int, taken_ns: int, prior_ns: int | None) -> None:
            rows.append(LockRow(directory, pid, taken_ns, prior_ns))
            self._table.remember(rows[0])

        held = None
        try:
            held = locks.take(directory, self._clock.now(), remember, self._is_alive)
        finally:
            if held is None:
                for row in rows:
                    self._put_right(row)
        return held

    def finish(self, held: ConsolidationLock, *, done: bool) -> None:
        """End a lock as its dream ended; never raises, for the dream has its own end to tell."""
        with _left_for_later():
            held = self._as_recorded(held)
        with _left_for_later():
            if done or held.prior_ns == held.taken_ns:
                held.commit()
            else:
                held.reset()
            self._table.forget(held.directory)

    def recover(self) -> tuple[str, ...]:
        """Settle what dreams left that a crash ended; call it before any dream.

        Returns sentences about it. Raises StateUnusableError.
        """
        said = (self._put_right(row) for row in self._table.locks())
        return tuple(sentence for sentence in said if sentence)

    def _put_right(self, row: LockRow) -> str:
        """Settle the lock of a dream that is over; return a sentence, "" where nothing was done."""
        try:
            restored = locks.restore(row.directory, row.pid, row.taken_ns, row.prior_ns)
        except LockUnusableError as error:
            return error.sentence
        if restored is not Restored.WAITS:
            self._table.forget(row.directory)
        if restored is not Restored.PUT_BACK:
            return ""
        then = "its work is done" if row.finished else "it may run again"
        return f"a dream in {row.directory} had ended with memd; {then}"

    def _as_recorded(self, held: ConsolidationLock) -> ConsolidationLock:
        """Return a lock with what the state file says that it is to get back."""
        row = self._row(held.directory)
        return replace(held, prior_ns=row.prior_ns) if row else held

    def _row(self, directory: str) -> LockRow | None:
        return next((row for row in self._table.locks() if row.directory == directory), None)


@contextmanager
def _left_for_later() -> Iterator[None]:
    """Leave to the row what the disk or the state file refuses just now."""
    try:
        yield
    except MemdError:
        return
