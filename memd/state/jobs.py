"""Store background jobs: a job counts as accepted once its row is written.

Rules of this file
- A job is ``queued``, then ``running``, then ``completed``, ``failed`` or ``killed`` for good. The
  first end that is written stays. Only a parked job can leave its end, with ``retry``.
- The request, which may hold a conversation, is kept until the job ends. A failed job that still
  has it is parked. A newer job of its session, or many later parked ones, delete its request.
- Starting a job counts an attempt. Only one daemon uses the table, so a job that is running when
  the table is opened belonged to a process that died: it is queued again and the death is counted.
  After ``DEATHS`` deaths it is parked, so that it cannot end the daemon for ever.
- ``memd/jobs/lanes.py`` decides which job runs next; this file only stores rows.
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct

from memd.base import limits
from memd.base.errors import NotFound
from memd.base.text import read_object
from memd.base.values import Effect
from memd.state.database import Cursor, Database, Row
from memd.state.docs import Docs

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

DEATHS = 3  # processes that died while they ran a job, after which the job is parked
KEPT_ROWS = 1000  # rows of ended jobs that can still be listed; some weeks of a busy machine
PARKED = "parked"  # a key in the error of a parked job
_ROWS = "SELECT * FROM jobs"
_PARKED_ROWS = f"{_ROWS} WHERE state = 'failed' AND request <> '{{}}'"
_BY_STATE = (
    "SELECT state, count(*) AS found FROM"
    " (SELECT state FROM jobs ORDER BY number DESC LIMIT 200) GROUP BY state"
)


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
        return self.state not in ("queued", "running")


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


class JobCounts(Struct, frozen=True):
    """The newest 200 jobs by state, with all ``parked`` ones, and at most ten ``running`` ones."""

    by_state: dict[str, int]
    running: tuple[Job, ...]


def job_completed(job: str, result: Mapping[str, Any], at: float) -> Effect:
    """Return the effect that completes a job with the change it made, whose id its result gets."""

    def complete(cursor: Any, change: str | None) -> None:
        facts = {**result, "change": change} if change else result
        cursor.execute(
            "UPDATE jobs SET state = 'completed', result = ?, error = NULL, ended = ?,"
            " request = '{}' WHERE number = ? AND state IN ('queued', 'running')",
            (json.dumps(facts), at, number_of(job)),
        )

    return complete


def completed_results(
    database: Database, kind: str, directory: str, since: float
) -> tuple[dict[str, Any], ...]:
    """Return the results of a directory's completed jobs of a kind that ended after ``since``."""
    rows = database.read(
        "SELECT result FROM jobs WHERE kind = ? AND directory = ? AND ended >= ?"
        " AND state = 'completed'",
        (kind, directory, since),
    )
    return tuple(read_object(row["result"]) for row in rows)


class JobTable:
    """The rows of jobs. Methods block and raise StateUnusableError.

    ``pid`` is this process, which running jobs return as their ``holder``.
    """

    def __init__(self, database: Database, pid: int = 0) -> None:
        self._database = database
        self._pid = pid
        self.docs = Docs(database)

    def take_up(self, at: float) -> tuple[Job, ...]:
        """Queue or park the jobs of a dead process; return all unfinished jobs, oldest first."""
        with self._database.transaction() as cursor:
            cursor.execute(f"{_ROWS} WHERE state = 'running'")
            for row in cursor.fetchall():
                _count_death(cursor, row["number"], at)
            _forget_oldest(cursor)
            cursor.execute(
                "DELETE FROM leases WHERE job NOT IN"
                " (SELECT number FROM jobs WHERE state IN ('queued', 'running'))"
            )
            cursor.execute(f"{_ROWS} WHERE state IN ('queued', 'running') ORDER BY number")
            return self._read_jobs(cursor.fetchall())

    def add(self, new: NewJob, at: float) -> str:
        """Store a queued job and return its id.

        A parked job of the same kind, lane and session becomes an ordinary failure.
        """
        with self._database.transaction() as cursor:
            cursor.execute(
                "INSERT INTO jobs (kind, lane, directory, session, request, state, created)"
                " VALUES (?, ?, ?, ?, ?, 'queued', ?)",
                (new.kind, new.lane, new.directory, new.session, json.dumps(new.request), at),
            )
            job = f"j{cursor.lastrowid}"
            cursor.execute(
                f"{_PARKED_ROWS} AND kind = ? AND lane = ? AND session = ?",
                (new.kind, new.lane, new.session),
            )
            _end_parking(cursor, superseded_by=job)
            _forget_oldest(cursor)
            return job

    def replace(self, job: str, request: dict[str, Any]) -> None:
        """Give a queued job a newer request; its earlier failures no longer count."""
        self._database.write(
            "UPDATE jobs SET request = ?, attempts = 0, error = NULL"
            " WHERE number = ? AND state = 'queued'",
            (json.dumps(request), number_of(job)),
        )

    def start(self, job: str, at: float) -> Job:
        """Mark a queued job running, count the attempt, and return it.

        A job that has ended is returned as it is. Raises NotFound.
        """
        self._database.write(
            "UPDATE jobs SET state = 'running', started = ?, attempts = attempts + 1"
            " WHERE number = ? AND state = 'queued'",
            (at, number_of(job)),
        )
        return self.get(job)

    def requeue(self, job: str, error: dict[str, Any] | None) -> None:
        """Queue a running job again; without an error its attempt does not count."""
        self._database.write(
            "UPDATE jobs SET state = 'queued', phase = '', error = coalesce(?, error),"
            " attempts = attempts - ? WHERE number = ? AND state = 'running'",
            (error and json.dumps(error), int(error is None), number_of(job)),
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
        parked: bool = False,
    ) -> Job:
        """End a job and return its row; a ``parked`` one keeps its request.

        A job that its change set already ended keeps that end; a completed one gets the new result.
        """
        number = number_of(job)
        result_text = None if result is None else json.dumps(result)
        if parked and error is not None:
            error = error | {PARKED: True}
        error_text = error and json.dumps(error)
        with self._database.transaction() as cursor:
            cursor.execute(
                "UPDATE jobs SET state = ?, phase = ?, result = ?, error = ?, ended = ?,"
                " request = CASE WHEN ? THEN request ELSE '{}' END"
                " WHERE number = ? AND state IN ('queued', 'running')",
                (state, phase, result_text, error_text, at, parked, number),
            )
            # The job's change set ended it already; this result says more.
            if cursor.rowcount == 0 and state is JobState.COMPLETED:
                cursor.execute(
                    "UPDATE jobs SET phase = ?, result = ? WHERE number = ? AND state = ?",
                    (phase, result_text, number, state),
                )
            cursor.execute("DELETE FROM leases WHERE job = ?", (number,))
            if parked:  # the oldest become ordinary failures, so that stored requests stay few
                cursor.execute(
                    f"{_PARKED_ROWS} ORDER BY number DESC LIMIT -1 OFFSET ?", (limits.PARKED_KEPT,)
                )
                _end_parking(cursor)
        return self.get(job)

    def get(self, job: str) -> Job:
        """Return one job. Raises NotFound."""
        rows = self._database.read(f"{_ROWS} WHERE number = ?", (number_of(job),))
        if not rows:
            raise job_not_found(job)
        return self._read_jobs(rows)[0]

    def list(
        self,
        directory: str = "",
        limit: int = 50,
        *,
        parked: bool = False,
        below: Sequence[str] = (),
    ) -> tuple[Job, ...]:
        """Return jobs, the newest first; with ``parked`` only parked ones.

        With a memory directory, only its jobs and those of directories in the folders ``below``.
        """
        query = f"{_PARKED_ROWS} AND" if parked else f"{_ROWS} WHERE"
        conditions, values = ["? IN ('', directory)"], list[object]([directory])
        for folder in below:
            conditions.append("substr(directory, 1, ?) = ?")
            values += [len(folder) + 1, f"{folder}/"]
        places = " OR ".join(conditions)
        rows = self._database.read(
            f"{query} ({places}) ORDER BY number DESC LIMIT ?", (*values, limit)
        )
        return self._read_jobs(rows)

    def newest(self, directory: str, kind: str) -> Job | None:
        """Return the newest job of a kind that ran and has ended, in a directory or in all for "".

        A job whose result has the status skipped did nothing and does not count.
        """
        query = (
            f"{_ROWS} WHERE ? IN ('', directory) AND kind = ? AND started IS NOT NULL"
            " AND ended IS NOT NULL AND number < ? ORDER BY number DESC LIMIT 1"
        )
        number_bound = sys.maxsize
        # One row at a time: results can be large, and usually the first row counts.
        while rows := self._database.read(query, (directory, kind, number_bound)):
            (job,) = self._read_jobs(rows)
            if (job.result or {}).get("status") != "skipped":
                return job
            number_bound = rows[0]["number"]
        return None

    def counts(self) -> JobCounts:
        """Return how many jobs are in which state, and which run."""
        rows = {row["state"]: int(row["found"]) for row in self._database.read(_BY_STATE)}
        counts = {state.value: rows[state] for state in JobState if state in rows}
        parked = len(self._database.read(_PARKED_ROWS.replace("*", "number")))
        running = self._read_jobs(self._database.read(f"{_ROWS} WHERE state = 'running' LIMIT 10"))
        return JobCounts(counts | ({"parked": parked} if parked else {}), running)

    def _read_jobs(self, rows: Iterable[Row]) -> tuple[Job, ...]:
        """Return the jobs in rows; of a damaged one little is known, and it failed."""
        jobs = []
        for row in rows:
            facts: dict[str, Any] = dict(row)
            state = JobState(row["state"]) if row["state"] in set(JobState) else JobState.FAILED
            holder = self._pid if state is JobState.RUNNING else None
            facts |= {"id": f"j{facts.pop('number')}", "state": state, "holder": holder}
            for name in ("request", "result", "error"):
                facts[name] = None if facts[name] is None else read_object(facts[name])
            jobs.append(Job(**facts))
        return tuple(jobs)


def _forget_oldest(cursor: Cursor) -> None:
    """Delete the rows of ended jobs beyond the newest ``KEPT_ROWS``."""
    cursor.execute(
        "DELETE FROM jobs WHERE ended IS NOT NULL AND number <= (SELECT max(number) FROM jobs) - ?",
        (KEPT_ROWS,),
    )


def _count_death(cursor: Cursor, number: int, at: float) -> None:
    """Queue a job again after its process died, or park it after ``DEATHS`` deaths."""
    cursor.execute(
        "INSERT INTO leases (job, holder, since, deaths) VALUES (?, 0, ?, 1)"
        " ON CONFLICT (job) DO UPDATE SET deaths = deaths + 1 RETURNING deaths",
        (number, at),
    )
    if cursor.fetchone()["deaths"] < DEATHS:
        cursor.execute("UPDATE jobs SET state = 'queued', phase = '' WHERE number = ?", (number,))
        return
    gave_up = {"kind": "gave_up", "message": f"it ended memd {DEATHS} times", PARKED: True}
    cursor.execute(
        "UPDATE jobs SET state = 'failed', error = ?, ended = ? WHERE number = ?",
        (json.dumps(gave_up), at, number),
    )


def _end_parking(cursor: Cursor, **facts: str) -> None:
    """Turn the parked jobs that the cursor selected into ordinary failures.

    Their requests are deleted and ``facts`` are added to their errors.
    """
    for row in cursor.fetchall():
        error = {**read_object(row["error"]), **facts}
        error.pop(PARKED, None)
        cursor.execute(
            "UPDATE jobs SET request = '{}', error = ? WHERE number = ?",
            (json.dumps(error), row["number"]),
        )
