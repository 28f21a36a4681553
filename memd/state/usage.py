"""Store how often memories are used: totals for each, and the single uses of the last 90 days.

Rules of this file
- The clock is not trusted, so days are counted: one for each date on which memd ran for half an
  hour without a jump of the clock. A row stores the count at its last event. It is old once 90 more
  days were counted and its time is before a bound of ``state/ages.py`` too. So no row is old before
  90 days were counted, and time in which memd did not run proves nothing.
- The row of a removed memory stays for 90 counted days.
- The state file may be damaged: an invalid time counts as 0.
"""

import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from memd.core.clock_check import DAY_SECONDS, ClockCheck
from memd.core.names import in_catalogue
from memd.state.ages import NO_BOUND, Bound
from memd.state.database import Database, Row
from memd.state.period import FileEvent, Period
from memd.state.records import text_of, time_of
from memd.state.uses import ACTED, BEGIN, GONE, PRUNE, READ, UNUSED_DAYS

_RUN_SECONDS = 30 * 60.0  # memd must have run this long for a day to count
# Memories whose last use, row and file are all from before the bound of 90 counted days.
_OLD = f"""
SELECT u.directory, u.path, u.at FROM usage_days d, usage u
JOIN shadows s ON (s.directory, s.path) = (u.directory, u.path)
WHERE u.counted <= d.days - {UNUSED_DAYS} AND u.at < d.before
    AND coalesce(s.mtime_ns, 0) < d.before * 1e9
    AND u.path NOT LIKE 'team/%' AND {{}} ORDER BY u.at, u.directory, u.path
"""  # noqa: S608 - our own words
_NOT_KEPT = """
NOT EXISTS (SELECT 1 FROM uses k WHERE k.kind = 'kept'
    AND (k.directory, k.path) = (u.directory, u.path))
"""
_PAGE = 500  # rows read or written at once
# Values: a directory and a JSON list of paths.
_OF_PATHS = "directory = ?1 AND u.path IN (SELECT value FROM json_each(?2))"
# The file may have been created after the files were listed.
_MISSING = f"""
{GONE} AND NOT EXISTS (SELECT 1 FROM shadows WHERE (directory, path) = (?1, ?2))
"""  # noqa: S608 - our own words


class MemoryUse(Struct, frozen=True):
    """How often and when one memory was used; times are seconds since 1970, ``None`` for never.

    ``sessions`` counts the sessions that it was surfaced to, which means shown with a prompt.
    """

    surfaced: int = 0
    sessions: int = 0
    read: int = 0
    acted: int = 0
    last_surfaced: float | None = None
    last_read: float | None = None
    last_acted: float | None = None

    @property
    def times(self) -> int:
        """How often it was used in all."""
        return self.surfaced + self.read + self.acted

    @property
    def last(self) -> float:
        """When it was last used, 0 for never."""
        return max(self.last_surfaced or 0.0, self.last_read or 0.0, self.last_acted or 0.0)


class DirectoryUse(Struct, frozen=True):
    """The uses of a directory's memories by path, and the memories unused for 90 days.

    ``since`` is when counting began for the directory (seconds since 1970), ``None`` if it has not.
    """

    since: float | None = None
    memories: Mapping[str, MemoryUse] = field(default_factory=dict)
    unused: frozenset[str] = frozenset()


class SingleUse(Struct, frozen=True):
    """One use: ``kind`` is surfaced, read or acted, ``at`` seconds since 1970."""

    id: int
    kind: str
    session: str
    directory: str
    path: str
    at: float


class UsageTable:
    """The counts of uses. Methods block and raise StateUnusableError.

    Directories are real paths; ``most`` is how many memories of all directories have a row.
    """

    def __init__(self, database: Database, most: int = 100_000) -> None:
        self._database = database
        self._most = most  # rows of all directories

    def period(self) -> Period:
        """Return the queries about a span of time."""
        return Period(self._database)

    def unused(self, directory: str = "", *, ask: bool = False) -> tuple[FileEvent, ...]:
        """Return the memories that were not used for 90 days, the longest unused first.

        ``directory`` is "" for all. Team memories are not included. With ``ask``, memories that a
        person chose to keep lately are left out.
        """
        where = "u.directory = ?1" if directory else "?1 = ''"
        return self._unused(f"{where} AND {_NOT_KEPT}" if ask else where, directory)

    def of(self, directory: str, paths: Collection[str] | None = None) -> DirectoryUse:
        """Return the uses of a directory's memories, of all or of the given paths."""
        if paths is None:
            rows, unused = self._rows("*", directory), self.unused(directory)
        else:
            values = (directory, json.dumps(sorted(paths)))
            rows = iter(self._database.read(f"SELECT * FROM usage u WHERE {_OF_PATHS}", values))  # noqa: S608 - our own words
            unused = self._unused(f"u.{_OF_PATHS}", *values)
        query = "SELECT min(since) FROM usage WHERE directory = ?"
        since = self._database.read(query, (directory,))[0][0]
        return DirectoryUse(
            None if since is None else time_of(since),
            {row["path"]: _read_use(row) for row in rows},
            frozenset(event.path for event in unused),
        )

    def uses(
        self,
        limit: int,
        *,
        kind: str = "",
        directory: str = "",
        path: str = "",
        session: str = "",
        before: int = 0,
    ) -> tuple[SingleUse, ...]:
        """Return the newest single uses that meet all given conditions; ``before`` is an id."""
        filters: dict[str, str | int] = {
            "kind = ?": kind,
            "directory = ?": directory,
            "path = ?": path,
            "session = ?": session,
            "id < ?": before,
        }
        given = {condition: value for condition, value in filters.items() if value}
        where = " AND ".join(given) or "1"
        query = f"SELECT * FROM uses WHERE {where} ORDER BY id DESC LIMIT ?"  # noqa: S608 - our own names
        rows = self._database.read(query, (*given.values(), limit))
        return tuple(_read_single_use(row) for row in rows)

    def read(self, directory: str, path: str, session: str, at: float) -> None:
        """Count that an assistant read a memory, in a ``session`` or "".

        ``directory`` may be any path that leads there.
        """
        self._count(READ, directory, path, session, at)

    def acted(self, directory: str, path: str, session: str, at: float) -> None:
        """Count that a memory's rule answered a tool's call; arguments are as in ``read``."""
        self._count(ACTED, directory, path, session, at)

    def count_day(self, check: ClockCheck, bound: Bound) -> None:
        """Count today once memd has run long enough on it; store ``bound`` if it is known.

        ``bound`` is the limit below which rows are older than ``UNUSED_DAYS``.
        """
        with self._database.transaction(synced=False) as cursor:
            cursor.execute("INSERT OR IGNORE INTO usage_days VALUES (1, 0, -1, 0, 0)")
            cursor.execute("SELECT days, date, steady, before FROM usage_days")
            days, date, steady, before = cursor.fetchone()
            # Seconds without a clock jump since the last counted day; after a jump ``steady``
            # begins at 0.
            counted_seconds = steady if check.steady >= steady else 0.0
            run_seconds = check.steady - counted_seconds
            today = int(check.at // DAY_SECONDS)
            if today != date and run_seconds >= _RUN_SECONDS:
                days, date, steady = days + 1, today, check.steady
            before = before if bound == NO_BOUND else bound.before
            cursor.execute(
                "UPDATE usage_days SET days = ?, date = ?, steady = ?, before = ?",
                (days, date, steady, before),
            )

    def follow_files(self, directory: str, files: Iterable[str], at: float) -> None:
        """Add rows for new memories, and mark those of removed ones.

        ``files`` are all paths of the directory. Above the limit of rows none are added.
        """
        rows = self._rows("path, gone", directory)
        known = {row["path"] for row in rows if row["gone"] is None}
        existing = {path for path in files if in_catalogue(path)}
        row_count = int(self._database.read("SELECT count(*) FROM usage")[0][0])
        room = max(0, self._most - row_count)
        new = sorted(existing - known)[:room]
        removed = sorted(known - existing)
        self._run_in_pages(BEGIN, [(directory, path, at) for path in new])
        self._run_in_pages(_MISSING, [(directory, path) for path in removed])

    def prune(self) -> None:
        """Delete rows of memories removed 90 counted days ago, and older single uses."""
        for query in PRUNE:
            self._database.write(query.format(self._most), synced=False)

    def _unused(self, where: str, *values: str) -> tuple[FileEvent, ...]:
        """Return the unused memories that also meet an SQL condition."""
        rows = self._database.read(_OLD.format(where), values)
        return tuple(FileEvent(row["directory"], row["path"], time_of(row["at"])) for row in rows)

    def _count(
        self, queries: Iterable[str], directory: str, path: str, session: str, at: float
    ) -> None:
        """Run the statements that count one use, in one transaction."""
        # SQLite cannot store characters that UTF-8 cannot encode.
        storable_session = session.encode(errors="replace").decode()
        use = (os.path.realpath(directory), path, storable_session, at)
        with self._database.transaction(synced=False) as cursor:
            for query in queries:
                cursor.execute(query, use)

    def _rows(self, columns: str, directory: str) -> Iterator[Row]:
        """Yield a directory's rows in pages, so that others can use the state file in between."""
        query = (
            f"SELECT {columns} FROM usage WHERE directory = ? AND path > ? ORDER BY path LIMIT ?"  # noqa: S608 - our own names
        )
        rows = self._database.read(query, (directory, "", _PAGE))
        while rows:
            yield from rows
            rows = self._database.read(query, (directory, rows[-1]["path"], _PAGE))

    def _run_in_pages(self, query: str, rows: list[tuple[Any, ...]]) -> None:
        """Run a statement for each row of values, in transactions of 500 rows."""
        for start in range(0, len(rows), _PAGE):
            with self._database.transaction(synced=False) as cursor:
                cursor.executemany(query, rows[start : start + _PAGE])


def _read_use(row: Row) -> MemoryUse:
    """Return the totals of one memory in a row of ``usage``."""
    times = (row[name] for name in ("last_surfaced", "last_read", "last_acted"))
    surfaced, read, acted = (None if time is None else time_of(time) for time in times)
    return MemoryUse(
        surfaced=row["surfaced"],
        sessions=row["sessions"],
        read=row["read"],
        acted=row["acted"],
        last_surfaced=surfaced,
        last_read=read,
        last_acted=acted,
    )


def _read_single_use(row: Row) -> SingleUse:
    """Return the single use in a row of ``uses``."""
    return SingleUse(
        id=row["id"],
        kind=text_of(row["kind"]),
        session=text_of(row["session"]),
        directory=text_of(row["directory"]),
        path=text_of(row["path"]),
        at=time_of(row["at"]),
    )
