"""Bound the state file: history by its size, all else by number, in small batches.

Rules of this file
- Memories in directories are never touched, only rows and bodies in the state file. Nothing is
  removed by its age.
- Never deleted are: change sets that are recorded and not ended, open proposals, and bodies that a
  remaining change set, the baseline or a sync of team memory names.
- If the file is too large, change sets are deleted in the order of their numbers, which are never
  used again.
- Each batch is one small transaction, so writers wait for at most one. It waits for readers of
  several rows that belong together (``Journal.without_pruning``). A crash leaves whole batches: a
  change set is there with all its files and bodies, or not at all.
- Bodies that nothing names any more are found by reading all of them, a page at a time.
"""

from collections.abc import Iterable

from msgspec import Struct

from memd.state.database import Cursor, Database

# The most that one transaction deletes or inspects.
_SETS_AT_ONCE = 50
_FILES_AT_ONCE = 500  # of the change sets; a single set may have more
_BODIES_AT_ONCE = 500
_OLDEST = "SELECT id FROM changes WHERE state NOT IN ('recorded', 'proposed') ORDER BY id LIMIT ?"
# Keep the newest rows: answers of requests, marks of sessions, days of spending.
_KEEP_NEWEST = """
DELETE FROM requests WHERE (directory, client, request) IN (
    SELECT directory, client, request FROM requests
    ORDER BY abs(coalesce(change, 0)) DESC, at DESC LIMIT -1 OFFSET 10000);
DELETE FROM surfaced WHERE session IN (
    SELECT session FROM surfaced GROUP BY session ORDER BY max(id) DESC LIMIT -1 OFFSET 1000);
DELETE FROM spend WHERE day IN (
    SELECT DISTINCT day FROM spend ORDER BY day DESC LIMIT -1 OFFSET 400)
"""
# SQL: whether a row in use names the body of the outer query.
_NAMED = (
    "EXISTS (SELECT 1 FROM change_files WHERE before = blobs.hash)"
    " OR EXISTS (SELECT 1 FROM change_files WHERE after = blobs.hash)"
    " OR EXISTS (SELECT 1 FROM shadows WHERE shadows.hash = blobs.hash)"
    " OR EXISTS (SELECT 1 FROM team_bodies WHERE team_bodies.hash = blobs.hash)"
)


class Pruned(Struct, frozen=True):
    """What one batch deleted."""

    changes: int = 0
    bodies: int = 0
    more: bool = False  # another batch may have something to delete

    def __add__(self, other: "Pruned") -> "Pruned":
        """Return the sum of both; ``more`` is that of the later one."""
        return Pruned(self.changes + other.changes, self.bodies + other.bodies, other.more)


class Retention:
    """One round of deleting. Call ``batch`` until its result says that there is no more.

    The oldest history is deleted while the state file uses more than ``most`` bytes.
    """

    def __init__(self, database: Database, most: int) -> None:
        self._database = database
        self._most = most
        self._last_swept_hash = ""  # bodies are inspected in the order of their hashes

    def batch(self) -> Pruned:
        """Delete one batch and return what it deleted. Blocks. Raise StateUnusableError."""
        with self._database.file.pruning.alone():
            return self._batch()

    def _batch(self) -> Pruned:
        """Delete rows of the first kind that has too many, and return what was deleted."""
        if used_bytes(self._database) > self._most:
            changes = self._select_numbers(_OLDEST)
            if changes:
                return self._prune_changes(changes)
        return self._prune_unused_bodies()

    def _select_numbers(self, query: str) -> list[int]:
        """Return the first column of a query."""
        return [row[0] for row in self._database.read(query, (_SETS_AT_ONCE,))]

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

    def _prune_unused_bodies(self) -> Pruned:
        """Delete the unnamed bodies among the next page of all bodies; after the last, old rows."""
        page = self._database.read(
            f"SELECT hash, {_NAMED} AS named FROM blobs WHERE hash > ? ORDER BY hash LIMIT ?",  # noqa: S608 - fixed words
            (self._last_swept_hash, _BODIES_AT_ONCE),
        )
        if not page:
            with self._database.transaction(synced=False) as cursor:
                for query in _KEEP_NEWEST.split(";"):
                    cursor.execute(query)
            return Pruned()
        self._last_swept_hash = page[-1]["hash"]
        unused = [row["hash"] for row in page if not row["named"]]
        if not unused:  # avoid an empty transaction, for which writers would wait
            return Pruned(more=True)
        with self._database.transaction() as cursor:
            return Pruned(bodies=_delete_unnamed_bodies(cursor, unused), more=True)


def used_bytes(database: Database) -> int:
    """Return the bytes of the file's pages in use, without free pages, which SQLite reuses."""
    pages, free, size = (
        database.read(f"PRAGMA {name}")[0][0]
        for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


def _delete_unnamed_bodies(cursor: Cursor, hashes: Iterable[str]) -> int:
    """Delete those of the bodies that no row names; return how many."""
    deleted = 0
    for body_hash in hashes:
        cursor.execute(f"DELETE FROM blobs WHERE hash = ? AND NOT ({_NAMED})", (body_hash,))  # noqa: S608 - fixed words
        deleted += cursor.rowcount
    return deleted
