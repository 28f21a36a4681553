"""Store which memories each session has been given, so that none is given twice.

Rules of this file
- A memory is marked when it is sent, not when it is selected.
- ``mark`` decides in memory without waiting, so two prefetches at once never give one memory twice
  or exceed the cap together, and a slow disk delays no prompt. ``flush`` writes the marks later.
- A flush is not synced: it survives a kill of the daemon. A power cut may lose the latest marks;
  then a memory is given a second time.
- The marks of the 1,000 sessions used last are kept (``store/forget.py``), so that a client that
  resumes a session is given nothing twice. A session of one call of memctl is not stored.
- A session that is reset starts without marks; its old rows stay to answer when a memory was last
  surfaced. A fork starts with the marks of its parent.
- ``load``, ``flush`` and the queries block and may run in any thread. All other methods do not
  block and are only called on the event loop's thread.
"""

import json
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from operator import itemgetter

from msgspec import Struct, field

from memd.state.database import Database, StateUnusableError

SCHEMA = """
CREATE TABLE IF NOT EXISTS surfaced (
    id INTEGER PRIMARY KEY,
    session TEXT NOT NULL,
    path TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    at REAL NOT NULL,
    live INTEGER NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS surfaced_once
    ON surfaced (session, path, fingerprint) WHERE live;
CREATE INDEX IF NOT EXISTS surfaced_path ON surfaced (path, at);
CREATE INDEX IF NOT EXISTS surfaced_at ON surfaced (at);
CREATE INDEX IF NOT EXISTS surfaced_use ON surfaced (session) WHERE path = '';
"""
_SECONDS_BETWEEN_USES = 60 * 60.0  # a session's last use is stored at most once in this time
_MOST_SESSIONS = 512  # in memory; one that was dropped is read again when it comes back
_MEMCTL_SESSION = "memctl-"  # the start of a session's name that memctl makes for one request
_MOST_UNWRITTEN = 10_000  # statements in memory while the state file cannot be written (some 3 MB)

_MARK = (
    "INSERT OR IGNORE INTO surfaced (session, path, fingerprint, bytes, at, live)"
    " VALUES (?, ?, ?, ?, ?, 1)"
)
_UNMARK = "DELETE FROM surfaced WHERE session = ? AND path = ? AND fingerprint = ? AND live"
_RESET = (
    "UPDATE surfaced SET live = 0 WHERE session = ? AND live"
    " AND path NOT IN (SELECT value FROM json_each(?))"
)
_INHERIT = (
    "INSERT OR IGNORE INTO surfaced (session, path, fingerprint, bytes, at, live)"
    " SELECT ?, path, fingerprint, bytes, at, 1 FROM surfaced WHERE session = ? AND live"
)
# The last use of a session is stored as a row without a path.
_INSERT_USE = (
    "INSERT INTO surfaced (session, path, fingerprint, bytes, at, live) VALUES (?, '', '', 0, ?, 0)"
)
_DELETE_EARLIER_USES = (
    "DELETE FROM surfaced WHERE session = ? AND path = '' AND id < last_insert_rowid()"
)
_LAST_USE = "SELECT max(at) AS at FROM surfaced WHERE session = ? AND path = ''"
_OFTEN = """
SELECT path, count(*) AS times, count(DISTINCT session) AS sessions FROM surfaced
WHERE path <> '' AND at >= ? AND at <= ? GROUP BY path ORDER BY times DESC, max(id) DESC
"""

Parents = Callable[[], Collection[str]]  # finds the sessions that one was made from; blocks


class Item(Struct, frozen=True):
    """A memory that is about to be given to a session."""

    path: str  # absolute
    fingerprint: str  # of the version
    bytes: int  # of the content


class Surfaced(Struct, frozen=True):
    """The memories that a session has been given."""

    bytes: int  # of all of them
    paths: Mapping[str, str]  # the latest fingerprint by absolute path


class Sighting(Struct, frozen=True):
    """When a memory was last given to a session; ``at`` is seconds since 1970."""

    session: str
    at: float


class Surfacings(Struct, frozen=True):
    """How often the memory at an absolute path was given, and to how many sessions."""

    path: str
    times: int
    sessions: int


class _SessionRecord(Struct):
    """The memories that one session was given."""

    # By path and fingerprint of the memory: bytes. The memory that was given last comes last.
    items: dict[tuple[str, str], int] = field(default_factory=dict)
    # The last use that is stored, in seconds since 1970; ``None`` for a session without one.
    last_use: float | None = None


class Ledger:
    """Records which memories were given to which session."""

    def __init__(self, database: Database) -> None:
        self._database = database
        # By session; the session that was used last comes last.
        self._sessions: OrderedDict[str, _SessionRecord] = OrderedDict()
        # SQL statements with their parameters to run later; the oldest are dropped.
        self._unwritten: deque[tuple[str, tuple[object, ...]]] = deque(maxlen=_MOST_UNWRITTEN)
        self._flush_lock = threading.Lock()  # held by ``flush``, so that statements stay in order

    def known(self, session: str) -> bool:
        """Return whether a session's marks are in memory and in use; if not, call ``load``."""
        record = self._sessions.get(session)
        return record is not None and record.last_use is not None

    def load(self, session: str, parents: Parents = frozenset) -> Collection[str]:
        """Read a session's marks; return the parents to pass to ``use``, empty for a known session.

        ``parents`` is called only for a new session. Blocks. Raises StateUnusableError.
        """
        with suppress(StateUnusableError):  # reading works on a full disk; the rest is in memory
            self.flush()
        record = self._sessions.get(session) or self._read_record(session)
        is_new = record.last_use is None and not record.items
        parent_sessions = parents() if is_new else ()
        for parent in parent_sessions:
            self._sessions.setdefault(parent, self._read_record(parent))
        self._sessions.setdefault(session, record)
        return parent_sessions

    def use(self, session: str, at: float, parents: Iterable[str] = ()) -> None:
        """Store that a session is in use at ``at``, in seconds since 1970.

        It gets the marks of its ``parents``, whose messages are in its context.
        """
        record = self._record_of(session)
        for parent in parents:
            record.items = self._record_of(parent).items | record.items
            self._write(session, _INHERIT, session, parent)
        # The clock may have been set back, hence the absolute value.
        if record.last_use is None or abs(at - record.last_use) >= _SECONDS_BETWEEN_USES:
            record.last_use = at
            self._write(session, _INSERT_USE, session, at)
            self._write(session, _DELETE_EARLIER_USES, session)

    def surfaced(self, session: str) -> Surfaced:
        """Return what a session has been given since it began or was reset."""
        items = self._sessions.get(session, _SessionRecord()).items
        # Of several versions of a memory the latest comes last, so its fingerprint stays.
        latest_fingerprints = dict(items.keys())
        return Surfaced(sum(items.values()), latest_fingerprints)

    def mark(
        self, session: str, items: Sequence[Item], cap: int, at: float
    ) -> tuple[tuple[Item, ...], int]:
        """Mark the items that may be given to a session; return them and the session's new bytes.

        An item is left out if the session already has this version of it, or if the session's bytes
        would exceed ``cap``. Items are considered in the order given.
        """
        record = self._record_of(session)
        marked = self.fitting(session, items, cap)
        for item in marked:
            record.items[item.path, item.fingerprint] = item.bytes
            self._write(session, _MARK, session, item.path, item.fingerprint, item.bytes, at)
        return marked, sum(record.items.values())

    def fitting(self, session: str, items: Sequence[Item], cap: int) -> tuple[Item, ...]:
        """Return the items that ``mark`` would mark now, without marking them."""
        taken = dict(self._record_of(session).items)
        total = sum(taken.values())
        fitting = []
        for item in items:
            key = (item.path, item.fingerprint)
            if key not in taken and total + item.bytes <= cap:
                taken[key] = item.bytes
                total += item.bytes
                fitting.append(item)
        return tuple(fitting)

    def unmark(self, session: str, items: Iterable[Item]) -> None:
        """Remove the marks of items whose response was cancelled before it was sent."""
        record = self._record_of(session)
        for item in items:
            record.items.pop((item.path, item.fingerprint), None)
            self._write(session, _UNMARK, session, item.path, item.fingerprint)

    def reset(self, session: str, but: Collection[str] = ()) -> None:
        """Delete the marks of a session that was compacted or cleared, so it is given all again.

        ``but`` are absolute paths of memories that are still in its context.
        """
        record = self._record_of(session)
        record.items = {
            (path, fingerprint): size
            for (path, fingerprint), size in record.items.items()
            if path in but
        }
        self._write(session, _RESET, session, json.dumps(list(but)))

    def flush(self) -> None:
        """Write the marks that are only in memory. Blocks. Raises StateUnusableError, losing none.

        At most 10,000 statements wait for a failing disk; the oldest beyond that are never written.
        """
        with self._flush_lock:
            count = len(self._unwritten)
            if not count:
                return
            # One by one: the event loop's thread may add statements meanwhile.
            statements = [self._unwritten.popleft() for _ in range(count)]
            try:
                with self._database.transaction(synced=False) as cursor:
                    # In their order, since a mark may follow a reset; equal neighbours run as one
                    # call.
                    for statement, equal_statements in groupby(statements, itemgetter(0)):
                        cursor.executemany(statement, map(itemgetter(1), equal_statements))
            except BaseException:
                # In front of those that were added meanwhile.
                self._unwritten.extendleft(reversed(statements))
                raise

    def often_surfaced(self, since: float, until: float) -> tuple[Surfacings, ...]:
        """Return the memories given to sessions in a span (seconds since 1970), the most first.

        Blocks. Raises StateUnusableError.
        """
        self.flush()
        return tuple(Surfacings(*row) for row in self._database.read(_OFTEN, (since, until)))

    def last_surfaced(self, directory: str, path: str) -> Sighting | None:
        """Return when the memory at a path within a directory was last given, or ``None``.

        Blocks. Raises StateUnusableError.
        """
        self.flush()
        rows = self._database.read(
            "SELECT session, at FROM surfaced WHERE path = ? ORDER BY at DESC, id DESC LIMIT 1",
            (f"{directory}/{path}",),
        )
        return Sighting(session=rows[0]["session"], at=rows[0]["at"]) if rows else None

    def _write(self, session: str, statement: str, *values: object) -> None:
        """Run a statement at the next flush, unless the session is of one call of memctl."""
        if not session.startswith(_MEMCTL_SESSION):
            self._unwritten.append((statement, values))

    def _record_of(self, session: str) -> _SessionRecord:
        """Return a session's record in memory; drop the least recently used sessions."""
        record = self._sessions.setdefault(session, _SessionRecord())
        self._sessions.move_to_end(session)
        # Unwritten marks are only in memory, so no session is dropped before a flush.
        while len(self._sessions) > _MOST_SESSIONS and not self._unwritten:
            self._sessions.popitem(last=False)
        return record

    def _read_record(self, session: str) -> _SessionRecord:
        """Read a session's marks and the time of its last use from the state file."""
        rows = self._database.read(
            "SELECT path, fingerprint, bytes FROM surfaced WHERE session = ? AND live ORDER BY id",
            (session,),
        )
        items = {(row["path"], row["fingerprint"]): row["bytes"] for row in rows}
        last_use = self._database.read(_LAST_USE, (session,))[0]["at"]
        return _SessionRecord(items, last_use)
