"""Which memories a session has been given, kept across restarts (spec 3.4).

Rules of this file
- A memory is marked when it goes out, never while it is being selected.
- ``mark`` decides again inside its transaction: two prefetches at once never surface one file
  twice in a session and never pass the cap together.
- A session that is reset begins anew; its old rows stay a while so that "when was this last
  surfaced" has an answer.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

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

KEPT_SECONDS = 90 * 24 * 60 * 60.0  # a session that never ended is over by then


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


class Ledger:
    """The table of surfaced memories. All methods block and may raise StateUnusableError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def surfaced(self, session: str) -> Surfaced:
        """Return what a session has been given since it began or was reset."""
        rows = self._database.read(
            "SELECT path, fingerprint, bytes FROM surfaced WHERE session = ? AND live ORDER BY id",
            (session,),
        )
        return Surfaced(
            bytes=sum(row["bytes"] for row in rows),
            paths={row["path"]: row["fingerprint"] for row in rows},
        )

    def mark(
        self, session: str, items: Sequence[Item], cap: int, at: float
    ) -> tuple[tuple[Item, ...], int]:
        """Mark what may go out now; return it, and the session's bytes with it.

        In the order given, an item is left out when the session already has that very version,
        or when its bytes would take the session past ``cap``.
        """
        marked: list[Item] = []
        with self._database.transaction() as cursor:
            cursor.execute("DELETE FROM surfaced WHERE at < ?", (at - KEPT_SECONDS,))
            total = _total(cursor, session)
            for item in items:
                if total + item.bytes > cap:
                    continue
                cursor.execute(
                    "INSERT OR IGNORE INTO surfaced (session, path, fingerprint, bytes, at, live)"
                    " VALUES (?, ?, ?, ?, ?, 1)",
                    (session, item.path, item.fingerprint, item.bytes, at),
                )
                if cursor.rowcount == 1:
                    marked.append(item)
                    total += item.bytes
        return tuple(marked), total

    def unmark(self, session: str, items: Iterable[Item]) -> None:
        """Take marks back whose answer was cancelled before it went out."""
        with self._database.transaction() as cursor:
            cursor.executemany(
                "DELETE FROM surfaced WHERE session = ? AND path = ? AND fingerprint = ? AND live",
                [(session, item.path, item.fingerprint) for item in items],
            )

    def reset(self, session: str) -> None:
        """Let everything be surfaced again to a session: it was compacted or has ended."""
        with self._database.transaction() as cursor:
            cursor.execute("UPDATE surfaced SET live = 0 WHERE session = ? AND live", (session,))

    def last_surfaced(self, directory: str, path: str) -> Sighting | None:
        """Return when the memory at a path within a directory last went out, or ``None``."""
        rows = self._database.read(
            "SELECT session, at FROM surfaced WHERE path = ? ORDER BY at DESC, id DESC LIMIT 1",
            (f"{directory}/{path}",),
        )
        return Sighting(session=rows[0]["session"], at=rows[0]["at"]) if rows else None


def _total(cursor: Cursor, session: str) -> int:
    cursor.execute(
        "SELECT coalesce(sum(bytes), 0) FROM surfaced WHERE session = ? AND live", (session,)
    )
    return int(cursor.fetchone()[0])
