"""What the state file holds, in numbers: for ``status``, ``metrics`` and ``debug``.

Numbers, states and names of tables alone: no text that somebody wrote leaves by this file.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from memd.core.names import INDEXES
from memd.state.database import Database
from memd.state.formats import FORMAT

_JOBS = (
    "SELECT state, count(*) AS rows FROM"
    " (SELECT state FROM jobs ORDER BY number DESC LIMIT 200) GROUP BY state"
)
_RUNNING = "SELECT number, kind, directory, started FROM jobs WHERE state = 'running' LIMIT 10"
_PARKED = "SELECT count(*) FROM jobs WHERE state = 'failed' AND request <> '{}'"
_HELD = "SELECT count(*) FROM message_copies WHERE ended IS NULL AND NOT notice AND state = 'held'"
# Each index is looked up by itself: to look at the path of every row takes four times as long.
_LISTS = (
    "SELECT count(*) FROM shadow_directories d JOIN shadows s"
    " ON s.directory = d.directory AND s.path IN (?, ?)"
)
_SIZE_SECONDS = 60.0
_USES = (
    "SELECT coalesce(sum(surfaced), 0), coalesce(sum(read), 0), coalesce(sum(acted), 0) FROM usage"
)
_TABLE = re.compile(r"CREATE TABLE IF NOT EXISTS (\w+)")
_STATES = ("queued", "running", "completed", "failed", "killed")


@dataclass(frozen=True, slots=True)
class RunningRow:
    """A job that runs, without what it was asked; ``since`` is in seconds since 1970."""

    job: str
    kind: str
    directory: str
    since: float | None


@dataclass(frozen=True, slots=True)
class StateCounts:
    """How many jobs there are by state (of the newest, and ``parked`` of all) and messages held."""

    jobs: dict[str, int]
    running: tuple[RunningRow, ...]
    held: int


@dataclass(frozen=True, slots=True)
class StateSize:
    """``bytes`` in use in the state file, how many ``memories`` it knows of, and their uses.

    Uses are counted of memories that are there, or went less than 90 days ago.
    """

    bytes: int
    memories: int
    surfaced: int
    read: int
    acted: int


@dataclass(frozen=True, slots=True)
class StateTables:
    """The state file itself: bytes of it and of its log, SQLite's version, rows of each table."""

    schema: int
    sqlite: str
    bytes: int
    log_bytes: int
    used_bytes: int
    rows: dict[str, int]


def used_bytes(database: Database) -> int:
    """Return the bytes in use; free pages of the file are used again by what comes next."""
    pages, free, size = (
        database.read(f"PRAGMA {name}")[0][0]
        for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


class Figures:
    """Counts over the tables of ``schemas``. Methods block and raise StateUnusableError."""

    def __init__(self, database: Database, schemas: Sequence[str]) -> None:
        self._database = database
        self._size: tuple[float, StateSize] | None = None
        self._tables = sorted({name for schema in schemas for name in _TABLE.findall(schema)})

    def counts(self) -> StateCounts:
        """Return what is counted quickly, however much the file holds."""
        rows = {row["state"]: int(row["rows"]) for row in self._database.read(_JOBS)}
        jobs = {state: rows[state] for state in _STATES if state in rows}
        if parked := self._number(_PARKED):
            jobs["parked"] = parked
        running = tuple(
            RunningRow(f"j{row['number']}", row["kind"], row["directory"], row["started"])
            for row in self._database.read(_RUNNING)
        )
        return StateCounts(jobs, running, self._number(_HELD))

    def size(self, now: float) -> StateSize:
        """Return what takes longer the more memories there are: 40 ms for 100,000.

        It is counted once a minute; ``now`` is in monotonic seconds.
        """
        known = self._size
        if known is None or now - known[0] >= _SIZE_SECONDS:
            uses = map(int, self._database.read(_USES)[0])
            memories = self._number("SELECT count(*) FROM shadows") - self._number(_LISTS, *INDEXES)
            known = self._size = now, StateSize(used_bytes(self._database), memories, *uses)
        return known[1]

    def tables(self) -> StateTables:
        """Return the size of everything; takes seconds where the file is very large."""
        return StateTables(
            schema=FORMAT,
            sqlite=self._database.read("SELECT sqlite_version()")[0][0],
            bytes=_size(self._database.path),
            log_bytes=_size(f"{self._database.path}-wal"),
            used_bytes=used_bytes(self._database),
            rows={name: self._number(f"SELECT count(*) FROM {name}") for name in self._tables},  # noqa: S608 - names of our own
        )

    def _number(self, query: str, *values: object) -> int:
        return int(self._database.read(query, values)[0][0])


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
