"""Messages over a real state file, a clock that is moved by hand, and agents in one project."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from memd.core.events import Event
from memd.core.settings import MessagesSettings, Settings
from memd.messages.service import LeaseHolder, Messages, Register, Speaker
from memd.messages.values import Received, Registration, SendRequest, Sent
from memd.state.database import open_database
from memd.state.tables import SCHEMAS, AgentTable, MessageTable
from tests.support.clock import FakeClock

ROOT = "/home/someone/project"


@dataclass
class Listener:
    """What subscribers are told."""

    events: list[Event] = field(default_factory=list)

    def publish(self, event: Event) -> None:
        """Note an event."""
        self.events.append(event)


@dataclass
class Mailroom:
    """Messages, with short words for what tests ask often."""

    messages: Messages
    clock: FakeClock
    listener: Listener
    keys: dict[str, str] = field(default_factory=dict)

    async def register(self, name: str, *, parent: str = "", root: str = ROOT) -> int:
        """Register an agent, whose session has its name; return its id."""
        request = Registration(
            root=root,
            directory=f"{root}/memory",
            name=name,
            client="test",
            session=name,
            parent=parent,
            key=self.keys[parent] if parent else "",
        )
        self.keys[name] = (await self.messages.register_agent(request)).key
        return (await self.messages.find_speaker(Speaker(self.keys[name]))).id

    async def two(self) -> None:
        """Register ann and ben."""
        await self.register("ann")
        await self.register("ben")

    async def send(self, sender: str, to: str, body: str = "text", **more: Any) -> Sent:
        """Send a message of an agent, "" for who is not registered."""
        speaker = Speaker(self.keys[sender]) if sender else None
        return await self.messages.send(SendRequest(to=to, body=body, root=ROOT, **more), speaker)

    async def receive(
        self, name: str, wait: float = 0.0, limit: int = 20, holder: LeaseHolder | None = None
    ) -> Received:
        """Lease an agent's next messages."""
        holder = holder or LeaseHolder(name, lambda: True)
        return await self.messages.receive(Speaker(self.keys[name]), holder, limit, wait)

    async def bodies(self, name: str, limit: int = 20) -> list[str]:
        """Lease an agent's next messages and return their bodies."""
        return [each.body for each in (await self.receive(name, limit=limit)).messages]

    async def acknowledge(self, name: str, ids: Sequence[str]) -> int:
        """Acknowledge an agent's messages."""
        return await self.messages.acknowledge(Speaker(self.keys[name]), ids)

    async def state(self, message: str) -> str:
        """Return a message's state."""
        return (await self.messages.status(message)).state

    async def pass_time(self, seconds: float) -> None:
        """Move the clock and let the timer do what is due."""
        await anyio.wait_all_tasks_blocked()
        self.clock.advance(seconds)
        await anyio.wait_all_tasks_blocked()
        await self.messages.forget()  # waits for its turn behind the timer


@asynccontextmanager
async def mailroom(
    path: Path, clock: FakeClock | None = None, **options: Any
) -> AsyncIterator[Mailroom]:
    """Serve messages from a state file until the end of the block, as a daemon does."""
    clock = clock or FakeClock()
    database = open_database(str(path / "state.db"), SCHEMAS)
    settings = Settings(messages=MessagesSettings(**options))
    register = Register(AgentTable(database), lambda _: None, clock.now, clock.monotonic)
    listener = Listener()
    messages = Messages(
        register, MessageTable(database), clock, listener, settings=lambda _: settings
    )
    try:
        async with anyio.create_task_group() as group:
            await group.start(messages.run)
            yield Mailroom(messages, clock, listener)
            group.cancel_scope.cancel()
    finally:
        database.close()
