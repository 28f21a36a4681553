"""G17: the store against a model, at random and at length.

A failure prints the steps and a blob; ``@reproduce_failure`` with it, or ``--hypothesis-seed``
with the seed of the run, repeats it.
"""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.soak.figures import FIGURE
from tests.soak.store_machine import StoreMachine


@pytest.mark.parametrize("rounds", [10, pytest.param(400, marks=pytest.mark.soak)])
def test_the_store_is_as_its_model(
    rounds: int, record_property: Callable[[str, object], None]
) -> None:
    """After writes, stale edits, dreams, undo, others, kills and full disks no file differs."""
    StoreMachine.steps = 0
    run_state_machine_as_test(
        StoreMachine,
        settings=settings(
            max_examples=rounds,
            stateful_step_count=50,
            deadline=None,
            database=None,
            print_blob=True,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert StoreMachine.steps >= rounds * 35
    record_property(FIGURE, f"G17 model: {StoreMachine.steps} steps, 0 divergences")
