"""What a background job is, as values, and how its rows are declared and read.

Rows are input: what is damaged reads as a job that knows nothing, and keeps nothing from starting.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from memd.core.errors import MemdError
from memd.core.text import read_object
from memd.state import pauses
from memd.state.database import Row

SCHEMA = (
    pauses.SCHEMA
    + """
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
)

PARKED = "parked"  # a fact of a parked job's error
_UNFINISHED = ("queued", "running")
ROWS = "SELECT * FROM jobs"
PARKED_ROWS = f"{ROWS} WHERE state = 'failed' AND request <> '{{}}'"


class JobState(StrEnum):
    """Where a job is; the last three are ends."""

    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    KILLED = "killed"


@dataclass(frozen=True, slots=True)
class NewJob:
    """What is known of a job when it is accepted; see Job."""

    kind: str
    lane: str
    directory: str
    session: str
    request: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Job:
    """One job as it stands; times are seconds since 1970.

    ``directory`` is the memory directory it concerns, ``lane`` what it must not overlap in.
    ``error`` holds ``kind`` and ``message`` of the last failure. ``request`` is empty once ended,
    unless the job is parked. ``holder`` is the PID of the daemon that runs it.
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
        """The id, as clients call it."""
        return self.id

    @property
    def parked(self) -> bool:
        """Whether the job failed and can be put back."""
        return self.state is JobState.FAILED and bool(self.request)

    @property
    def over(self) -> bool:
        """Whether the job has come to an end."""
        return self.state not in _UNFINISHED


class JobNotFoundError(MemdError):
    """There is no job with this id, or it is too old to be kept."""

    code = 1001
    kind = "job_not_found"
    hint = "list the jobs to see those that are known"

    def __init__(self, job: str) -> None:
        super().__init__(f"there is no job {job}", job=job)


class JobNotParkedError(MemdError):
    """Only a parked job can be put back."""

    code = 1004
    kind = "job_not_parked"
    hint = "memctl job list --parked shows those that can be put back"

    def __init__(self, job: str) -> None:
        super().__init__(f"the job {job} is not parked", job=job)


def number_of(job: str) -> int:
    """Return the row number of a job's id. Raises JobNotFoundError."""
    digits = job[1:]
    if job[:1] != "j" or not (digits.isascii() and digits.isdigit()) or len(digits) > 18:  # noqa: PLR2004 - digits that surely fit SQLite's 64 bits
        raise JobNotFoundError(job)
    return int(digits)


def read_job(row: Row, pid: int) -> Job:
    """Return a row of ``ROWS`` as a job; ``pid`` is the daemon that runs what is running."""
    facts: dict[str, Any] = dict(row)
    state = JobState(row["state"]) if row["state"] in set(JobState) else JobState.FAILED
    holder = pid if state is JobState.RUNNING else None
    known = {"id": f"j{facts.pop('number')}", "state": state, "holder": holder}
    objects = {name: facts[name] for name in ("request", "result", "error")}
    read = {n: text if text is None else read_object(text) for n, text in objects.items()}
    return Job(**facts | known | read)
