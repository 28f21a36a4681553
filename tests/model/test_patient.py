"""Trying again."""

import anyio
import pytest

from memd.model.errors import (
    ModelBusyError,
    ModelError,
    ModelRefusedError,
    ModelUnavailableError,
)
from memd.model.patient import Patient, overdue
from tests.model.asks import ToldModel, ask, reply

pytestmark = pytest.mark.anyio


async def test_tries_are_bounded() -> None:
    """After the last try its failure is the caller's."""
    model = ToldModel([ModelBusyError("first"), ModelBusyError("second"), reply()])
    with pytest.raises(ModelBusyError, match="second"):
        await Patient(model, 0.001).ask(ask(retries=1))
    assert len(model.steps) == 1


@pytest.mark.parametrize("error", [ModelRefusedError(400, "x"), ModelBusyError("x")])
async def test_without_hope_or_retries_nothing_is_tried_again(error: ModelError) -> None:
    """What lasts is told at once, and so is anything when no retries were asked for."""
    model = ToldModel([error, reply()])
    with pytest.raises(type(error)):
        await Patient(model).ask(ask(retries=0 if error.retryable else 5))
    assert len(model.requested) == 1


async def test_the_time_is_one_for_everything() -> None:
    """A model that never answers ends in a failure of time, which may have cost something."""
    model = ToldModel([anyio.sleep_forever])
    with pytest.raises(ModelUnavailableError, match=r"0\.05 s") as caught:
        await Patient(model).ask(ask(seconds=0.05, retries=3))
    assert caught.value.may_cost
    assert overdue(4.0).retryable
