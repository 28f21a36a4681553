"""Which memories a session has been given, kept across restarts (spec 3.4).

Rules of this file
- A memory is marked when it goes out, never while it is being selected.
- Memory decides, the state file follows: ``mark`` looks and marks without waiting for anything, so
  two prefetches at once never surface one file twice in a session and never pass the cap together,
  and a slow disk holds up no prompt. ``flush`` writes what is not written yet.
- A flush is not synced to the medium: it survives a kill of the daemon. A power cut may cost the
  marks of the last moments, and then a memory comes a second time; nothing else is lost.
- A session that is reset begins anew; its old rows stay a while so that "when was this last
  surfaced" has an answer.
- ``load``, ``flush``, ``prune`` and ``last_surfaced`` block and may run in any thread; all else
  does not and belongs to one thread, the event loop's.
"""

import threading
from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from memd.state.ages import Bound
from memd.state.database import Cursor, Database

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
"""

KEPT_DAYS = 90  # a session that never ended is over by then
_SESSIONS = 512  # kept in memory; the least recently used one is read again when it comes back
_UNWRITTEN = 10_000  # statements kept while the state file cannot be written (some 3 MB)

_MARK = (
    "INSERT OR IGNORE INTO surfaced (session, path, fingerprint, bytes, at, live)"
    " VALUES (?, ?, ?, ?, ?, 1)"
)
_UNMARK = "DELETE FROM surfaced WHERE session = ? AND path = ? AND fingerprint = ? AND live"
_RESET = "UPDATE surfaced SET live = 0 WHERE session = ? AND live"
_PRUNE = "DELETE FROM surfaced WHERE at < ? AND id <= ?"


@dataclass(frozen=True, slots=True)
class Item:
    """A memory about to go out: absolute path, fingerprint as text, bytes of its content."""

    path: str
    fingerprint: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Surfaced:
    """What a session has been given: bytes in all, and the latest fingerprint by path."""

    bytes: int
    paths: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Sighting:
    """When a memory last went out, in seconds since 1970, and to which session."""

    session: str
    at: float


@dataclass(slots=True)
class _Given:
    """One session's marks, in their order."""

    items: dict[tuple[str, str], int] = field(default_factory=dict)  # (path, fingerprint): bytes

    def surfaced(self) -> Surfaced:
        """Return them as they are told."""
        return Surfaced(sum(self.items.values()), dict(self.items.keys()))


class Ledger:
    """The sessions and what they were given."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sessions: OrderedDict[str, _Given] = OrderedDict()
        self._stored: set[str] | None = None  # sessions with live rows; None before the first look
        self._unwritten: deque[tuple[str, tuple[object, ...]]] = deque(maxlen=_UNWRITTEN)
        self._writing = threading.Lock()

    def known(self, session: str) -> bool:
        """Say whether ``surfaced`` and ``mark`` have what they need; else call ``load``."""
        return session in self._sessions or (
            self._stored is not None and session not in self._stored
        )

    def load(self, session: str) -> None:
        """Read what a session was given before. Blocks. Raises StateUnusableError."""
        self.flush()
        if self._stored is None:
            rows = self._database.read("SELECT DISTINCT session FROM surfaced WHERE live")
            self._stored = {row["session"] for row in rows}
        if session in self._stored:
            rows = self._database.read(
                "SELECT path, fingerprint, bytes FROM surfaced WHERE session = ? AND live"
                " ORDER BY id",
                (session,),
            )
            given = {(row["path"], row["fingerprint"]): row["bytes"] for row in rows}
            self._sessions.setdefault(session, _Given(given))

    def surfaced(self, session: str) -> Surfaced:
        """Return what a session has been given since it began or was reset."""
        given = self._sessions.get(session)
        return Surfaced(0, {}) if given is None else given.surfaced()

    def mark(
        self, session: str, items: Sequence[Item], cap: int, at: float
    ) -> tuple[tuple[Item, ...], int]:
        """Mark what may go out now; return it, and the session's bytes with it.

        In the order given, an item is left out when the session already has that very version,
        or when its bytes would take the session past ``cap``.
        """
        given = self._given(session)
        marked = self.fitting(session, items, cap)
        for item in marked:
            given.items[item.path, item.fingerprint] = item.bytes
            key = (session, item.path, item.fingerprint)
            self._unwritten.append((_MARK, (*key, item.bytes, at)))
        return marked, sum(given.items.values())

    def fitting(self, session: str, items: Sequence[Item], cap: int) -> tuple[Item, ...]:
        """Return what ``mark`` would mark now; nothing is marked."""
        taken = dict(self._given(session).items)
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
        """Take marks back whose answer was cancelled before it went out."""
        given = self._given(session)
        for item in items:
            given.items.pop((item.path, item.fingerprint), None)
            self._unwritten.append((_UNMARK, (session, item.path, item.fingerprint)))

    def reset(self, session: str) -> None:
        """Let everything be surfaced again to a session: it was compacted or has ended."""
        self._given(session).items.clear()
        self._unwritten.append((_RESET, (session,)))

    def flush(self) -> None:
        """Write what is not written yet. Blocks. Raises StateUnusableError; nothing is lost then.

        What cannot be written for long is bounded: beyond that, marks live in memory alone.
        """
        with self._writing:
            waiting = len(self._unwritten)
            if not waiting:
                return
            statements = [self._unwritten.popleft() for _ in range(waiting)]
            written = False
            try:
                with self._database.transaction(synced=False) as cursor:
                    _run(cursor, statements)
                written = True
            finally:
                if not written:
                    self._unwritten.extendleft(reversed(statements))

    def prune(self, bound: Bound) -> None:
        """Forget what was surfaced long ago. Blocks. Raises StateUnusableError."""
        with self._database.transaction(synced=False) as cursor:
            cursor.execute(_PRUNE, (bound.before, bound.surfaced))

    def last_surfaced(self, directory: str, path: str) -> Sighting | None:
        """Return when the memory at a path within a directory last went out, or ``None``.

        Blocks. Raises StateUnusableError.
        """
        self.flush()
        rows = self._database.read(
            "SELECT session, at FROM surfaced WHERE path = ? ORDER BY at DESC, id DESC LIMIT 1",
            (f"{directory}/{path}",),
        )
        return Sighting(session=rows[0]["session"], at=rows[0]["at"]) if rows else None

    def _given(self, session: str) -> _Given:
        given = self._sessions.setdefault(session, _Given())
        self._sessions.move_to_end(session)
        while len(self._sessions) > _SESSIONS and not self._unwritten:
            old, _ = self._sessions.popitem(last=False)
            if self._stored is not None:
                self._stored.add(old)
        return given


def _run(cursor: Cursor, statements: Iterable[tuple[str, tuple[object, ...]]]) -> None:
    for statement, values in statements:
        cursor.execute(statement, values)
