"""A daemon in this process, and a client on its socket, for the tests of the methods."""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from memd.client.aio import AsyncClient
from tests.api.caller import Caller
from tests.support.clock import FakeClock
from tests.support.daemon import Home, daemon_here, throw_away_home


@pytest.fixture
def home() -> Iterator[Home]:
    """Make a throw-away HOME."""
    with throw_away_home() as made:
        yield made


@pytest.fixture
def clock() -> FakeClock:
    """Make a clock that stands at 2026-03-03 12:00 UTC, a Tuesday."""
    return FakeClock(now=1_772_539_200.0)


@pytest.fixture
async def caller(home: Home, clock: FakeClock) -> AsyncIterator[Caller]:
    """Serve in this process and connect one client."""
    async with daemon_here(home, clock), AsyncClient(home.places.socket, name="test") as client:
        yield Caller(client, home, clock, home.project())


Make = Callable[..., Any]
