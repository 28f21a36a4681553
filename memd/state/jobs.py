"""Store background jobs: a job is accepted once its row is written, and the rows are the queue.

Rules of this file
- A job is ``queued``, then ``running``, then ``completed``, ``failed`` or ``killed`` for good. The
  first end that is written stays.
- Starting a job counts a try. A job that is running when a daemon starts belonged to a process that
  died: it is queued again, and fails after ``TRIES``, so that it cannot end the daemon for ever.
- The request, which may hold a conversation, is stored until the job ends. A *parked* job failed
  where another try might have worked: it keeps its request until its session has a newer one, or
  until ``PARKED_ROWS`` later jobs are parked.
- ``memd/jobs/service.py`` decides what runs; one daemon uses the table.
"""

import json
import os
import re
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct

from memd.base.errors import NotFound
from memd.base.text import read_object
from memd.base.values import Effect
from memd.state.database import Cursor, Database
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
"""

TRIES = 3  # of one request
ROWS = 1000  # of ended jobs that can still be listed; some weeks of a busy machine
PARKED_ROWS = 50  # a request may hold a frame of 4 MiB
_ROWS = "SELECT * FROM jobs WHERE "
_BY_STATE = (
    "SELECT state, count(*) AS number FROM"
    " (SELECT state FROM jobs ORDER BY number DESC LIMIT 200) GROUP BY state"
)


class JobState(StrEnum):
    """The state of a job; the last three are final."""

    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    KILLED = "killed"


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
        """Whether the job failed and has its request."""
        return self.state is JobState.FAILED and bool(self.request)

    @property
    def over(self) -> bool:
        """Whether the job has ended."""
        return self.state not in ("queued", "running")


def number_of(job: str) -> int:
    """Return the row number of a job's id. Raises NotFound."""
    if not re.fullmatch("j[0-9]{1,18}", job):  # digits that surely fit SQLite's 64 bits
        raise _not_found(job)
    return int(job[1:])


def job_completed(job: str, result: Mapping[str, Any], at: float) -> Effect:
    """Return the effect that completes a job with the change it made, whose id its result gets."""

    def complete(cursor: Any, change: str | None) -> None:
        facts = {**result, "change": change} if change else result
        cursor.execute(
            "UPDATE jobs SET state = 'completed', result = ?, error = NULL, ended = ?,"
            " request = '{}' WHERE number = ? AND ended IS NULL",
            (json.dumps(facts), at, number_of(job)),
        )

    return complete


def completed_results(
    database: Database, kind: str, directory: str, since: float, until: float
) -> tuple[dict[str, Any], ...]:
    """Return the results of a directory's completed jobs of a kind that ended in a time.

    ``since`` and ``until`` are in seconds since 1970.
    """
    rows = database.read(
        "SELECT result FROM jobs WHERE kind = ? AND directory = ? AND ended BETWEEN ? AND ?"
        " AND state = 'completed'",
        (kind, directory, since, until),
    )
    return tuple(read_object(row["result"]) for row in rows)


class JobTable:
    """The rows of jobs. Methods block and raise StateUnusableError, and NotFound for a wrong id.

    ``pid`` is this process, which running jobs return as their ``holder``.
    """

    def __init__(self, database: Database, pid: int = 0) -> None:
        self._database = database
        self._pid = pid
        self.docs = Docs(database)

    def take_up(self, at: float) -> None:
        """Queue the jobs of a process that died again, or end them after ``TRIES``."""
        message = f"memd ended while it ran, in the last of {TRIES} tries"
        error = json.dumps({"kind": "gave_up", "message": message})
        with self._database.transaction() as cursor:
            cursor.execute(
                "UPDATE jobs SET state = 'failed', error = ?, ended = ?"
                " WHERE state = 'running' AND attempts >= ?",
                (error, at, TRIES),
            )
            cursor.execute("UPDATE jobs SET state = 'queued', phase = '' WHERE state = 'running'")
            _delete_oldest(cursor)

    def add(
        self, kind: str, directory: str, session: str, request: object, at: float
    ) -> tuple[str, bool]:
        """Store a request and return the id of its job, and whether the job is a new one.

        A queued job of the same kind, real directory and session gets the request in place of its
        own, and its earlier failures no longer count.
        """
        of_session, text = (kind, os.path.realpath(directory), session), json.dumps(request)
        with self._database.transaction() as cursor:
            cursor.execute(
                "UPDATE jobs SET request = ?, attempts = 0, error = NULL"
                " WHERE number = (SELECT max(number) FROM jobs"
                " WHERE state = 'queued' AND kind = ? AND lane = ? AND session = ?)"
                " RETURNING number",
                (text, *of_session),
            )
            waiting = cursor.fetchall()
            if waiting:
                return f"j{waiting[0]['number']}", False
            cursor.execute(
                "UPDATE jobs SET request = '{}' WHERE state = 'failed' AND request <> '{}'"
                " AND kind = ? AND lane = ? AND session = ?",
                of_session,
            )
            cursor.execute(
                "INSERT INTO jobs (kind, lane, session, directory, request, state, created)"
                " VALUES (?, ?, ?, ?, ?, 'queued', ?)",
                (*of_session, directory, text, at),
            )
            job = f"j{cursor.lastrowid}"
            _delete_oldest(cursor)
            return job, True

    def next(self, lanes: Collection[str], but: Collection[str]) -> tuple[str, str] | None:
        """Return id and lane of the oldest queued job whose lane is not in ``lanes``.

        The jobs ``but`` are passed over.
        """
        query = "SELECT number, lane FROM jobs WHERE state = 'queued' ORDER BY number"
        for number, lane in self._database.read(query):
            if lane not in lanes and f"j{number}" not in but:
                return f"j{number}", lane
        return None

    def start(self, job: str, at: float) -> Job:
        """Mark a queued job running, count the try, and return the job; one that ended stays so."""
        self._database.write(
            "UPDATE jobs SET state = 'running', started = ?, attempts = attempts + 1"
            " WHERE number = ? AND state = 'queued'",
            (at, number_of(job)),
        )
        return self.get(job)

    def put_back(self, job: str) -> None:
        """Queue a running job again; its try does not count."""
        self._database.write(
            "UPDATE jobs SET state = 'queued', phase = '', attempts = attempts - 1"
            " WHERE number = ? AND state = 'running'",
            (number_of(job),),
        )

    def retry(self, job: str, error: dict[str, Any]) -> bool:
        """Queue a failed job again unless its session has a newer request; say whether it is."""
        with self._database.transaction() as cursor:
            if _has_newer(cursor, job):
                return False
            cursor.execute(
                "UPDATE jobs SET state = 'queued', phase = '', error = ?"
                " WHERE number = ? AND state = 'running'",
                (json.dumps(error), number_of(job)),
            )
            return bool(cursor.rowcount)

    def kill_queued(self, job: str, at: float) -> bool:
        """End a job that waits, and return whether it did."""
        query = "UPDATE jobs SET state = 'killed', ended = ?, request = '{}'"
        query += " WHERE number = ? AND state = 'queued'"
        return self._database.write(query, (at, number_of(job))) == 1

    def finish(
        self,
        job: str,
        state: JobState,
        at: float,
        *,
        phase: str = "",
        result: dict[str, Any] | None = None,
        error: dict[str, Any] | None = None,
        park: bool = False,
    ) -> Job:
        """End a job and return it; with ``park`` it keeps its request, if there is no newer one.

        A job that its change ended already keeps that end; a completed one gets the new result.
        """
        number = number_of(job)
        texts = [None if facts is None else json.dumps(facts) for facts in (result, error)]
        with self._database.transaction() as cursor:
            park = park and not _has_newer(cursor, job)
            if not park:
                cursor.execute("UPDATE jobs SET request = '{}' WHERE number = ?", (number,))
            cursor.execute(
                "UPDATE jobs SET state = ?, phase = ?, result = ?, error = ?,"
                " ended = ifnull(ended, ?) WHERE number = ?"
                " AND (ended IS NULL OR state = 'completed' AND state = ?)",
                (state, phase, *texts, at, number, state),
            )
            if park:
                cursor.execute(
                    "UPDATE jobs SET request = '{}' WHERE number IN (SELECT number FROM jobs WHERE"
                    " state = 'failed' AND request <> '{}' ORDER BY number DESC LIMIT -1 OFFSET ?)",
                    (PARKED_ROWS,),
                )
        return self.get(job)

    def get(self, job: str) -> Job:
        """Return one job."""
        jobs = self._select("number = ?", (number_of(job),))
        if not jobs:
            raise _not_found(job)
        return jobs[0]

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
        places, values = ["? IN ('', directory)"], list[object]([directory])
        for folder in below:
            places.append("substr(directory, 1, ?) = ?")
            values += [len(folder) + 1, f"{folder}/"]
        return self._select(
            f"({' OR '.join(places)}) AND (NOT ? OR state = 'failed' AND request <> '{{}}')"
            " ORDER BY number DESC LIMIT ?",
            (*values, parked, limit),
        )

    def newest(self, directory: str, kind: str) -> Job | None:
        """Return the newest job of a kind that ran and has ended, in a directory or in all for "".

        A job whose result has the status skipped did nothing and does not count.
        """
        jobs = self._select(
            "? IN ('', directory) AND kind = ? AND started IS NOT NULL AND ended IS NOT NULL"
            " AND iif(json_valid(result), json_extract(result, '$.status'), '') IS NOT 'skipped'"
            " ORDER BY number DESC LIMIT 1",
            (directory, kind),
        )
        return jobs[0] if jobs else None

    def under_way(self, kind: str, directory: str) -> str | None:
        """Return the id of the oldest job of a kind and real directory that waits or runs."""
        rows = self._database.read(
            "SELECT min(number) FROM jobs"
            " WHERE state IN ('queued', 'running') AND kind = ? AND lane = ?",
            (kind, os.path.realpath(directory)),
        )
        return None if rows[0][0] is None else f"j{rows[0][0]}"

    def unfinished(self) -> int:
        """Return how many jobs wait or run."""
        query = "SELECT count(*) FROM jobs WHERE state IN ('queued', 'running')"
        return int(self._database.read(query)[0][0])

    def counts(self) -> dict[str, int]:
        """Return how many of the newest 200 jobs are in which state, and all ``parked`` ones."""
        rows = {row["state"]: int(row["number"]) for row in self._database.read(_BY_STATE)}
        query = "SELECT count(*) FROM jobs WHERE state = 'failed' AND request <> '{}'"
        parked = int(self._database.read(query)[0][0])
        counts = {state.value: rows[state] for state in JobState if state in rows}
        return counts | ({"parked": parked} if parked else {})

    def _select(self, condition: str, values: Sequence[object]) -> tuple[Job, ...]:
        """Return the jobs for which a condition holds."""
        jobs = []
        for row in self._database.read(_ROWS + condition, values):
            facts: dict[str, Any] = dict(row)
            # Of a damaged row little is known, and it failed.
            state = JobState(row["state"]) if row["state"] in set(JobState) else JobState.FAILED
            holder = self._pid if state is JobState.RUNNING else None
            facts |= {"id": f"j{facts.pop('number')}", "state": state, "holder": holder}
            for name in ("request", "result", "error"):
                facts[name] = None if facts[name] is None else read_object(facts[name])
            jobs.append(Job(**facts))
        return tuple(jobs)


def _delete_oldest(cursor: Cursor) -> None:
    """Delete the rows of ended jobs beyond the newest ``ROWS``."""
    cursor.execute(
        "DELETE FROM jobs WHERE ended IS NOT NULL AND number <= (SELECT max(number) FROM jobs) - ?",
        (ROWS,),
    )


def _has_newer(cursor: Cursor, job: str) -> bool:
    """Return whether a job's session has a newer request that waits: it covers its messages too."""
    cursor.execute(
        "SELECT 1 FROM jobs JOIN jobs AS newer USING (kind, lane, session)"
        " WHERE jobs.number = ? AND newer.state = 'queued'",
        (number_of(job),),
    )
    return cursor.fetchone() is not None


def _not_found(job: str) -> NotFound:
    """Return the error that there is no job with this id."""
    hint = "list the jobs to see those that are known"
    return NotFound(f"there is no job {job}", hint=hint, job=job)
