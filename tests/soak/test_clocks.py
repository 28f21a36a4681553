"""History outlives clocks that jump, between starts and between writes.

Each round is a home whose daemon has run for some days, so that its clock was proved; then the
clock jumps by up to 500 days either way before a start or a write, and up to 18 hours go by.
"""

import random
from collections.abc import Callable

import anyio
import pytest

from memd.client.aio import AsyncClient
from memd.core.clock_check import DAY_SECONDS
from tests.daemon.test_retention import MEMORY, changes, looked
from tests.soak.figures import FIGURE
from tests.soak.rounds import play
from tests.support.clock import FakeClock
from tests.support.daemon import daemon_here, throw_away_home

SEED = 20261122
STARTS = 5


@pytest.mark.parametrize("count", [2, pytest.param(200, marks=pytest.mark.soak)])
def test_no_jump_takes_history(count: int, record_property: Callable[[str, object], None]) -> None:
    """However the clock jumps, each change is in the history at the end."""
    lost = play(count, SEED, here, apart=True)
    record_property(FIGURE, f"10.3 clocks that jump: {count} rounds, {lost} changes lost")
    assert lost == 0


def here(chance: random.Random) -> int:
    """Play a round in this process."""
    return anyio.run(one_round, chance)


async def one_round(chance: random.Random) -> int:
    """Return how many changes were lost."""
    clock, written = FakeClock(), 0
    with throw_away_home() as home:
        cwd = home.project()
        for start in range(STARTS):
            async with (
                daemon_here(home, clock),
                AsyncClient(home.places.socket, name="t") as client,
            ):
                await looked(clock)
                for _ in range(3):
                    if start and chance.random() < 0.7:
                        clock.jump(chance.uniform(-500, 500) * DAY_SECONDS)
                    hours = chance.choice([0, 1, 6]) if start else 24
                    clock.advance(hours * 3600.0)
                    await looked(clock)
                    written += 1
                    body = f"text {written}"
                    await client.call("memory.write", {**MEMORY, "body": body, "cwd": cwd})
                results = await changes(client, cwd)
            clock.jump(chance.choice([0, chance.uniform(-500, 500)]) * DAY_SECONDS)
    return written - results
