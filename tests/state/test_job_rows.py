"""What a background job is."""

from typing import Any

import pytest

from memd.state.job_rows import Job, JobNotFoundError, JobState, number_of, to_json


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


def test_an_id_is_a_number_with_a_letter() -> None:
    """Ids are read strictly, and members are kept as JSON."""
    assert number_of("j12") == 12
    with pytest.raises(JobNotFoundError):
        number_of("12")
    assert to_json({"a": [1]}) == '{"a": [1]}'
