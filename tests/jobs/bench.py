"""Jobs over a real state file, a fake clock, and runners that a test steers."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio

from memd.base import limits
from memd.base.errors import MemdError
from memd.base.events import Event, EventSink
from memd.jobs.service import (
    Jobs,
    Runner,
    Running,
)
from memd.state.database import Database
from memd.state.jobs import JobState, JobTable
from tests.support.clock import FakeClock


class LaterError(MemdError):
    """It may work another time."""

    kind = "later"
    retryable = True

    def __init__(self) -> None:
        super().__init__("come back later", why="test")


class ModelDownError(MemdError):
    """A model does not answer; each time the sentence has another id in it."""

    kind = "model_down"
    retryable = True
    of_model = True

    def __init__(self, number: int) -> None:
        super().__init__(f"the model is down (request req_{number})")


class NeverError(MemdError):
    """It cannot work."""

    kind = "never"

    def __init__(self) -> None:
        super().__init__("this cannot work")


class Sink:
    """Keeps what was published."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def publish(self, event: Event) -> None:
        """Keep an event."""
        self.events.append(event)


class Steered(Jobs):
    """Jobs with the runners that a test gives them."""

    def __init__(
        self,
        table: JobTable,
        clock: FakeClock,
        sink: EventSink,
        runners: Mapping[str, Runner],
        *,
        on_unexpected: Callable[[BaseException], str],
        at_once: int = 2,
    ) -> None:
        super().__init__(table, clock, sink, on_unexpected=on_unexpected, at_once=at_once)
        self.runners = runners


class Bench:
    """Jobs over a real state file, a fake clock, and runners that a test steers."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.clock = FakeClock(now=100.0)
        self.sink = Sink()
        self.unexpected: list[BaseException] = []
        self.ran: list[str] = []
        self.gates: dict[str, anyio.Event] = {}
        self.failures: dict[str, list[BaseException]] = {}
        self.turns = 0  # how often a model was asked by jobs that ended well
        self.models: list[bool] = []  # whether each run might ask one

    def jobs(
        self,
        *,
        at_once: int = 2,
        runner: Runner | None = None,
    ) -> Steered:
        """Return jobs as a new daemon makes them."""
        return Steered(
            JobTable(self.database),
            self.clock,
            self.sink,
            {"extract": runner or self.runner, "dream": self.runner},
            on_unexpected=self._note,
            at_once=at_once,
        )

    def gate(self, name: str) -> anyio.Event:
        """Return what a job of this name waits for, if it runs after this."""
        return self.gates.setdefault(name, anyio.Event())

    async def runner(self, running: Running) -> dict[str, Any]:
        """Run a job as the test wants it."""
        name = str(running.job.request["name"])
        self.models.append(running.model_allowed)
        self.ran.append(name)
        running.progress("working", name=name)
        if name in self.gates:
            await self.gates[name].wait()
        if self.failures.get(name):
            raise self.failures[name].pop(0)
        return {"name": name} | ({"turns": self.turns} if self.turns else {})

    def ran_times(self, count: int) -> bool:
        """Whether so many runs began."""
        return len(self.ran) == count

    def _note(self, error: BaseException) -> str:
        self.unexpected.append(error)
        return f"e{len(self.unexpected)}"


@asynccontextmanager
async def at_work(service: Steered) -> AsyncIterator[Jobs]:
    """Let jobs run for the length of the block."""
    async with anyio.create_task_group() as group:
        await group.start(service.run, service.runners)
        yield service
        group.cancel_scope.cancel()


async def submit(service: Jobs, name: str, session: str = "", lane: str = "/m") -> str:
    """Ask for an extraction and return its job."""
    answer = await service.submit("extract", lane, session or name, {"name": name})
    return answer.job


async def until(condition: Callable[[], bool]) -> None:
    """Let other tasks and threads go on until something holds."""
    with anyio.fail_after(60):
        while not condition():
            await anyio.lowlevel.checkpoint()


async def fail_often(bench: Bench, service: Jobs, job: str, times: int) -> None:
    """See a job fail so often, each time after the pause that is due."""
    before = len(bench.ran)
    for attempt in range(1, times + 1):
        await until(partial(bench.ran_times, before + attempt))
        if attempt < times:
            await blocked(service, job)
            pause = limits.RETRY_SECONDS * limits.RETRY_GROWTH ** (attempt - 1)
            bench.clock.advance(pause - 0.1)
            await blocked(service, job)
            assert len(bench.ran) == before + attempt
            bench.clock.advance(0.1)


async def blocked(service: Jobs, job: str) -> None:
    """Wait until a failed attempt is written down and everything waits for the clock."""
    with anyio.fail_after(60):
        while service.get(job).state is not JobState.QUEUED:
            await anyio.lowlevel.checkpoint()
    await anyio.wait_all_tasks_blocked()
