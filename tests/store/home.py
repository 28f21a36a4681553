"""A store on a throw-away home, for the tests of the store as the rooms see it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio

from memd.base import limits
from memd.base.clock import Clock
from memd.base.events import Event
from memd.base.values import Actor, Draft, FileEdit, Provenance
from memd.files.disk import Disk
from memd.state.database import Database, open_database
from memd.state.schemas import SCHEMAS
from tests.stores import store_in
from tests.support.clock import FakeClock

BY = Provenance(Actor.CLIENT, client="test", session="s1")


class Events:
    """An event sink that keeps what it got."""

    def __init__(self) -> None:
        self.got: list[Event] = []
        self._more = anyio.Event()

    def publish(self, event: Event) -> None:
        """Keep an event."""
        self.got.append(event)
        self._more.set()

    async def wait(self, count: int) -> Event:
        """Wait until there were so many events; return the last of them."""
        with anyio.fail_after(60):
            while len(self.got) < count:
                self._more = anyio.Event()
                await self._more.wait()
        return self.got[count - 1]


class Home:
    """A store on a throw-away home, its events, and a memory directory reached by a link."""

    def __init__(
        self,
        root: Path,
        database: Database,
        disk: Disk | None = None,
        clock: Clock | None = None,
        headers: str = "",
    ) -> None:
        self.events = Events()
        self.clock = FakeClock()
        self.real = root / "real"
        self.directory = str(root / "link")
        if not os.path.lexists(self.directory):
            os.symlink(self.real, self.directory)
        self.database = database
        self.store = store_in(
            root,
            database,
            clock or self.clock,
            events=self.events,
            home=str(root / "home"),
            disk=disk,
            headers=headers,
        )

    async def write(self, path: str, content: bytes | None, request: str = "") -> str | None:
        """Write or delete one file; return the change's id."""
        edit = FileEdit(path, content)
        result = await self.store.commit(
            self.directory, lambda _: Draft((edit,)), BY, request_id=request
        )
        return result.change

    async def inspect(self) -> str | None:
        """Look at what others did; return the change's id, if any."""
        real = str(self.real)
        async with self.store._lock(real):
            return await self.store._detect(real)

    async def write_after_waiting(self, path: str, content: bytes) -> None:
        """Write one file, and let the time pass that a commit gives a program which writes."""
        done = anyio.Event()

        async def write() -> None:
            await self.write(path, content)
            done.set()

        async with anyio.create_task_group() as group:
            group.start_soon(write)
            while not done.is_set():
                if self.clock.sleepers:
                    self.clock.advance(limits.WRITER_SECONDS)
                await anyio.lowlevel.checkpoint()

    async def until_it_waits(self) -> None:
        """Return once something waits for the clock."""
        with anyio.fail_after(60):
            while not self.clock.sleepers:
                await anyio.lowlevel.checkpoint()


@contextmanager
def state(root: Path) -> Iterator[Database]:
    """Open the state file below a folder."""
    database = open_database(str(root / "state.db"), SCHEMAS)
    try:
        yield database
    finally:
        database.close()
