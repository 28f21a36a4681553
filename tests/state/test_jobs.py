"""What a background job is."""

from pathlib import Path
from typing import Any

import pytest

from memd.base.errors import NotFound
from memd.state.database import open_database
from memd.state.jobs import SCHEMA, Job, JobState, JobTable, number_of


def test_an_id_is_a_number_with_a_letter() -> None:
    """Ids are read strictly."""
    assert number_of("j12") == 12
    with pytest.raises(NotFound):
        number_of("12")


def test_a_damaged_row_is_a_job_that_knows_nothing(tmp_path: Path) -> None:
    """What is no JSON object has no members, and a state that is none is a failure."""
    database = open_database(str(tmp_path / "state.db"), [SCHEMA])
    database.write(
        "INSERT INTO jobs (kind, lane, directory, session, request, state, result, error, created)"
        " VALUES ('dream', '/m', '/m', '', ?, 'dozing', ?, ?, 1.0)",
        ("no json", "[1]", "[" * 9999),
    )
    job = JobTable(database).get("j1")
    assert (job.request, job.state, job.result, job.error) == ({}, JobState.FAILED, {}, {})
    database.close()


@pytest.mark.parametrize(
    ("state", "request_", "over", "parked"),
    [
        (JobState.QUEUED, {"a": 1}, False, False),
        (JobState.RUNNING, {"a": 1}, False, False),
        (JobState.COMPLETED, {}, True, False),
        (JobState.KILLED, {}, True, False),
        (JobState.FAILED, {}, True, False),
        (JobState.FAILED, {"a": 1}, True, True),
    ],
)
def test_a_state_tells_what_can_become_of_a_job(
    state: JobState, request_: dict[str, Any], *, over: bool, parked: bool
) -> None:
    """Ends are over; a failed job that still knows what was asked is parked."""
    job = Job("j1", "extract", "/m", "/m", "s", request_, state, "", None, None, 1, 0.0, None, None)
    assert (job.over, job.parked) == (over, parked)
