"""How memories are used: a row for each, and each single use of the last 90 days.

Rules of this file
- The clock is not believed. Days are counted, one for each date on which memd ran for a while
  without a jump of the clock; a row has the number of days that were counted at its last event. It
  is old once 90 more were counted and the time agrees, with a bound of ``state/ages.py``. So time
  in which nothing was counted proves nothing, and no row is old before 90 days were counted.
- A row stays 90 counted days when its memory is gone. Rows are input: a time that is none is 0.
"""

import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from memd.core.clock_check import DAY_SECONDS, ClockCheck
from memd.core.names import in_catalogue
from memd.state.ages import NOTHING, Bound
from memd.state.database import Database, Row
from memd.state.period import FileEvent, Period
from memd.state.records import text_of, time_of
from memd.state.uses import ACTED, BEGIN, GONE, PRUNE, READ, UNUSED_DAYS

_RUN_SECONDS = 30 * 60.0  # for so long memd has run on a day that counts
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
_THESE = "directory = ?1 AND u.path IN (SELECT value FROM json_each(?2))"
# What was there when the files were listed may have come since.
_MISSING = f"""
{GONE} AND NOT EXISTS (SELECT 1 FROM shadows WHERE (directory, path) = (?1, ?2))
"""  # noqa: S608 - our own words


class MemoryUse(Struct, frozen=True):
    """How one memory was used; times are seconds since 1970, ``None`` for never.

    ``sessions`` counts those that it was surfaced to.
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
        """How often it was used in any way."""
        return self.surfaced + self.read + self.acted

    @property
    def last(self) -> float:
        """When it was used last in any way, 0 for never."""
        return max(self.last_surfaced or 0.0, self.last_read or 0.0, self.last_acted or 0.0)


class DirectoryUse(Struct, frozen=True):
    """How the memories of a directory were used, by path, and which were not for 90 days.

    ``since`` is when counting began there (seconds since 1970), ``None`` for not yet.
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
    """The rows. All methods block and raise StateUnusableError; directories are real paths."""

    def __init__(self, database: Database, most: int = 100_000) -> None:
        self._database = database
        self._most = most  # rows of all directories

    def period(self) -> Period:
        """Return the queries about a span of time."""
        return Period(self._database)

    def unused(self, directory: str = "", *, ask: bool = False) -> tuple[FileEvent, ...]:
        """Return the memories that were not used for 90 days, the longest unused first.

        ``directory`` is "" for all. Those of a team are others', and not among them. With ``ask``
        those are left out that a person wanted to keep lately.
        """
        where = "u.directory = ?1" if directory else "?1 = ''"
        return self._unused(f"{where} AND {_NOT_KEPT}" if ask else where, directory)

    def of(self, directory: str, paths: Collection[str] | None = None) -> DirectoryUse:
        """Return how the memories of a directory were used: all of them, or those of some paths."""
        if paths is None:
            rows, unused = self._rows("*", directory), self.unused(directory)
        else:
            these = (directory, json.dumps(sorted(paths)))
            rows = iter(self._database.read(f"SELECT * FROM usage u WHERE {_THESE}", these))  # noqa: S608 - our own words
            unused = self._unused(f"u.{_THESE}", *these)
        first = "SELECT min(since) FROM usage WHERE directory = ?"
        since = self._database.read(first, (directory,))[0][0]
        return DirectoryUse(
            None if since is None else time_of(since),
            {row["path"]: _use(row) for row in rows},
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
        """Return the newest uses that meet what is given, newest first; ``before`` is an id."""
        wanted = {"kind": kind, "directory": directory, "path": path, "session": session}
        given = {name: value for name, value in wanted.items() if value}
        conditions = [f"{name} = ?" for name in given] + ["id < ?"] * bool(before)
        values = [*given.values(), *[before] * bool(before), limit]
        where = " AND ".join(conditions) or "1"
        query = f"SELECT * FROM uses WHERE {where} ORDER BY id DESC LIMIT ?"  # noqa: S608 - our own names
        return tuple(map(_single, self._database.read(query, values)))

    def read(self, directory: str, path: str, session: str, at: float) -> None:
        """Count that an assistant read a memory, in a ``session`` or "".

        ``directory`` may be any path that leads there.
        """
        self._count(READ, directory, path, session, at)

    def acted(self, directory: str, path: str, session: str, at: float) -> None:
        """Count that a memory's rule answered a tool's call; arguments are as in ``read``."""
        self._count(ACTED, directory, path, session, at)

    def count_day(self, check: ClockCheck, bound: Bound) -> None:
        """Count a day that has begun; ``bound`` is what is older than ``UNUSED_DAYS``, if known."""
        with self._database.transaction(synced=False) as cursor:
            cursor.execute("INSERT OR IGNORE INTO usage_days VALUES (1, 0, -1, 0, 0)")
            cursor.execute("SELECT days, date, steady, before FROM usage_days")
            days, date, steady, before = cursor.fetchone()
            run = check.steady - (steady if check.steady >= steady else 0.0)
            today = int(check.at // DAY_SECONDS)
            if today != date and run >= _RUN_SECONDS:
                days, date, steady = days + 1, today, check.steady
            before = before if bound == NOTHING else bound.before
            cursor.execute(
                "UPDATE usage_days SET days = ?, date = ?, steady = ?, before = ?",
                (days, date, steady, before),
            )

    def follow_files(self, directory: str, files: Iterable[str], at: float) -> None:
        """Add rows for new memories, and mark those of removed ones.

        ``files`` are all paths of the directory. Above the limit of rows none are added.
        """
        known = {row["path"] for row in self._rows("path, gone", directory) if row["gone"] is None}
        there = {path for path in files if in_catalogue(path)}
        room = self._most - int(self._database.read("SELECT count(*) FROM usage")[0][0])
        self._each(BEGIN, [(directory, path, at) for path in sorted(there - known)[: max(0, room)]])
        self._each(_MISSING, [(directory, path) for path in sorted(known - there)])

    def prune(self) -> None:
        """Forget memories that are gone for 90 counted days, and uses that are older."""
        for query in PRUNE:
            self._database.write(query.format(self._most), synced=False)

    def _unused(self, where: str, *values: str) -> tuple[FileEvent, ...]:
        rows = self._database.read(_OLD.format(where), values)
        return tuple(FileEvent(row["directory"], row["path"], time_of(row["at"])) for row in rows)

    def _count(
        self, queries: Iterable[str], directory: str, path: str, session: str, at: float
    ) -> None:
        use = (os.path.realpath(directory), path, session.encode(errors="replace").decode(), at)
        with self._database.transaction(synced=False) as cursor:
            for query in queries:
                cursor.execute(query, use)

    def _rows(self, columns: str, directory: str) -> Iterator[Row]:
        """Yield the rows of a directory, some at a time: a prompt may want the file meanwhile."""
        query = (
            f"SELECT {columns} FROM usage WHERE directory = ? AND path > ? ORDER BY path LIMIT ?"  # noqa: S608 - our own names
        )
        rows = self._database.read(query, (directory, "", _PAGE))
        while rows:
            yield from rows
            rows = self._database.read(query, (directory, rows[-1]["path"], _PAGE))

    def _each(self, query: str, rows: list[tuple[Any, ...]]) -> None:
        for start in range(0, len(rows), _PAGE):
            with self._database.transaction(synced=False) as cursor:
                cursor.executemany(query, rows[start : start + _PAGE])


def _use(row: Row) -> MemoryUse:
    times = [row[name] for name in ("last_surfaced", "last_read", "last_acted")]
    at = [None if time is None else time_of(time) for time in times]
    return MemoryUse(
        surfaced=row["surfaced"],
        sessions=row["sessions"],
        read=row["read"],
        acted=row["acted"],
        last_surfaced=at[0],
        last_read=at[1],
        last_acted=at[2],
    )


def _single(row: Row) -> SingleUse:
    return SingleUse(
        id=row["id"],
        kind=text_of(row["kind"]),
        session=text_of(row["session"]),
        directory=text_of(row["directory"]),
        path=text_of(row["path"]),
        at=time_of(row["at"]),
    )
