"""Background services: what follows from a failure."""

import io
import json
from itertools import pairwise

import anyio
import pytest
from anyio.abc import TaskStatus

from memd.base.errors import MemdError
from memd.daemon.background import Background
from memd.daemon.log import Log
from tests.support.clock import FakeClock

pytestmark = pytest.mark.anyio
_LONG_SECONDS = 1000.0  # longer than any pause


class NotYetError(MemdError):
    """It works another time."""

    def __init__(self) -> None:
        super().__init__("not yet")


class Failing:
    """A service that fails as often as it is told to, and then runs until cancelled."""

    def __init__(self, failures: int, error: Exception) -> None:
        self.failures = failures
        self.error = error
        self.starts = 0

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Fail, or report that the service is ready."""
        self.starts += 1
        if self.starts <= self.failures:
            raise self.error
        task_status.started()
        await anyio.sleep_forever()


async def test_a_failed_service_is_started_again_after_growing_pauses() -> None:
    """Each failure is logged, the pause doubles up to five minutes, and other services go on."""
    clock, stream, failing = FakeClock(), io.StringIO(), dict[str, str]()
    other, service = Failing(0, OSError()), Failing(12, ValueError("delay"))
    async with anyio.create_task_group() as group:
        background = Background(group, clock, Log(stream), failing)
        await background.start("other", other.run)
        await background.start("poor", service.run)
        for starts in range(1, 13):
            await anyio.wait_all_tasks_blocked()
            assert (service.starts, list(failing)) == (starts, ["poor"])
            pause = min(2.0 ** (starts - 1), 300.0)
            clock.advance(pause - 0.1)
            await anyio.wait_all_tasks_blocked()
            assert service.starts == starts
            clock.advance(0.2)
        await anyio.wait_all_tasks_blocked()
        assert (service.starts, other.starts, failing) == (13, 1, {})
        group.cancel_scope.cancel()
    entries = [json.loads(line) for line in stream.getvalue().splitlines()]
    faults = [entry["id"] for entry in entries if entry["event"] == "fault"]
    warnings = [entry["detail"] for entry in entries if entry["event"] == "service failed"]
    assert len(faults) == len(warnings) == 12
    assert all(fault in warning for fault, warning in zip(faults, warnings, strict=True))


async def test_a_service_that_returns_is_not_started_again() -> None:
    """A service may end, and an expected error counts as a failure."""
    clock, ran = FakeClock(), list[str]()

    async def end() -> None:
        ran.append("end")

    async def refuse() -> None:
        ran.append("refuse")
        if ran.count("refuse") == 1:
            raise NotYetError

    async with anyio.create_task_group() as group:
        background = Background(group, clock, Log(io.StringIO()), {})
        background.start_soon("end", end)
        background.start_soon("refuse", refuse)
        await anyio.wait_all_tasks_blocked()
        clock.advance(1.0)
    assert sorted(ran) == ["end", "refuse", "refuse"]


async def test_a_service_that_ran_for_long_begins_with_the_shortest_pause() -> None:
    """The pause grows only for failures that follow each other."""
    clock, failing, starts = FakeClock(), dict[str, str](), list[float]()

    async def fail_late() -> None:
        starts.append(clock.monotonic())
        await clock.sleep(_LONG_SECONDS)
        raise ValueError

    async with anyio.create_task_group() as group:
        Background(group, clock, Log(io.StringIO()), failing).start_soon("late", fail_late)
        for _ in range(3):
            await anyio.wait_all_tasks_blocked()
            clock.advance(_LONG_SECONDS)
            await anyio.wait_all_tasks_blocked()
            clock.advance(1.0)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    assert [later - earlier for earlier, later in pairwise(starts)] == [1001.0, 1001.0, 1001.0]
