"""What a background job is."""

from pathlib import Path
from typing import Any

import pytest

from memd.base.errors import NotFound
from memd.state.database import open_database
from memd.state.job_rows import SCHEMA, Job, JobState, number_of, read_job


def test_an_id_is_a_number_with_a_letter() -> None:
    """Ids are read strictly."""
    assert number_of("j12") == 12
    with pytest.raises(NotFound):
        number_of("12")


def test_a_damaged_row_is_a_job_that_knows_nothing(tmp_path: Path) -> None:
    """What is no JSON object has no members, and a state that is none is a failure."""
    database = open_database(str(tmp_path / "state.db"), [SCHEMA])
    rows = database.read(
        "SELECT 1 AS number, 'dream' AS kind, '/m' AS lane, '/m' AS directory, '' AS session,"
        " ? AS request, 'dozing' AS state, '' AS phase, ? AS result, ? AS error, 0 AS attempts,"
        " 1.0 AS created, NULL AS started, NULL AS ended",
        ("no json", "[1]", "[" * 9999),
    )
    job = read_job(rows[0], 1)
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
