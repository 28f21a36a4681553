"""The classes of background jobs, and how rows are read into them.

A damaged row is read as a failed job or one with empty fields, and does not prevent a start.
"""

from enum import StrEnum
from typing import Any

from msgspec import Struct

from memd.base.errors import NotFound
from memd.base.text import read_object
from memd.state.database import Row

SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    lane TEXT NOT NULL,
    directory TEXT NOT NULL,
    session TEXT NOT NULL,
    request TEXT NOT NULL,
    state TEXT NOT NULL,
    phase TEXT NOT NULL DEFAULT '',
    result TEXT,
    error TEXT,
    attempts INTEGER NOT NULL DEFAULT 0,
    created REAL NOT NULL,
    started REAL,
    ended REAL
) STRICT;
CREATE INDEX IF NOT EXISTS jobs_by_state ON jobs (state);
CREATE INDEX IF NOT EXISTS jobs_by_directory ON jobs (directory, number);
CREATE TABLE IF NOT EXISTS leases (
    job INTEGER PRIMARY KEY,
    holder INTEGER NOT NULL,
    since REAL NOT NULL,
    deaths INTEGER NOT NULL DEFAULT 0
) STRICT;
"""

PARKED = "parked"  # a key in the error of a parked job
_UNFINISHED = ("queued", "running")
ROWS = "SELECT * FROM jobs"
PARKED_ROWS = f"{ROWS} WHERE state = 'failed' AND request <> '{{}}'"


class JobState(StrEnum):
    """The state of a job; the last three are final."""

    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    KILLED = "killed"


class NewJob(Struct, frozen=True):
    """The fields of a job when it is accepted; see ``Job``."""

    kind: str
    lane: str
    directory: str
    session: str
    request: dict[str, Any]


class Job(Struct, frozen=True):
    """One job in its present state; times are seconds since 1970.

    ``directory`` is its memory directory. Jobs of the same ``lane`` never run at the same time.
    ``error`` has ``kind`` and ``message`` of the last failure. ``request`` is empty once the job
    has ended, unless it is parked. ``holder`` is the PID of the daemon that runs it.
    """

    id: str
    kind: str
    lane: str
    directory: str
    session: str
    request: dict[str, Any]
    state: JobState
    phase: str
    result: dict[str, Any] | None
    error: dict[str, Any] | None
    attempts: int
    created: float
    started: float | None
    ended: float | None
    holder: int | None = None

    @property
    def job(self) -> str:
        """The id, under the name that clients use."""
        return self.id

    @property
    def parked(self) -> bool:
        """Whether the job failed and can be queued again."""
        return self.state is JobState.FAILED and bool(self.request)

    @property
    def over(self) -> bool:
        """Whether the job has ended."""
        return self.state not in _UNFINISHED


def job_not_found(job: str) -> NotFound:
    """Return the error that there is no job with this id."""
    return NotFound(
        f"there is no job {job}", hint="list the jobs to see those that are known", job=job
    )


def number_of(job: str) -> int:
    """Return the row number of a job's id. Raises NotFound."""
    digits = job[1:]
    is_number = digits.isascii() and digits.isdigit()
    fits_sqlite = len(digits) <= 18  # noqa: PLR2004 - digits that surely fit SQLite's 64 bits
    if job[:1] != "j" or not is_number or not fits_sqlite:
        raise job_not_found(job)
    return int(digits)


def read_job(row: Row, pid: int) -> Job:
    """Return the job in a row of ``ROWS``; ``pid`` is the daemon's process, which runs all jobs."""
    facts: dict[str, Any] = dict(row)
    state = JobState(row["state"]) if row["state"] in set(JobState) else JobState.FAILED
    holder = pid if state is JobState.RUNNING else None
    known = {"id": f"j{facts.pop('number')}", "state": state, "holder": holder}
    parsed = {
        name: None if facts[name] is None else read_object(facts[name])
        for name in ("request", "result", "error")
    }
    return Job(**facts | known | parsed)
