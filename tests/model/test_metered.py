"""Counting what a model uses, and stopping at the caps."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from memd.base.settings import SpendSettings
from memd.model.errors import (
    CapReachedError,
    ModelReplyError,
    ModelUnavailableError,
)
from memd.model.metered import Metered
from memd.model.port import Usage
from memd.state.database import Database, open_database
from memd.state.spend import SCHEMA, SpendTable, Sum
from tests.model.asks import ToldModel, ask, reply
from tests.support.clock import FakeClock

pytestmark = pytest.mark.anyio
CLOCK = FakeClock()
CAPS = SpendSettings()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """Open an empty state file."""
    database = open_database(str(tmp_path / "state.db"), [SCHEMA])
    yield database
    database.close()


def booked(database: Database, kind: str = "recall") -> Sum:
    """Return what the books say of today."""
    return SpendTable(database).today(CLOCK.now(), kind)


def metered(database: Database, *steps: Any, caps: SpendSettings = CAPS) -> Metered:
    """Return a model that is told what to answer, with its books."""
    return Metered(ToldModel(steps), SpendTable(database), caps, CLOCK)


async def test_a_request_is_booked_before_it_is_sent(database: Database) -> None:
    """While the server thinks, the most that it may cost is in the books already."""
    seen: list[Sum] = []

    async def think() -> Any:
        seen.append(booked(database))
        await anyio.lowlevel.checkpoint()
        return reply()

    await metered(database, think).ask(ask())
    assert seen[0].output == 100
    assert seen[0].dollars > 0.001


@pytest.mark.parametrize(
    "error", [ModelReplyError("x"), ModelUnavailableError("cut", may_cost=True)]
)
async def test_what_may_have_cost_stays_booked(database: Database, error: Exception) -> None:
    """A reply that was lost on the way is booked at the most that it may cost."""
    with pytest.raises(type(error)):
        await metered(database, error).ask(ask())
    assert booked(database).output == 100


@pytest.mark.parametrize(("seconds", "output"), [(0.0, 0), (0.1, 30), (9.0, 100)])
async def test_a_cancelled_request_costs_its_time(
    database: Database, seconds: float, output: int
) -> None:
    """Who stops waiting has spent what the model can have written until then, and the prompt."""
    clock = FakeClock(now=CLOCK.now())
    with anyio.CancelScope() as scope:

        async def give_up() -> None:
            clock.advance(seconds)
            scope.cancel()
            await anyio.sleep_forever()

        counted = Metered(ToldModel([give_up]), SpendTable(database), SpendSettings(), clock)
        await counted.ask(ask())
    assert scope.cancelled_caught
    assert (booked(database).output, booked(database).input > 0) == (output, True)


@pytest.mark.parametrize("reported", [Usage(), Usage(1, 1), Usage(cache_read=3)])
async def test_a_claim_that_cannot_be_true_counts_as_the_estimate(
    database: Database, reported: Usage
) -> None:
    """Where a server claims next to nothing for much that was sent, memd's count holds."""
    long = ask(messages=({"role": "user", "content": "word " * 4000},))
    await metered(database, reply("answer " * 1000, reported)).ask(long)
    results = booked(database)
    assert 5_000 <= results.input + results.cache_read <= 6_000
    assert 1_700 <= results.output <= 2_000


async def test_at_a_cap_nothing_is_sent(database: Database) -> None:
    """The failure names the kind, the cap and when it goes on."""
    caps = SpendSettings(requests_per_day=1)
    model = ToldModel([reply(), reply()])
    counted = Metered(model, SpendTable(database), caps, CLOCK)
    await counted.ask(ask())
    with pytest.raises(CapReachedError) as caught:
        await counted.ask(ask())
    assert len(model.requested) == 1
    assert caught.value.resumes > CLOCK.now()
    assert "spend.requests_per_day for recall" in caught.value.sentence


async def test_without_books_nothing_is_spent(database: Database) -> None:
    """When the state file cannot be written the model is not asked."""
    counted = metered(database, reply())
    database.close()
    with pytest.raises(ModelUnavailableError):
        await counted.ask(ask())
