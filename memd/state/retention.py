"""Delete old change sets, bodies and requests from the journal, in small batches.

Rules of this file
- Memories in directories are never touched, only rows and bodies in the state file.
- Never deleted are: change sets that are recorded and not ended, open proposals, and bodies that a
  remaining change set, the baseline, a sync of team memory or an import names. The age of a decided
  proposal is that of its last decision. Numbers of change sets are never used again.
- ``state/ages.py`` decides what is too old. If the file is too large, change sets are deleted in
  the order of their numbers, but first past changes that imports brought, as old as their import.
- The original of an imported file is kept as long as the file is as the import wrote it.
- Each batch is one small transaction, so writers wait for at most one. It waits for readers of
  several rows that belong together (``Journal.without_pruning``). A crash leaves whole batches: a
  change set is there with all its files and bodies, or not at all.
- Bodies that nothing names any more are found by reading all of them, a page at a time.
"""

from collections.abc import Iterable

from msgspec import Struct

from memd.state.ages import Bound
from memd.state.database import Cursor, Database
from memd.state.figures import used_bytes

# The most that one transaction deletes or inspects.
_SETS_AT_ONCE = 50
_FILES_AT_ONCE = 500  # of the change sets; a single set may have more
_BODIES_AT_ONCE = 500
_REQUESTS_AT_ONCE = 500
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
# SQL: whether a row in use names the body of the outer query.
_NAMED = (
    "EXISTS (SELECT 1 FROM change_files WHERE before = blobs.hash)"
    " OR EXISTS (SELECT 1 FROM change_files WHERE after = blobs.hash)"
    " OR EXISTS (SELECT 1 FROM shadows WHERE shadows.hash = blobs.hash)"
    " OR EXISTS (SELECT 1 FROM team_bodies WHERE team_bodies.hash = blobs.hash)"
    " OR EXISTS (SELECT 1 FROM imported_files WHERE exported = blobs.hash)"
    " OR EXISTS (SELECT 1 FROM past_bodies WHERE past_bodies.hash = blobs.hash)"
)


class Pruned(Struct, frozen=True):
    """What one batch deleted."""

    changes: int = 0
    bodies: int = 0
    requests: int = 0
    more: bool = False  # another batch may have something to delete

    def __add__(self, other: "Pruned") -> "Pruned":
        """Return the sum of both; ``more`` is that of the later one."""
        changes, bodies = self.changes + other.changes, self.bodies + other.bodies
        return Pruned(changes, bodies, self.requests + other.requests, other.more)


class Retention:
    """One round of deleting. Call ``batch`` until its result says that there is no more.

    Rows older than ``bound`` are deleted, and then the oldest ones while the state file uses more
    than ``most`` bytes.
    """

    def __init__(self, database: Database, bound: Bound, most: int) -> None:
        self._database = database
        self._limits = (bound.before, bound.change)  # of a row's time and id, in queries
        self._most = most
        self._last_swept_hash = ""  # bodies are inspected in the order of their hashes

    def batch(self) -> Pruned:
        """Delete one batch and return what it deleted. Blocks. Raise StateUnusableError."""
        with self._database.file.pruning.alone():
            return self._batch()

    def _batch(self) -> Pruned:
        """Delete rows of the first kind that has old ones, and return what was deleted."""
        past = self._select_numbers(_PAST, (*self._limits, _SETS_AT_ONCE))
        old = self._select_numbers(_OLD, (*self._limits, _SETS_AT_ONCE))
        if not past and not old and used_bytes(self._database) > self._most:
            past = self._select_numbers(_OLDEST_PAST, (_SETS_AT_ONCE,))
            old = [] if past else self._select_numbers(_OLDEST, (_SETS_AT_ONCE,))
        if past:
            return self._prune_past(past)
        if old:
            return self._prune_changes(old)
        if self._database.read(f"SELECT 1 {_ORIGINALS}", (*self._limits, 1)):
            return self._prune_originals()
        if self._database.read(f"SELECT 1 {_OLD_REQUESTS}", (*self._limits, 1)):
            return self._prune_requests()
        return self._prune_unused_bodies()

    def _select_numbers(self, query: str, values: tuple[object, ...]) -> list[int]:
        """Return the first column of a query."""
        return [row[0] for row in self._database.read(query, values)]

    def _prune_changes(self, numbers: Iterable[int]) -> Pruned:
        """Delete change sets with their files, and the bodies that nothing else names."""
        changes, hashes, files = 0, set[str](), 0
        with self._database.transaction() as cursor:
            for number in numbers:
                cursor.execute("SELECT before, after FROM change_files WHERE change = ?", (number,))
                rows = cursor.fetchall()
                # At least one set for each batch, however many files it has.
                if changes and files + len(rows) > _FILES_AT_ONCE:
                    break
                files += len(rows)
                hashes.update(value for row in rows for value in row if isinstance(value, str))
                cursor.execute("DELETE FROM change_files WHERE change = ?", (number,))
                cursor.execute("DELETE FROM changes WHERE id = ?", (number,))
                changes += 1
            bodies = _delete_unnamed_bodies(cursor, hashes)
        return Pruned(changes, bodies, more=True)

    def _prune_past(self, numbers: Iterable[int]) -> Pruned:
        """Delete past changes of imports, and the bodies that nothing else names."""
        changes, hashes = 0, set[str]()
        with self._database.transaction() as cursor:
            for number in numbers:
                cursor.execute("SELECT hash FROM past_bodies WHERE number = ?", (number,))
                hashes.update(row["hash"] for row in cursor.fetchall())
                cursor.execute("DELETE FROM past_bodies WHERE number = ?", (number,))
                cursor.execute("DELETE FROM past_changes WHERE number = ?", (number,))
                changes += 1
                if len(hashes) > _BODIES_AT_ONCE:  # the next batch goes on
                    break
            bodies = _delete_unnamed_bodies(cursor, hashes)
        return Pruned(changes, bodies, more=True)

    def _prune_originals(self) -> Pruned:
        """Delete old originals of imported files that have changed since."""
        with self._database.transaction() as cursor:
            cursor.execute(
                f"SELECT directory, path, live, exported {_ORIGINALS}",
                (*self._limits, _FILES_AT_ONCE),
            )
            rows = cursor.fetchall()
            cursor.executemany(
                "DELETE FROM imported_files WHERE (directory, path, live) = (?, ?, ?)",
                [row[:3] for row in rows],
            )
            bodies = _delete_unnamed_bodies(cursor, {row["exported"] for row in rows})
        return Pruned(bodies=bodies, more=True)

    def _prune_requests(self) -> Pruned:
        """Delete stored results of old requests."""
        requests = self._database.write(
            "DELETE FROM requests WHERE (directory, client, request) IN"  # noqa: S608 - fixed words
            f" (SELECT directory, client, request {_OLD_REQUESTS})",
            (*self._limits, _REQUESTS_AT_ONCE),
        )
        return Pruned(requests=requests, more=True)

    def _prune_unused_bodies(self) -> Pruned:
        """Delete the unnamed bodies among the next page of all bodies."""
        page = self._database.read(
            f"SELECT hash, {_NAMED} AS named FROM blobs WHERE hash > ? ORDER BY hash LIMIT ?",  # noqa: S608 - fixed words
            (self._last_swept_hash, _BODIES_AT_ONCE),
        )
        if not page:
            return Pruned()
        self._last_swept_hash = page[-1]["hash"]
        unused = [row["hash"] for row in page if not row["named"]]
        if not unused:  # avoid an empty transaction, for which writers would wait
            return Pruned(more=True)
        with self._database.transaction() as cursor:
            return Pruned(bodies=_delete_unnamed_bodies(cursor, unused), more=True)


def _delete_unnamed_bodies(cursor: Cursor, hashes: Iterable[str]) -> int:
    """Delete those of the bodies that no row names; return how many."""
    deleted = 0
    for body_hash in hashes:
        cursor.execute(f"DELETE FROM blobs WHERE hash = ? AND NOT ({_NAMED})", (body_hash,))  # noqa: S608 - fixed words
        deleted += cursor.rowcount
    return deleted
