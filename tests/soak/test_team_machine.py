"""Two daemons and a team's server at random and at length, on both storages.

A failure prints the steps and a blob; ``@reproduce_failure`` with it, or ``--hypothesis-seed``
with the seed of the run, repeats it.
"""

from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.server.clusters import cluster
from tests.server.conftest import POSTGRES
from tests.soak.figures import FIGURE
from tests.team.machine import TeamMachine

STEPS = 40


@pytest.fixture(params=["sqlite", POSTGRES])
def storage(request: pytest.FixtureRequest) -> Iterator[str]:
    """Let the machine's servers use a storage."""
    if request.param == "sqlite":
        yield "SQLite"
        return
    with cluster() as address:
        TeamMachine.postgres = address
        try:
            yield "PostgreSQL"
        finally:
            TeamMachine.postgres = ""


@pytest.mark.parametrize("rounds", [1, pytest.param(250, marks=pytest.mark.soak)])
def test_no_order_of_events_breaks_a_promise(
    rounds: int, storage: str, record_property: Callable[[str, object], None]
) -> None:
    """Edits, removals, losses, doublings, crashes, restores: no promise of team memory breaks."""
    TeamMachine.steps = 0
    run_state_machine_as_test(
        TeamMachine,
        settings=settings(
            max_examples=rounds,
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            print_blob=True,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert TeamMachine.steps >= rounds * STEPS // 2
    record_property(FIGURE, f"team on {storage}: {TeamMachine.steps} steps, 0 broken promises")
