"""What the journal forgets: what is too old or too much, a little at a time.

Rules of this file
- Live memories are never touched: only rows and bodies of the state file are.
- A set that is recorded and not ended, or an open proposal, is never pruned, nor a body that a
  kept set, a shadow, a sync of team memory or an import names. A decided proposal is as old as
  its last decision. The numbers of sets are never used again.
- What is too old goes by ``state/ages.py``, what is too much by its number alone, and past changes
  that imports brought before all others. They are as old as their import.
- The original of a file that is as an import wrote it is never pruned.
- Each batch is one small transaction: writers wait for at most one, it waits for who just reads
  several rows that belong together (``Journal.unpruned``), and a kill at any instant
  leaves the sets of whole batches, each with all its files and bodies, or none of it.
- A body that nobody names any more is found by going through all of them in the order of their
  hashes, a page at a time.
"""

from collections.abc import Iterable

from msgspec import Struct

from memd.state.ages import Bound
from memd.state.database import Cursor, Database
from memd.state.figures import used_bytes

_SETS = 50  # pruned in one transaction, or fewer where they have many files
_FILES = 500
_BODIES = 500  # looked at in one transaction
_REQUESTS = 500
_OLD = (
    "SELECT id FROM changes WHERE state NOT IN ('recorded', 'proposed') AND at < ?1 AND id <= ?2"
    " AND coalesce(decided, at) < ?1 ORDER BY at, id LIMIT ?3"
)
_OLD_REQUESTS = "FROM requests WHERE at < ?1 AND coalesce(change, 0) BETWEEN -?2 AND ?2 LIMIT ?3"
_OLDEST = "SELECT id FROM changes WHERE state NOT IN ('recorded', 'proposed') ORDER BY id LIMIT ?"
_PAST = "SELECT number FROM past_changes WHERE at < ? AND newest <= ? ORDER BY number LIMIT ?"
_OLDEST_PAST = "SELECT number FROM past_changes ORDER BY number LIMIT ?"
_ORIGINALS = (
    "FROM imported_files o WHERE at < ?1 AND newest <= ?2 AND NOT EXISTS (SELECT 1 FROM shadows s"
    " WHERE (s.directory, s.path, s.hash) = (o.directory, o.path, o.live)) LIMIT ?3"
)
_NAMED = (
    "EXISTS (SELECT 1 FROM change_files WHERE before = blobs.hash)"
    " OR EXISTS (SELECT 1 FROM change_files WHERE after = blobs.hash)"
    " OR EXISTS (SELECT 1 FROM shadows WHERE shadows.hash = blobs.hash)"
    " OR EXISTS (SELECT 1 FROM team_bodies WHERE team_bodies.hash = blobs.hash)"
    " OR EXISTS (SELECT 1 FROM imported_files WHERE exported = blobs.hash)"
    " OR EXISTS (SELECT 1 FROM past_bodies WHERE past_bodies.hash = blobs.hash)"
)


class Pruned(Struct, frozen=True):
    """What one batch took away; ``more`` says that another one has work."""

    changes: int = 0
    bodies: int = 0
    requests: int = 0
    more: bool = False

    def __add__(self, other: "Pruned") -> "Pruned":
        """Return what both took away; the later one knows whether there is more."""
        changes, bodies = self.changes + other.changes, self.bodies + other.bodies
        return Pruned(changes, bodies, self.requests + other.requests, other.more)


class Retention:
    """One round of pruning. Call ``batch`` until there is no more; it blocks.

    What is older than the bound goes, and the oldest as long as the state file holds more than
    ``most`` bytes.
    """

    def __init__(self, database: Database, bound: Bound, most: int) -> None:
        self._database = database
        self._old = (bound.before, bound.change)
        self._most = most
        self._swept = ""

    def batch(self) -> Pruned:
        """Prune a little. Raises StateUnusableError; what was pruned so far stays pruned."""
        with self._database.file.pruning.alone():
            return self._batch()

    def _batch(self) -> Pruned:
        past = self._numbers(_PAST, (*self._old, _SETS))
        old = self._numbers(_OLD, (*self._old, _SETS))
        if not past and not old and used_bytes(self._database) > self._most:
            past = self._numbers(_OLDEST_PAST, (_SETS,))
            old = [] if past else self._numbers(_OLDEST, (_SETS,))
        if past:
            return self._prune_past(past)
        if old:
            return self._prune(old)
        if self._database.read(f"SELECT 1 {_ORIGINALS}", (*self._old, 1)):
            return self._prune_originals()
        if self._database.read(f"SELECT 1 {_OLD_REQUESTS}", (*self._old, 1)):
            return self._prune_requests()
        return self._sweep()

    def _numbers(self, query: str, values: tuple[object, ...]) -> list[int]:
        return [row[0] for row in self._database.read(query, values)]

    def _prune(self, numbers: Iterable[int]) -> Pruned:
        changes, hashes, files = 0, set[str](), 0
        with self._database.transaction() as cursor:
            for number in numbers:
                cursor.execute("SELECT before, after FROM change_files WHERE change = ?", (number,))
                rows = cursor.fetchall()
                if changes and files + len(rows) > _FILES:
                    break
                files += len(rows)
                hashes.update(key for row in rows for key in row if isinstance(key, str))
                cursor.execute("DELETE FROM change_files WHERE change = ?", (number,))
                cursor.execute("DELETE FROM changes WHERE id = ?", (number,))
                changes += 1
            bodies = _drop(cursor, hashes)
        return Pruned(changes, bodies, more=True)

    def _prune_past(self, numbers: Iterable[int]) -> Pruned:
        changes, hashes = 0, set[str]()
        with self._database.transaction() as cursor:
            for number in numbers:
                cursor.execute("SELECT hash FROM past_bodies WHERE number = ?", (number,))
                hashes.update(row["hash"] for row in cursor.fetchall())
                cursor.execute("DELETE FROM past_bodies WHERE number = ?", (number,))
                cursor.execute("DELETE FROM past_changes WHERE number = ?", (number,))
                changes += 1
                if len(hashes) > _BODIES:
                    break
            bodies = _drop(cursor, hashes)
        return Pruned(changes, bodies, more=True)

    def _prune_originals(self) -> Pruned:
        with self._database.transaction() as cursor:
            cursor.execute(
                f"SELECT directory, path, live, exported {_ORIGINALS}", (*self._old, _FILES)
            )
            rows = cursor.fetchall()
            cursor.executemany(
                "DELETE FROM imported_files WHERE (directory, path, live) = (?, ?, ?)",
                [row[:3] for row in rows],
            )
            bodies = _drop(cursor, {row["exported"] for row in rows})
        return Pruned(bodies=bodies, more=True)

    def _prune_requests(self) -> Pruned:
        requests = self._database.write(
            "DELETE FROM requests WHERE (directory, client, request) IN"  # noqa: S608 - fixed words
            f" (SELECT directory, client, request {_OLD_REQUESTS})",
            (*self._old, _REQUESTS),
        )
        return Pruned(requests=requests, more=True)

    def _sweep(self) -> Pruned:
        page = self._database.read(
            f"SELECT hash, {_NAMED} AS named FROM blobs WHERE hash > ? ORDER BY hash LIMIT ?",  # noqa: S608 - fixed words
            (self._swept, _BODIES),
        )
        if not page:
            return Pruned()
        self._swept = page[-1]["hash"]
        unused = [row["hash"] for row in page if not row["named"]]
        if not unused:  # a transaction costs a wait
            return Pruned(more=True)
        with self._database.transaction() as cursor:
            return Pruned(bodies=_drop(cursor, unused), more=True)


def _drop(cursor: Cursor, hashes: Iterable[str]) -> int:
    dropped = 0
    for key in hashes:
        cursor.execute(f"DELETE FROM blobs WHERE hash = ? AND NOT ({_NAMED})", (key,))  # noqa: S608 - fixed words
        dropped += cursor.rowcount
    return dropped
