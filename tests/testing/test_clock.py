"""The fake clock."""

import anyio
import pytest

from memd.testing.clock import FakeClock


@pytest.mark.anyio
async def test_sleepers_wake_when_their_time_has_come() -> None:
    """Advancing the clock wakes exactly the sleepers that are due."""
    clock = FakeClock(now=100.0)
    woken: list[str] = []

    async def sleep(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(name)

    async with anyio.create_task_group() as group:
        group.start_soon(sleep, "now", 0)
        group.start_soon(sleep, "soon", 5)
        group.start_soon(sleep, "late", 10)
        await anyio.wait_all_tasks_blocked()
        clock.advance(5)
        await anyio.wait_all_tasks_blocked()
        assert woken == ["now", "soon"]
        clock.advance(5)
    assert woken == ["now", "soon", "late"]
    assert clock.now() == 110.0
    assert clock.monotonic() == 1010.0


def test_a_jump_leaves_durations_alone() -> None:
    """A correction of the system's time moves the wall clock only."""
    clock = FakeClock(now=100.0)
    clock.jump(-50)
    assert (clock.now(), clock.monotonic()) == (50.0, 1000.0)
