"""One client of a daemon in this process, with short words for what tests ask often.

The fixtures are those of each folder whose ``conftest`` imports them.
"""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from memd.base.errors import MemdError
from memd.client.aio import AsyncClient
from tests.support.clock import FakeClock
from tests.support.daemon import Home, daemon_here, throw_away_home

PARTS = {
    "name": "test-policy",
    "description": "Integration tests hit a real database",
    "type": "feedback",
    "body": "Never mock the database in integration tests.",
}


@dataclass(frozen=True)
class Caller:
    """A client, the home it works in, the daemon's clock, and a project."""

    client: AsyncClient
    home: Home
    clock: FakeClock
    cwd: str

    async def call(self, method: str, **params: Any) -> Any:
        """Call a method about the project."""
        return await self.client.call(method, {"cwd": self.cwd, **params})

    async def plain(self, method: str, **params: Any) -> Any:
        """Call a method with just these parameters."""
        return await self.client.call(method, params)

    async def write(self, path: str = "feedback_tests.md", **changes: Any) -> Any:
        """Write one memory from its parts."""
        return await self.call("memory.write", path=path, **(PARTS | changes))

    async def refused(self, method: str, **params: Any) -> MemdError:
        """Return the error that a call about the project ends with."""
        with pytest.raises(MemdError) as caught:
            await self.call(method, **params)
        return caught.value

    async def folder(self) -> Path:
        """Return the project's memory directory."""
        listed = await self.call("memory.list")
        return Path(listed["memory_dir"])


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
