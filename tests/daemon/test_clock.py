"""The real clock."""

import time

import anyio
import pytest

from memd.daemon.clock import SystemClock


@pytest.mark.anyio
async def test_the_clock_is_the_systems() -> None:
    """It agrees with the operating system and returns from a sleep of no length."""
    clock = SystemClock()
    assert abs(clock.now() - time.time()) < 60
    before = clock.monotonic()
    with anyio.fail_after(60):
        await clock.sleep(0)
    assert clock.monotonic() >= before
