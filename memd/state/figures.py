"""Count the rows of the state file for ``status``.

Only numbers, states, job kinds and directories are returned, no text of memories.
"""

from msgspec import Struct

from memd.state.database import Database

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


def used_bytes(database: Database) -> int:
    """Return the bytes of the file's pages in use, without free pages, which SQLite reuses."""
    pages, free, size = (
        database.read(f"PRAGMA {name}")[0][0]
        for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


class Figures:
    """Counts rows of the state file. Methods block and raise StateUnusableError."""

    def __init__(self, database: Database) -> None:
        self._database = database

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

    def _number(self, query: str) -> int:
        """Return the single number that a query selects."""
        return int(self._database.read(query)[0][0])
