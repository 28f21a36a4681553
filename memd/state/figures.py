"""Count the rows of the state file, for ``status``, ``metrics`` and ``debug``.

Only numbers, states, job kinds, directories and table names are returned, no text of memories.
"""

import os
import re
from collections.abc import Sequence

from msgspec import Struct

from memd.core.names import INDEXES
from memd.state.database import Database
from memd.state.formats import FORMAT

_JOBS = (
    "SELECT state, count(*) AS rows FROM"
    " (SELECT state FROM jobs ORDER BY number DESC LIMIT 200) GROUP BY state"
)
_RUNNING = "SELECT number, kind, directory, started FROM jobs WHERE state = 'running' LIMIT 10"
_PARKED = "SELECT count(*) FROM jobs WHERE state = 'failed' AND request <> '{}'"
_HELD = (
    "SELECT count(DISTINCT message) FROM message_copies"
    " WHERE ended IS NULL AND NOT notice AND state = 'held'"
)
# The join looks each index file up by its key; filtering all rows by path takes four times as long.
_INDEX_FILES = (
    "SELECT count(*) FROM shadow_directories d JOIN shadows s"
    " ON s.directory = d.directory AND s.path IN (?, ?)"
)
_SIZE_SECONDS = 60.0  # for so long a counted size is used again
_USES = (
    "SELECT coalesce(sum(surfaced), 0), coalesce(sum(read), 0), coalesce(sum(acted), 0) FROM usage"
)
_TABLE = re.compile(r"CREATE TABLE IF NOT EXISTS (\w+)")
_STATES = ("queued", "running", "completed", "failed", "killed")


class RunningRow(Struct, frozen=True):
    """A running job without its request; ``since`` is in seconds since 1970."""

    job: str
    kind: str
    directory: str
    since: float | None


class StateCounts(Struct, frozen=True):
    """Numbers of jobs and messages.

    ``jobs`` counts the newest 200 jobs by state, and all ``parked`` ones. ``running`` are at most
    ten jobs. ``held`` is the number of messages held back until a person decides.
    """

    jobs: dict[str, int]
    running: tuple[RunningRow, ...]
    held: int


class StateSize(Struct, frozen=True):
    """``bytes`` in use in the state file, the number of known ``memories``, and their uses.

    Uses of memories that were removed within the last 90 days are included.
    """

    bytes: int
    memories: int
    surfaced: int
    read: int
    acted: int


class StateTables(Struct, frozen=True):
    """The state file's format, SQLite's version, sizes of file and log, and rows by table."""

    schema: int
    sqlite: str
    bytes: int
    log_bytes: int
    used_bytes: int
    rows: dict[str, int]


def used_bytes(database: Database) -> int:
    """Return the bytes of the file's pages in use, without free pages, which SQLite reuses."""
    pages, free, size = (
        database.read(f"PRAGMA {name}")[0][0]
        for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


class Figures:
    """Counts rows of the tables in ``schemas``. Methods block and raise StateUnusableError."""

    def __init__(self, database: Database, schemas: Sequence[str]) -> None:
        self._database = database
        self._size: tuple[float, StateSize] | None = None  # the last one; when, monotonic seconds
        self._tables = sorted({name for schema in schemas for name in _TABLE.findall(schema)})

    def counts(self) -> StateCounts:
        """Return the counts that are quick however large the file is."""
        rows = {row["state"]: int(row["rows"]) for row in self._database.read(_JOBS)}
        jobs = {state: rows[state] for state in _STATES if state in rows}
        parked = self._number(_PARKED)
        if parked:
            jobs["parked"] = parked
        running = tuple(
            RunningRow(f"j{row['number']}", row["kind"], row["directory"], row["started"])
            for row in self._database.read(_RUNNING)
        )
        return StateCounts(jobs, running, self._number(_HELD))

    def size(self, now: float) -> StateSize:
        """Return the size of the state file and the numbers of memories and uses.

        Counting takes 40 ms for 100,000 memories, so a result is reused for a minute. ``now`` is in
        monotonic seconds.
        """
        if self._size is not None:
            counted_at, size = self._size
            if now - counted_at < _SIZE_SECONDS:
                return size
        uses = map(int, self._database.read(_USES)[0])
        memories = self._number("SELECT count(*) FROM shadows") - self._number(
            _INDEX_FILES, *INDEXES
        )
        size = StateSize(used_bytes(self._database), memories, *uses)
        self._size = now, size
        return size

    def tables(self) -> StateTables:
        """Return sizes and the rows of every table; takes seconds if the file is very large."""
        return StateTables(
            schema=FORMAT,
            sqlite=self._database.read("SELECT sqlite_version()")[0][0],
            bytes=_size(self._database.path),
            log_bytes=_size(f"{self._database.path}-wal"),
            used_bytes=used_bytes(self._database),
            rows={name: self._number(f"SELECT count(*) FROM {name}") for name in self._tables},  # noqa: S608 - names of our own
        )

    def _number(self, query: str, *values: object) -> int:
        """Return the single number that a query selects."""
        return int(self._database.read(query, values)[0][0])


def _size(path: str) -> int:
    """Return the bytes of a file, 0 if it cannot be inspected."""
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
