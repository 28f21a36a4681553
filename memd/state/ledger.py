"""Store which memories each session has been given, so that none is given twice.

Rules of this file
- A memory is marked when it is sent, not when it is selected.
- ``mark`` decides in memory, so two prefetches at once never give one memory twice or exceed the
  cap together. ``flush`` writes the marks; what a failing disk refuses waits for the next flush.
- A flush is not synced: it survives a kill of the daemon. A power cut may lose the latest marks,
  and marks may go with a state file that was removed; then a memory is given a second time.
- The marks of the 1,000 sessions used last are kept (``store/forget.py``), so that a client that
  resumes a session is given nothing twice. A session of one call of memctl is not stored.
- A session that is reset starts without marks; its old rows stay to answer when a memory was last
  surfaced. A fork starts with the marks of its parent.
- In ``live`` the lowest bit says that the session has the memory. The next one says that a person
  asked for it with memctl: that counts as no use in the report.
- A row has some 60 bytes: sessions and paths are in tables of their own.
- All methods may run in any thread. ``cancel`` does not block; all others do.
"""

import json
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress

from msgspec import Struct, field

from memd.state.database import Database, StateUnusableError

SCHEMA = """
CREATE TABLE IF NOT EXISTS given_session (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    used REAL NOT NULL,
    turn INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS given_path (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS given (
    id INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    path INTEGER NOT NULL,
    hash BLOB NOT NULL,
    bytes INTEGER NOT NULL,
    at REAL NOT NULL,
    live INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS given_in_session ON given (session);
DROP TABLE IF EXISTS surfaced;
"""
_SECONDS_BETWEEN_USES = 60 * 60.0  # a session's last use is stored at most once in this time
_MOST_SESSIONS = 512  # in memory; one that was dropped is read again when it comes back
_MEMCTL_SESSION = "memctl-"  # the start of a session's name that memctl makes for one request
_LIVE, _FOR_PERSON = 1, 2  # the bits of ``live``
_MOST_UNWRITTEN = 10_000  # statements in memory while the state file cannot be written (some 3 MB)

# ``turn`` orders sessions by their last use, whatever the clock says: the newest row at that time.
_USE = (
    "INSERT INTO given_session (name, used, turn)"
    " VALUES (?, ?, ifnull((SELECT max(id) FROM given), 0))"
    " ON CONFLICT (name) DO UPDATE SET used = excluded.used, turn = excluded.turn"
)
_ADD_PATH = "INSERT OR IGNORE INTO given_path (path) VALUES (?)"
_MARK = (
    "INSERT INTO given (session, path, hash, bytes, at, live) SELECT s.id, p.id, ?, ?, ?, ?"
    " FROM given_session s, given_path p WHERE s.name = ? AND p.path = ?"
)
_UNMARK = (
    "DELETE FROM given WHERE session = (SELECT id FROM given_session WHERE name = ?)"
    " AND path = (SELECT id FROM given_path WHERE path = ?) AND hash = ? AND live & 1"
)
_RESET = (
    "UPDATE given SET live = live & ~1"
    " WHERE session = (SELECT id FROM given_session WHERE name = ?)"
    " AND path NOT IN (SELECT id FROM given_path WHERE path IN (SELECT value FROM json_each(?)))"
)
_INHERIT = (
    "INSERT INTO given (session, path, hash, bytes, at, live)"
    " SELECT s.id, g.path, g.hash, g.bytes, g.at, g.live FROM given_session s, given g"
    " WHERE s.name = ? AND g.live & 1 AND g.session = (SELECT id FROM given_session WHERE name = ?)"
)
_READ = (
    "SELECT s.used, p.path, g.hash, g.bytes FROM given_session s"
    " LEFT JOIN given g ON g.session = s.id AND g.live & 1 LEFT JOIN given_path p ON p.id = g.path"
    " WHERE s.name = ? ORDER BY g.id"
)
_OFTEN = (
    "SELECT p.path, count(*) AS times, count(DISTINCT g.session) AS sessions"
    " FROM given g JOIN given_path p ON p.id = g.path WHERE g.at BETWEEN ? AND ?"
    " AND g.live & 2 = 0"
    " GROUP BY p.path ORDER BY times DESC, max(g.id) DESC"
)
_LAST = (
    "SELECT s.name, g.at FROM given g JOIN given_session s ON s.id = g.session"
    " WHERE g.path = (SELECT id FROM given_path WHERE path = ?) ORDER BY g.at DESC, g.id DESC"
    " LIMIT 1"
)

# Returns the sessions from which a session that nothing is known of inherits; may read a file.
Parents = Callable[[], Collection[str]]


class Item(Struct, frozen=True):
    """One version of a memory that may be given to a session."""

    path: str  # absolute
    hash: str  # of the version
    bytes: int  # of the content


class Surfaced(Struct, frozen=True):
    """The memories that a session has been given."""

    bytes: int  # of all of them
    paths: Mapping[str, str]  # the latest hash by absolute path


class Sighting(Struct, frozen=True):
    """When a memory was last given to a session; ``at`` is seconds since 1970."""

    session: str
    at: float


class Surfacings(Struct, frozen=True):
    """How often the memory at an absolute path was given, and to how many sessions."""

    path: str
    times: int
    sessions: int


class Delivery(Struct):
    """What one prompt gives to its session, until its reply is sent."""

    session: str
    items: tuple[Item, ...] = ()
    is_cancelled: bool = False
    for_person: bool = False  # who looked with memctl


class _SessionRecord(Struct):
    """The memories that one session was given."""

    # By path and hash of the memory: bytes. The memory that was given last comes last.
    items: dict[tuple[str, str], int] = field(default_factory=dict)
    # The last use that is stored, in seconds since 1970; ``None`` for a session without one.
    used: float | None = None


class Ledger:
    """Records which memories were given to which session."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()  # guards the next two, and is never held during a query
        # By session; the session that was used last comes last.
        self._sessions: OrderedDict[str, _SessionRecord] = OrderedDict()
        # Statements to run later for a session, with their rows of parameters; the oldest are
        # dropped.
        self._unwritten: deque[tuple[str, str, Sequence[tuple[object, ...]]]] = deque(
            maxlen=_MOST_UNWRITTEN
        )
        self._flush_lock = threading.Lock()  # held by ``flush``, so that statements stay in order

    def open(
        self, session: str, at: float, parents: Parents = frozenset, *, use: bool = True
    ) -> Surfaced:
        """Return what a session has been given since it began or was reset.

        With ``use`` it is stored that the session is in use at ``at``, in seconds since 1970, and a
        new one inherits the marks of its ``parents``, whose messages are in its context. Raises
        StateUnusableError.
        """
        record = self._sessions.get(session)
        inherited: dict[str, _SessionRecord] = {}
        if record is None or record.used is None:
            with suppress(StateUnusableError):  # reading works on a full disk
                self.flush()  # a session that was dropped from memory is written now
            record = record or self._read(session)
            if record.used is None and not record.items and use:
                for parent in parents():
                    inherited[parent] = self._sessions.get(parent) or self._read(parent)
        with self._lock:
            record = self._sessions.setdefault(session, record)
            self._sessions.move_to_end(session)
            is_new = record.used is None
            # The clock may have been set back, hence the absolute value.
            if use and (record.used is None or abs(at - record.used) >= _SECONDS_BETWEEN_USES):
                record.used = at
                self._unwritten.append((session, _USE, [(session, at)]))
            for parent, given in inherited.items() if is_new else ():
                record.items = given.items | record.items
                self._unwritten.append((session, _INHERIT, [(session, parent)]))
            # Unwritten marks are only in memory, so no session is dropped before a flush.
            while len(self._sessions) > _MOST_SESSIONS and not self._unwritten:
                self._sessions.popitem(last=False)
            # Of several versions of a memory the latest comes last, so its hash stays.
            return Surfaced(sum(record.items.values()), dict(record.items.keys()))

    def bytes_of(self, session: str) -> int:
        """Return the bytes that a session was given, 0 if it is not in memory."""
        with self._lock:
            record = self._sessions.get(session)
            return sum(record.items.values()) if record else 0

    def mark(
        self,
        delivery: Delivery,
        items: Sequence[Item],
        cap: int | None,
        at: float,
        *,
        store: bool = True,
    ) -> tuple[tuple[Item, ...], int]:
        """Mark the items that may be given to an open session; return them and its new bytes.

        An item is left out if the session already has this version of it, or if the session's bytes
        would exceed ``cap``. Items are considered in the order given. A cancelled delivery marks
        nothing. Without ``store`` nothing is marked; the items are those that would be.
        """
        session = delivery.session
        with self._lock:
            record = self._sessions.setdefault(session, _SessionRecord())
            total = before = sum(record.items.values())
            marked = []
            for item in items:
                is_new = (item.path, item.hash) not in record.items
                if is_new and (cap is None or total + item.bytes <= cap):
                    marked.append(item)
                    total += item.bytes
            if not store or delivery.is_cancelled:
                return tuple(marked), before
            record.items |= {(item.path, item.hash): item.bytes for item in marked}
            delivery.items = tuple(marked)
            live = _LIVE | _FOR_PERSON if delivery.for_person else _LIVE
            rows = [
                (bytes.fromhex(item.hash), item.bytes, at, live, session, item.path)
                for item in marked
            ]
            if rows:
                paths = [(item.path,) for item in marked]
                self._unwritten += [(session, _ADD_PATH, paths), (session, _MARK, rows)]
        return delivery.items, total

    def cancel(self, delivery: Delivery) -> None:
        """Remove the marks of a delivery that is not sent; if it is under way, it marks nothing."""
        session = delivery.session
        with self._lock:
            delivery.is_cancelled = True
            record = self._sessions.setdefault(session, _SessionRecord())
            for item in delivery.items:
                record.items.pop((item.path, item.hash), None)
            rows = [(session, item.path, bytes.fromhex(item.hash)) for item in delivery.items]
            if rows:
                self._unwritten.append((session, _UNMARK, rows))

    def reset(self, session: str, but: Collection[str] = ()) -> None:
        """Delete the marks of a session that was compacted or cleared, so it is given all again.

        ``but`` are absolute paths of memories that are still in its context.
        """
        with self._lock:
            record = self._sessions.setdefault(session, _SessionRecord())
            record.items = {key: size for key, size in record.items.items() if key[0] in but}
            self._unwritten.append((session, _RESET, [(session, json.dumps(list(but)))]))

    def flush(self) -> None:
        """Write the marks that are only in memory. Raises StateUnusableError, losing none.

        At most 10,000 statements wait for a failing disk; the oldest beyond that are never written.
        """
        with self._flush_lock:
            with self._lock:
                statements = [
                    each for each in self._unwritten if not each[0].startswith(_MEMCTL_SESSION)
                ]
                self._unwritten.clear()
            if not statements:
                return
            try:
                with self._database.transaction(synced=False) as cursor:
                    for _, statement, rows in statements:
                        cursor.executemany(statement, rows)
            except BaseException:
                with self._lock:  # in front of those that were added meanwhile
                    self._unwritten.extendleft(reversed(statements))
                raise

    def often_surfaced(self, since: float, until: float) -> tuple[Surfacings, ...]:
        """Return the memories given to sessions in a span (seconds since 1970), the most first.

        Raises StateUnusableError.
        """
        self.flush()
        return tuple(Surfacings(*row) for row in self._database.read(_OFTEN, (since, until)))

    def last_surfaced(self, directory: str, path: str) -> Sighting | None:
        """Return when the memory at a path within a directory was last given, or ``None``.

        Raises StateUnusableError.
        """
        self.flush()
        rows = self._database.read(_LAST, (f"{directory}/{path}",))
        return Sighting(*rows[0]) if rows else None

    def _read(self, session: str) -> _SessionRecord:
        """Read a session's marks and the time of its last use from the state file."""
        record = _SessionRecord()
        for used, path, text_hash, size in self._database.read(_READ, (session,)):
            record.used = used
            if path is not None:
                record.items[path, text_hash.hex()] = size
        return record
