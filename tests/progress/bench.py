"""Sub-agents with transcripts in a folder, and who hears of their progress."""

import json
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from msgspec.structs import replace

from memd.core.agents import Agent, AgentState
from memd.core.settings import Settings
from memd.model.port import Model
from memd.progress.fork import SECONDS
from memd.progress.service import ProgressLines
from tests.stores import Sink
from tests.support.clock import FakeClock

CACHE: dict[str, Any] = {
    "system": "You are a coder.",
    "tools": [{"name": "Bash", "input_schema": {"type": "object"}}],
    "model": "claude-opus-5-5",
    "messages": [{"role": "user", "content": "hello"}],
}


class Crew:
    """The agents that are there; the first coordinates, the others are its sub-agents."""

    def __init__(self, folder: Path, size: int = 1) -> None:
        self.folder = folder
        lead = Agent(
            1, "/p", "/m", "lead", session="s", transcript=str(folder / "s.jsonl"), client="test"
        )
        children = [
            replace(lead, id=n + 2, name=f"helper{n}", parent=1, child=f"c{n}", transcript="")
            for n in range(size)
        ]
        self.crew = {agent.id: agent for agent in (lead, *children)}
        self.states: dict[int, AgentState] = {}

    def agents(self, root: str | None, /) -> tuple[Agent, ...]:
        """Return all of them."""
        return tuple(each for each in self.crew.values() if root in (None, each.root))

    def get(self, agent_id: int, /) -> Agent | None:
        """Return one by its id."""
        return self.crew.get(agent_id)

    def state(self, agent: Agent, /) -> AgentState:
        """Return the state that was set."""
        return self.states.get(agent.id, AgentState.LIVE)

    def address(self, agent: Agent, _root: str, /) -> str:
        """Return a name behind the parent's."""
        return f"lead/{agent.name}" if agent.parent else agent.name

    def does(
        self, name: str, member: str = "file_path", text: str = "/p/a.py", who: int = 0
    ) -> None:
        """Have a sub-agent call a tool: its transcript grows by a line."""
        folder = self.folder / "s" / "subagents"
        folder.mkdir(parents=True, exist_ok=True)
        block = {"type": "tool_use", "id": "t", "name": name, "input": {member: text}}
        message = {"role": "assistant", "content": [block]}
        line = {"type": "assistant", "uuid": "u", "isSidechain": True, "message": message}
        with (folder / f"agent-c{who}.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


class SettledModel:
    """A model that the settings name, whatever it is."""

    def __init__(self, model: Model | None) -> None:
        self.model = model

    def for_(self, _settings: Settings, /) -> Model | None:
        """Return it."""
        return self.model

    def name(self, _settings: Settings, kind: str, /) -> str:
        """Return its name."""
        return f"small-{kind}"


class TimerClock(FakeClock):
    """A fake clock that knows whether the timer of 30 s runs; a request has five."""

    timer = False

    async def sleep(self, seconds: float) -> None:
        """Return once the clock was advanced so far."""
        if seconds <= SECONDS:
            await super().sleep(seconds)
            return
        self.timer = True
        try:
            await super().sleep(seconds)
        finally:
            self.timer = False


class ProgressBench:
    """Lines of progress over a fake clock; ``listens`` says whether somebody subscribed."""

    def __init__(self, crew: Crew, model: Model | None = None) -> None:
        self.crew = crew
        self.clock = TimerClock()
        self.sink = Sink()
        self.listens = True
        self.settings = Settings()
        self.progress = ProgressLines(
            crew,
            self.clock,
            SettledModel(model),
            self.sink,
            listening=lambda: self.listens,
            settings=lambda _root: self.settings,
            make_lock=threading.Lock,
        )

    @property
    def lines(self) -> list[str]:
        """The lines that were published."""
        return [event.params["line"] for event in self.sink.events]

    @asynccontextmanager
    async def running(self, until: Callable[[], bool] | None = None) -> AsyncIterator[None]:
        """Run for the length of the block, with somebody who has just subscribed."""
        async with anyio.create_task_group() as group:
            group.start_soon(self.progress.run)
            self.progress.subscribed()
            await self.rest(until=until)
            yield
            group.cancel_scope.cancel()

    async def rest(self, seconds: float = 0.0, until: Callable[[], bool] | None = None) -> None:
        """Let time pass; wait until a round is over or nobody listens, or ``until`` holds."""
        self.clock.advance(seconds)
        over = until or (lambda: self.clock.timer or not self.listens)
        with anyio.fail_after(60):
            await anyio.wait_all_tasks_blocked()
            while not over():
                await anyio.to_thread.run_sync(lambda: None)
                await anyio.wait_all_tasks_blocked()
