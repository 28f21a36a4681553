"""Both clocks, as those that wait for them see them."""

import anyio
import pytest

from memd.daemon.clock import SystemClock
from tests.support.clock import FakeClock

pytestmark = pytest.mark.anyio


async def test_a_scope_ends_when_its_time_has_come() -> None:
    """A fake clock ends what is overdue once it was advanced so far, and nothing else."""
    clock = FakeClock()
    async with anyio.create_task_group() as group:
        with clock.move_on_after(10.0) as late, clock.move_on_after(2.0) as soon:
            group.start_soon(_advance, clock, 2.0)
            await anyio.sleep_forever()
    assert (soon.cancelled_caught, late.cancel_called) == (True, False)
    clock.advance(20.0)
    await anyio.lowlevel.checkpoint()  # what was left in time is not ended afterwards


@pytest.mark.parametrize("clock", [FakeClock(), SystemClock()])
async def test_no_time_is_over_at_once(clock: FakeClock | SystemClock) -> None:
    """A scope without any time ends at the first wait, by either clock."""
    with clock.move_on_after(0.0) as scope:
        await anyio.sleep_forever()
    assert scope.cancelled_caught


async def _advance(clock: FakeClock, seconds: float) -> None:
    clock.advance(seconds)
