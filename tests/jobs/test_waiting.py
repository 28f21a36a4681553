"""Who waits for jobs on a disk that refuses."""

import math

import anyio
import pytest

from memd.base.errors import MemdError
from memd.state.database import StateUnusableError
from memd.state.jobs import JobState
from tests.jobs.bench import Bench, at_work, blocked, submit, until

pytestmark = pytest.mark.anyio


class FullError(MemdError):
    """The disk has no room."""

    kind = "full"
    retryable = True
    of_disk = True

    def __init__(self) -> None:
        super().__init__("there is no room")


async def test_a_wait_for_a_job_without_room_ends(bench: Bench) -> None:
    """While a job is to be tried again for want of room, each wait ends; then it is done."""
    bench.failures["a"] = [FullError()]
    async with at_work(bench.jobs()) as service:
        job = await submit(service, "a")
        await blocked(service, job)
        for _ in range(2):
            with anyio.fail_after(60), pytest.raises(FullError):
                await service.wait(job)
        bench.clock.advance(math.inf)
        with anyio.fail_after(60):
            assert (await service.wait(job)).state is JobState.COMPLETED


async def test_waits_end_while_the_state_file_takes_nothing(bench: Bench) -> None:
    """A job whose end cannot be written keeps nobody waiting, nor do those behind it."""
    bench.gate("a")
    async with at_work(bench.jobs(at_once=1)) as service:
        first, second = await submit(service, "a"), await submit(service, "b")
        await until(lambda: bench.ran == ["a"])
        with bench.database.transaction() as cursor:
            cursor.execute(
                "CREATE TRIGGER full BEFORE UPDATE ON jobs BEGIN SELECT raise(ABORT, 'full'); END"
            )
        ended: list[str] = []

        async def wait(job: str) -> None:
            with pytest.raises(StateUnusableError):
                await service.wait(job)
            ended.append(job)

        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                for job in (first, second):
                    group.start_soon(wait, job)
                await anyio.wait_all_tasks_blocked()
                bench.gates["a"].set()
            await wait(first)
            with pytest.raises(StateUnusableError):
                await service.pause(now=True)
        assert sorted(ended) == [first, first, second]
        with bench.database.transaction() as cursor:
            cursor.execute("DROP TRIGGER full")
        await service.resume()
        bench.clock.advance(10.0)
        with anyio.fail_after(60):
            assert (await service.wait(second)).state is JobState.COMPLETED
