"""Take and release the locks of dreams, and repair them after a crash.

Rules of this file
- A lock's row in the state file is written before the lock file, and removed after the lock file is
  released. If releasing fails, the row stays, and the next taking in that directory or the next
  start repairs the lock. Until then the lock file names a holder, so no dream begins there.
- The row has the time that the lock file gets on release: the time before, or the dream's own once
  its change is committed (``time_kept``). So a release after a crash sets the right time.
"""

from contextlib import suppress
from typing import Any

from msgspec import Struct

from memd.base.clock import Clock
from memd.base.errors import MemdError, Storage
from memd.base.values import Effect
from memd.state import docs
from memd.state.docs import Docs
from memd.store import lock
from memd.store.lock import ConsolidationLock, IsAlive


class LockRow(Struct, frozen=True):
    """A lock that a dream took or was about to take; its directory is the document's place.

    ``taken_ns`` is the dream's own time. ``prior_ns`` is the mtime to restore if the dream fails,
    ``None`` if there was no lock file; it equals ``taken_ns`` once the dream's change is made.
    """

    directory: str
    pid: int
    taken_ns: int
    prior_ns: int | None

    @property
    def finished(self) -> bool:
        """Whether the dream's change was made, so that its time remains."""
        return self.prior_ns == self.taken_ns


def lock_rows(table: Docs) -> tuple[LockRow, ...]:
    """Return all rows in the order of their directories, without those of impossible paths."""
    rows = sorted(table.list_all(LockRow).values(), key=lambda row: row.directory)
    return tuple(row for row in rows if "\0" not in row.directory)


def time_kept(held: ConsolidationLock) -> Effect:
    """Return the effect after which the dream's own time is the one to restore.

    If a newer dream holds the lock by then, its failure restores this time.
    """

    def keep(cursor: Any, _change: str | None) -> None:
        pid, taken_ns = 0, held.taken_ns  # 0: the row was deleted before
        row = docs.get(cursor, LockRow, held.directory)
        if row is not None:
            pid, taken_ns = row.pid, row.taken_ns
        docs.put(cursor, LockRow(held.directory, pid, taken_ns, held.taken_ns), held.directory)

    return keep


class DreamLock(Struct, frozen=True):
    """Takes and releases the locks of directories. Methods block.

    ``is_alive`` returns whether a process with a PID lives.
    """

    table: Docs
    clock: Clock
    is_alive: IsAlive

    def take(self, directory: str) -> ConsolidationLock | None:
        """Take the lock of a directory and return it, or ``None`` if another program holds it.

        Raises Storage and StateUnusableError.
        """
        self._repair_in(directory)

        def remember(pid: int, taken_ns: int, prior_ns: int | None) -> None:
            self.table.put(LockRow(directory, pid, taken_ns, prior_ns), directory)

        held = None
        try:
            held = lock.take(directory, self.clock.now(), remember, self.is_alive)
        finally:
            if held is None:
                self._repair_in(directory)
        return held

    def finish(self, held: ConsolidationLock, *, is_complete: bool) -> None:
        """Release a lock. Never raises.

        If the dream is complete, the lock file gets the dream's time, else the time before it. If
        the disk or the state file fails, the row stays for a later repair.
        """
        prior_ns = held.prior_ns
        with suppress(MemdError):  # without the row, the lock's own time before is used
            row = self._row(held.directory)
            prior_ns = row.prior_ns if row else prior_ns  # the dream's own once it is committed
        with suppress(MemdError):
            held.release(held.taken_ns if is_complete else prior_ns)
            self.table.delete(LockRow, held.directory)

    def recover(self) -> tuple[str, ...]:
        """Repair the locks of dreams that a crash ended; call it before any dream.

        Returns a sentence about each. Raises StateUnusableError.
        """
        sentences = (self._repair(row) for row in lock_rows(self.table))
        return tuple(filter(None, sentences))

    def _repair(self, row: LockRow) -> str:
        """Release the lock of a dream that is over; return a sentence, "" if nothing was done."""
        try:
            restored = lock.restore(row.directory, row.pid, row.taken_ns, row.prior_ns)
        except Storage as error:
            return error.sentence
        if restored is not None:
            self.table.delete(LockRow, row.directory)
        if not restored:
            return ""
        sequel = "its work is done" if row.finished else "it may run again"
        return f"a dream in {row.directory} had ended with memd; {sequel}"

    def _repair_in(self, directory: str) -> None:
        """Release the lock in a directory if an ended dream left it."""
        row = self._row(directory)
        if row is not None:
            self._repair(row)

    def _row(self, directory: str) -> LockRow | None:
        """Return the row of a directory's lock, ``None`` if there is none."""
        return self.table.get(LockRow, directory)
