"""What jobs do after failures, in a pause, and beside another daemon."""

import anyio
import pytest

from memd.base import limits
from memd.jobs.service import Jobs
from memd.state.jobs import TRIES, JobState
from tests.jobs.bench import (
    Bench,
    LaterError,
    ModelDownError,
    at_work,
    blocked,
    fail_often,
    submit,
    until,
)

pytestmark = pytest.mark.anyio


async def _park(bench: Bench, service: Jobs, name: str, session: str = "") -> str:
    bench.failures[name] = [LaterError() for _ in range(TRIES)]
    job = await submit(service, name, session)
    await fail_often(bench, service, job, TRIES)
    assert (await service.wait(job)).parked
    return job


async def test_a_parked_job_is_listed(bench: Bench) -> None:
    """A parked job is listed, also after a restart; no other job is."""
    async with at_work(bench.jobs()) as service:
        job = await _park(bench, service, "a")
        await service.wait(await submit(service, "b"))
    async with at_work(bench.jobs()) as service:
        assert [results.id for results in service.list(parked=True)] == [job]


async def test_a_newer_request_takes_a_parked_jobs_place(bench: Bench) -> None:
    """Once its session asks anew a job is parked no more; another session's is."""
    async with at_work(bench.jobs()) as service:
        old = await _park(bench, service, "old", "s1")
        other = await _park(bench, service, "other", "s2")
        new = await submit(service, "new", "s1")
        await service.wait(new)
        assert not service.get(old).parked
        assert [results.id for results in service.list(parked=True)] == [other]


async def test_a_model_that_fails_is_left_alone_for_a_while(bench: Bench) -> None:
    """After three failures a directory's jobs go without, longer each time, until one works."""
    bench.failures["a"] = [ModelDownError(number) for number in range(9)]
    async with at_work(bench.jobs()) as service:
        job = await submit(service, "a")
        await fail_often(bench, service, job, 3)
        ended = await service.wait(job)
        assert ended.parked
        state = await service.state()
    assert [(row.directory, row.failures) for row in state.breakers] == [("/m", 3)]
    assert state.breakers[0].why == "the model is down (request req_2)"
    assert state.breakers[0].until == bench.clock.now() + limits.BREAKER_SECONDS
    bench.models.clear()
    async with at_work(bench.jobs()) as service:
        await service.wait(await submit(service, "b"))
        await service.wait(await submit(service, "c", lane="/other"))
        assert bench.models == [False, True]
        bench.clock.advance(limits.BREAKER_SECONDS)
        probe = await submit(service, "a", "later")
        await fail_often(bench, service, probe, 1)
        await blocked(service, probe)
        again = (await service.state()).breakers[0]
        assert (again.failures, again.until - again.since) == (4, 2 * limits.BREAKER_SECONDS)
        bench.failures.clear()
        bench.turns = 2
        bench.clock.advance(2 * limits.BREAKER_SECONDS)
        await service.wait(probe)
        assert bench.models[-1]
        assert (await service.state()).breakers == ()
    async with at_work(bench.jobs()) as service:
        assert (await service.state()).breakers == ()


async def test_a_pause_outlives_the_daemon(bench: Bench) -> None:
    """In a pause jobs are taken and kept, none starts, and what runs ends; resume starts them."""
    gate = bench.gate("running")
    async with at_work(bench.jobs()) as service:
        running = await submit(service, "running")
        await until(lambda: bench.ran == ["running"])
        assert (await service.pause()).paused_since == bench.clock.now()
        gate.set()
        assert (await service.wait(running)).state is JobState.COMPLETED
        waiting = await submit(service, "waiting", "s")
        await anyio.wait_all_tasks_blocked()
        assert await service.drain(60.0) == 1
    bench.clock.advance(10.0)
    async with at_work(bench.jobs()) as service:
        again = await service.submit("extract", "/m", "s", {"name": "newer"})
        assert (again.job, again.status) == (waiting, "coalesced")
        await anyio.wait_all_tasks_blocked()
        assert (await service.pause()).paused_since == bench.clock.now() - 10.0
        assert bench.ran == ["running"]
        assert (await service.resume()).paused_since is None
        await service.wait(waiting)
    assert bench.ran == ["running", "newer"]


async def test_a_pause_can_end_what_runs(bench: Bench) -> None:
    """With now a running job goes back into the queue, its attempt not counted, and runs later."""
    bench.gate("a")
    async with at_work(bench.jobs()) as service:
        job = await submit(service, "a")
        await until(lambda: bench.ran == ["a"])
        await service.pause(now=True)
        back = service.get(job)
        assert (back.state, back.attempts, back.holder) == (JobState.QUEUED, 0, None)
        assert (await service.state()).waiting == 1
        bench.gates.clear()
        await service.resume()
        assert (await service.wait(job)).state is JobState.COMPLETED
    assert bench.ran == ["a", "a"]
