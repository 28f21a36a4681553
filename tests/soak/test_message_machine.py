"""The queue of messages against a model, at random and at length.

A failure prints the steps and a blob; ``@reproduce_failure`` with it, or ``--hypothesis-seed``
with the seed of the run, repeats it.
"""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.messages.machine import MessageMachine
from tests.soak.figures import FIGURE

STEPS = 50


@pytest.mark.parametrize("rounds", [1, pytest.param(400, marks=pytest.mark.soak)])
def test_the_queue_is_as_its_model(
    rounds: int, record_property: Callable[[str, object], None]
) -> None:
    """After sends, leases, expiries, full mailboxes, ends and restarts no copy differs."""
    MessageMachine.steps = 0
    run_state_machine_as_test(
        MessageMachine,
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
    assert MessageMachine.steps >= rounds * 35
    record_property(FIGURE, f"messages: {MessageMachine.steps} steps, 0 divergences")
