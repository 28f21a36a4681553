"""The rows of background jobs."""

import json

import pytest

from memd.core import limits
from memd.core.values import JobEnd
from memd.state import jobs
from memd.state.database import Database
from memd.state.jobs import (
    DEATHS,
    JobNotFoundError,
    JobState,
    JobTable,
    NewJob,
)


@pytest.fixture
def table(database: Database) -> JobTable:
    """Return the rows of that state file."""
    return JobTable(database)


def _new(session: str = "s", lane: str = "/m") -> NewJob:
    return NewJob("extract", lane, lane, session, {"session": session})


def test_a_stop_of_the_daemon_costs_no_attempt(table: JobTable) -> None:
    """A job put back without an error may be tried as often as before."""
    job = table.add(_new(), 1.0)
    table.start(job, 2.0)
    table.requeue(job, None)
    assert (table.get(job).state, table.get(job).attempts) == (JobState.QUEUED, 0)
    table.start(job, 2.0)
    table.requeue(job, {"kind": "busy", "message": "later"})
    assert table.get(job).attempts == 1
    assert table.get(job).error == {"kind": "busy", "message": "later"}


def test_the_end_inside_a_change_stands(table: JobTable, database: Database) -> None:
    """A job that its own change completed stays so, and only takes the fuller result."""
    job = table.add(_new(), 1.0)
    table.start(job, 2.0)
    with database.transaction() as cursor:
        jobs.end(cursor, JobEnd(job, "completed", json.dumps({"saved": ["a.md"]})), 3.0)
        jobs.end(cursor, JobEnd(job, "failed", "{}"), 4.0)
    assert table.get(job).result == {"saved": ["a.md"]}
    assert table.get(job).ended == 3.0
    assert table.finish(job, JobState.KILLED, 5.0).state is JobState.COMPLETED
    fuller = table.finish(job, JobState.COMPLETED, 5.0, result={"change": "c1"})
    assert (fuller.result, fuller.ended) == ({"change": "c1"}, 3.0)
    assert table.take_up(6.0) == ()


def test_old_ends_are_forgotten(table: JobTable) -> None:
    """Ended jobs stay for a bounded number of later jobs; unfinished ones stay for ever."""
    waiting, ended = table.add(_new("w"), 1.0), table.add(_new("e"), 1.0)
    table.finish(ended, JobState.KILLED, 1.0)
    for _ in range(jobs.KEPT_ROWS):
        last = table.add(_new(), 1.0)
    assert len(table.take_up(2.0)) == jobs.KEPT_ROWS + 1
    assert table.get(waiting).state is JobState.QUEUED
    assert table.get(last).state is JobState.QUEUED
    with pytest.raises(JobNotFoundError):
        table.get(ended)


def test_a_job_that_ends_its_process_again_and_again_is_parked(database: Database) -> None:
    """What ran when a process died is queued by the next one, so many times and no more."""
    job = JobTable(database).add(_new(), 1.0)
    for pid in range(1, DEATHS + 1):
        table = JobTable(database, pid)
        assert [row.state for row in table.take_up(2.0)] == [JobState.QUEUED]
        assert table.start(job, 2.0).state is JobState.RUNNING
    table = JobTable(database, 9)
    assert table.take_up(3.0) == ()
    assert table.get(job).parked


def test_only_parked_jobs_keep_their_request(table: JobTable) -> None:
    """A parked job is listed with what was asked, until a newer one of its session comes."""
    ids = [table.add(_new(name), 1.0) for name in "abc"]
    error = {"kind": "x", "message": "y"}
    for job, parked in zip(ids, (True, False, True), strict=True):
        ended = table.finish(job, JobState.FAILED, 2.0, error=error, parked=parked)
        assert ended.parked is parked
        assert ended.error == (error | {"parked": True} if parked else error)
    assert [job.id for job in table.list(parked=True)] == [ids[2], ids[0]]
    assert table.list("/other", parked=True) == ()
    newer = table.add(_new("a"), 3.0)
    assert table.get(ids[0]).request == {}
    assert table.get(ids[0]).error == error | {"superseded_by": newer}


def test_old_parked_jobs_are_let_go(table: JobTable) -> None:
    """So many parked jobs keep what was asked, the newest."""
    for number in range(limits.PARKED_KEPT + 2):
        job = table.add(_new(f"s{number}"), 1.0)
        table.finish(job, JobState.FAILED, 2.0, error={"kind": "x"}, parked=True)
    kept = table.list(limit=1000, parked=True)
    assert len(kept) == limits.PARKED_KEPT
    assert kept[0].id == job
    assert table.get("j1").error == {"kind": "x"}


def test_the_newest_job_that_ran_is_found(table: JobTable) -> None:
    """Other kinds and directories, skipped jobs, those that never ran or still run do not count."""
    assert table.newest("/m", "extract") is None
    failed, killed, done, skipped, unrun, _running = (
        table.add(_new(name), 1.0) for name in "abcdef"
    )
    for job in (failed, killed, done, skipped, _running):
        table.start(job, 2.0)
    table.finish(unrun, JobState.KILLED, 3.0)
    table.finish(skipped, JobState.COMPLETED, 3.0, result={"status": "skipped", "gate": "lock"})
    assert table.newest("/m", "extract") is None
    for job, state in (
        (failed, JobState.FAILED),
        (killed, JobState.KILLED),
        (done, JobState.COMPLETED),
    ):
        table.finish(job, state, 4.0)
        results = table.newest("/m", "extract")
        assert results is not None
        assert (results.id, results.state) == (job, state)
    assert table.newest("/n", "extract") is None
    assert table.newest("/m", "dream") is None


def test_ended_jobs_are_forgotten_while_one_daemon_runs(
    table: JobTable, database: Database
) -> None:
    """No restart is needed: each new job lets the oldest ended one go, and no other."""
    waiting = table.add(_new(), 1.0)
    with database.transaction() as cursor:
        cursor.executemany(
            "INSERT INTO jobs (kind, lane, directory, session, request, state, created, ended)"
            " VALUES ('extract', '/m', '/m', ?, '{}', 'completed', 1.0, 2.0)",
            [(f"s{number}",) for number in range(jobs.KEPT_ROWS)],
        )
    table.add(_new("other"), 3.0)
    kept = database.read("SELECT count(*) FROM jobs WHERE ended IS NOT NULL")[0][0]
    assert kept == jobs.KEPT_ROWS - 1
    assert table.get(waiting).state is JobState.QUEUED
