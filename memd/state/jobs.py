"""The rows of background jobs: accepted means written here first.

Rules of this file
- A job is ``queued``, then ``running``, then for ever one of ``completed``, ``failed``, ``killed``.
  No method leads out of an end; the end that was written first stands.
- The job's request (it may hold a conversation) is kept only until the job ends.
- A job counts an attempt when it starts. A row still ``running`` when the table is taken up is
  what a crash left: it is queued again, unless it used all its attempts; then it failed, so that
  a job which kills the daemon cannot do so for ever.
- Who replaces whom and whose turn it is are rules of ``memd/jobs/lanes.py``; this file keeps rows.
"""

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from memd.core.errors import MemdError
from memd.core.values import JobEnd
from memd.state.database import Cursor, Database, Row

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
"""

ATTEMPTS = 3  # spec 6.3: what fails the same way three times is parked, not repeated
KEPT_ROWS = 1000  # ended jobs that stay to be looked at; some weeks of a busy machine
_UNFINISHED = ("queued", "running")


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
    ``error`` holds ``kind`` and ``message`` of the last failure. ``request`` is empty once ended.
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


def end(cursor: Cursor, effect: JobEnd, at: float) -> None:
    """End a job inside the transaction of the change that it made."""
    cursor.execute(
        "UPDATE jobs SET state = ?, result = ?, error = NULL, ended = ?, request = '{}'"
        " WHERE number = ? AND state IN ('queued', 'running')",
        (effect.state, effect.result, at, _number(effect.job)),
    )


class JobTable:
    """The durable rows. All methods block and raise StateUnusableError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def take_up(self, at: float) -> tuple[Job, ...]:
        """Queue again what a crash left running; return all queued jobs, oldest first."""
        gave_up = _json({"kind": "gave_up", "message": f"it ended memd {ATTEMPTS} times"})
        with self._database.transaction() as cursor:
            cursor.execute(
                "UPDATE jobs SET state = 'failed', error = ?, ended = ?, request = '{}'"
                " WHERE state = 'running' AND attempts >= ?",
                (gave_up, at, ATTEMPTS),
            )
            cursor.execute("UPDATE jobs SET state = 'queued', phase = '' WHERE state = 'running'")
            cursor.execute(
                "DELETE FROM jobs WHERE ended IS NOT NULL AND number <="
                " (SELECT max(number) FROM jobs) - ?",
                (KEPT_ROWS,),
            )
            cursor.execute("SELECT * FROM jobs WHERE state = 'queued' ORDER BY number")
            return tuple(_job(row) for row in cursor.fetchall())

    def add(self, new: NewJob, at: float) -> str:
        """Write a queued job and return its id."""
        with self._database.transaction() as cursor:
            cursor.execute(
                "INSERT INTO jobs (kind, lane, directory, session, request, state, created)"
                " VALUES (?, ?, ?, ?, ?, 'queued', ?)",
                (new.kind, new.lane, new.directory, new.session, _json(new.request), at),
            )
            return f"j{cursor.lastrowid}"

    def replace(self, job: str, request: dict[str, Any]) -> None:
        """Give a queued job a newer request; its earlier failures no longer count."""
        with self._database.transaction() as cursor:
            cursor.execute(
                "UPDATE jobs SET request = ?, attempts = 0 WHERE number = ? AND state = 'queued'",
                (_json(request), _number(job)),
            )

    def start(self, job: str, at: float) -> Job:
        """Mark a queued job running, count the attempt, and return it."""
        with self._database.transaction() as cursor:
            cursor.execute(
                "UPDATE jobs SET state = 'running', started = ?, attempts = attempts + 1"
                " WHERE number = ? AND state = 'queued'",
                (at, _number(job)),
            )
        return self.get(job)

    def requeue(self, job: str, error: dict[str, Any] | None) -> None:
        """Put a running job back; without an error its attempt does not count."""
        with self._database.transaction() as cursor:
            cursor.execute(
                "UPDATE jobs SET state = 'queued', phase = '', error = ?, attempts = attempts - ?"
                " WHERE number = ? AND state = 'running'",
                (None if error is None else _json(error), int(error is None), _number(job)),
            )

    def finish(
        self,
        job: str,
        state: JobState,
        at: float,
        *,
        phase: str = "",
        result: dict[str, Any] | None = None,
        error: dict[str, Any] | None = None,
    ) -> Job:
        """End a job and return it as it now stands.

        A job whose change already ended it keeps that end; a completed one takes the fuller
        result.
        """
        number = _number(job)
        text = None if result is None else _json(result)
        with self._database.transaction() as cursor:
            cursor.execute(
                "UPDATE jobs SET state = ?, phase = ?, result = ?, error = ?, ended = ?,"
                " request = '{}' WHERE number = ? AND state IN ('queued', 'running')",
                (state, phase, text, None if error is None else _json(error), at, number),
            )
            if cursor.rowcount == 0 and state is JobState.COMPLETED:
                cursor.execute(
                    "UPDATE jobs SET phase = ?, result = ? WHERE number = ? AND state = ?",
                    (phase, text, number, state),
                )
        return self.get(job)

    def get(self, job: str) -> Job:
        """Return one job. Raises JobNotFoundError."""
        rows = self._database.read("SELECT * FROM jobs WHERE number = ?", (_number(job),))
        if not rows:
            raise JobNotFoundError(job)
        return _job(rows[0])

    def list(self, directory: str = "", limit: int = 50) -> tuple[Job, ...]:
        """Return jobs, the newest first; those of one memory directory when it is given."""
        rows = self._database.read(
            "SELECT * FROM jobs WHERE ? IN ('', directory) ORDER BY number DESC LIMIT ?",
            (directory, limit),
        )
        return tuple(_job(row) for row in rows)


def _number(job: str) -> int:
    digits = job[1:]
    if job[:1] != "j" or not (digits.isascii() and digits.isdigit()) or len(digits) > 18:  # noqa: PLR2004 - digits that surely fit SQLite's 64 bits
        raise JobNotFoundError(job)
    return int(digits)


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value)


def _job(row: Row) -> Job:
    return Job(
        id=f"j{row['number']}",
        kind=row["kind"],
        lane=row["lane"],
        directory=row["directory"],
        session=row["session"],
        request=json.loads(row["request"]),
        state=JobState(row["state"]),
        phase=row["phase"],
        result=None if row["result"] is None else json.loads(row["result"]),
        error=None if row["error"] is None else json.loads(row["error"]),
        attempts=row["attempts"],
        created=row["created"],
        started=row["started"],
        ended=row["ended"],
    )
