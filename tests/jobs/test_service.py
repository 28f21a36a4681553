"""Durable background jobs."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from memd.core import limits
from memd.core.events import JOB_DONE, JOB_PROGRESS, Event
from memd.jobs.service import (
    Runner,
    Running,
)
from memd.state.jobs import JobNotFoundError, JobState
from tests.jobs.bench import (
    Bench,
    LaterError,
    NeverError,
    at_work,
    blocked,
    fail_often,
    submit,
    until,
)

pytestmark = pytest.mark.anyio


async def test_a_job_runs_and_tells(bench: Bench, tmp_path: Path) -> None:
    """A submitted job runs, its progress and its end are published, and its result is kept."""
    link = str(tmp_path / "link")
    os.symlink("/m", link)
    async with at_work(bench.jobs()) as service:
        answer = await service.submit("extract", link, "s", {"name": "a"})
        assert answer.status == "accepted"
        ended = await service.wait(answer.job)
        assert (ended.state, ended.result) == (JobState.COMPLETED, {"name": "a"})
        assert (ended.lane, ended.session) == ("/m", "s")
        assert (ended.directory, ended.phase) == (link, "working")
        assert await service.wait(answer.job) == ended
        assert [job.id for job in await service.list(link)] == [answer.job]
        assert (await service.state()).waiting == 0
    facts = {"job": answer.job, "kind": "extract"}
    assert bench.sink.events == [
        Event(JOB_PROGRESS, link, {**facts, "phase": "working", "name": "a"}),
        Event(JOB_DONE, link, {**facts, "state": "completed", "result": {"name": "a"}}),
    ]


async def test_accepted_means_durable(bench: Bench) -> None:
    """What was accepted before a daemon ran, or was running when it stopped, is done later."""
    first = bench.jobs()
    queued = await submit(first, "queued", lane="/a")
    bench.gate("running")
    async with at_work(first):
        running = await submit(first, "running", lane="/b")
        await first.wait(queued)
        await until(lambda: "running" in bench.ran)
    left = await bench.jobs().list()
    assert {job.id: job.state for job in left} == {
        queued: JobState.COMPLETED,
        running: JobState.QUEUED,
    }
    assert left[0].attempts == 0
    bench.gates.clear()
    async with at_work(bench.jobs()) as second:
        assert (await second.wait(running)).result == {"name": "running"}


async def test_the_newest_request_of_a_session_counts(bench: Bench) -> None:
    """A waiting request is replaced by its session's newer one, in its place, and by no other."""
    bench.gate("now")
    async with at_work(bench.jobs()) as service:
        running = await submit(service, "now", "s1")
        await until(lambda: bench.ran == ["now"])
        old = await service.submit("extract", "/m", "s1", {"name": "old"})
        other = await submit(service, "other", "s2")
        new = await service.submit("extract", "/m", "s1", {"name": "new"})
        assert (old.status, new.status) == ("accepted", "coalesced")
        assert new.job == old.job != running
        bench.gates["now"].set()
        await service.wait(other)
    assert bench.ran == ["now", "new", "other"]


async def test_a_failure_that_may_pass_is_tried_again(bench: Bench) -> None:
    """A retryable failure is tried again after a pause in which the lane is free for others."""
    bench.failures["a"] = [LaterError()]
    async with at_work(bench.jobs()) as service:
        job = await submit(service, "a")
        other = await submit(service, "b")
        await service.wait(other)
        waiting = await service.get(job)
        assert waiting.state is JobState.QUEUED
        assert waiting.error == {
            "kind": "later",
            "message": "come back later",
            "why": "test",
            "times": 1,
        }
        await anyio.wait_all_tasks_blocked()
        bench.clock.advance(limits.RETRY_SECONDS)
        ended = await service.wait(job)
    assert (ended.state, ended.attempts, ended.error) == (JobState.COMPLETED, 2, None)
    assert bench.ran == ["a", "b", "a"]


async def test_three_same_failures_park_a_job(bench: Bench) -> None:
    """A job that fails three times the same way is parked; its pauses grow."""
    bench.failures["a"] = [LaterError() for _ in range(4)]
    async with at_work(bench.jobs()) as service:
        job = await submit(service, "a")
        await fail_often(bench, service, job, 3)
        ended = await service.wait(job)
    assert (ended.state, ended.attempts, ended.parked) == (JobState.FAILED, 3, True)
    assert ended.request == {"name": "a"}
    reported = bench.sink.events[-1].params["error"]
    assert (reported["kind"], reported["times"], reported["parked"]) == ("later", 3, True)


async def test_a_superseded_job_is_not_tried_again(bench: Bench) -> None:
    """A job whose session asked anew while it failed has failed: the newer request has it all."""
    bench.gate("old")
    bench.failures["old"] = [LaterError()]
    async with at_work(bench.jobs()) as service:
        old = await submit(service, "old", "s")
        await until(lambda: bench.ran == ["old"])
        new = await submit(service, "new", "s")
        bench.gates["old"].set()
        assert (await service.wait(old)).state is JobState.FAILED
        assert (await service.wait(new)).state is JobState.COMPLETED
    assert bench.ran == ["old", "new"]


async def test_other_failures_end_a_job_at_once(bench: Bench) -> None:
    """A failure that cannot pass ends its job, and a bug in a runner ends no other job."""
    bench.failures["a"] = [NeverError()]
    bench.failures["b"] = [ZeroDivisionError("secret detail")]
    async with at_work(bench.jobs()) as service:
        never = await service.wait(await submit(service, "a"))
        bug = await service.wait(await submit(service, "b"))
        fine = await service.wait(await submit(service, "c"))
    assert never.error == {"kind": "never", "message": "this cannot work"}
    assert bug.error is not None
    assert (bug.error["kind"], bug.error["id"]) == ("unexpected", "e1")
    assert "secret" not in str(bug.error)
    assert isinstance(bench.unexpected[0], ZeroDivisionError)
    assert fine.state is JobState.COMPLETED


async def test_what_is_under_way_is_known_by_kind_and_lane(bench: Bench) -> None:
    """A job that waits or runs is found by what it is and where, one that has ended is not."""
    bench.gate("running")
    async with at_work(bench.jobs()) as service:
        running = await submit(service, "running", lane="/a")
        await submit(service, "waiting", lane="/a")
        await until(lambda: bench.ran == ["running"])
        assert await service.under_way("extract", "/a") == running
        assert await service.under_way("dream", "/a") is None
        assert await service.under_way("extract", "/b") is None
        bench.gates["running"].set()
        await service.wait(running)
        assert await service.under_way("extract", "/a") != running


async def test_cancel_kills_what_waits_and_what_runs(bench: Bench) -> None:
    """A queued job never runs once cancelled, a running one ends at once; both are killed."""
    bench.gate("running")
    async with at_work(bench.jobs()) as service:
        running = await submit(service, "running")
        waiting = await submit(service, "waiting")
        await until(lambda: bench.ran == ["running"])
        assert (await service.get(running)).phase == "working"
        assert await service.cancel(waiting)
        assert await service.cancel(running)
        assert not await service.cancel(running)
        assert (await service.get(running)).state is JobState.KILLED
        assert (await service.wait(waiting)).state is JobState.KILLED
        with pytest.raises(JobNotFoundError):
            await service.cancel("j99")
    assert bench.ran == ["running"]
    assert [event.params["state"] for event in bench.sink.events if event.topic == JOB_DONE] == [
        "killed",
        "killed",
    ]


async def test_a_job_killed_in_its_pause_is_not_tried_again(bench: Bench) -> None:
    """A failed job that waits for its next attempt can be killed."""
    bench.failures["a"] = [LaterError()]
    async with at_work(bench.jobs()) as service:
        job = await submit(service, "a")
        await until(lambda: bench.ran == ["a"])
        await blocked(service, job)
        assert await service.cancel(job)
        bench.clock.advance(limits.RETRY_SECONDS)
        await anyio.wait_all_tasks_blocked()
        assert (await service.get(job)).state is JobState.KILLED
    assert bench.ran == ["a"]


def _stubborn(end: Callable[[], dict[str, Any]], started: anyio.Event) -> Runner:
    async def deaf(_: Running) -> dict[str, Any]:
        started.set()
        with suppress(anyio.get_cancelled_exc_class()):
            await anyio.sleep_forever()
        return end()

    return deaf


def _answer() -> dict[str, Any]:
    return {"done": True}


def _fail() -> dict[str, Any]:
    raise LaterError


@pytest.mark.parametrize(
    ("end", "state"), [(_answer, JobState.COMPLETED), (_fail, JobState.KILLED)]
)
async def test_a_job_that_outruns_its_cancellation(
    bench: Bench, end: Callable[[], dict[str, Any]], state: JobState
) -> None:
    """A cancelled job that still finished its work completed; one that failed then was killed."""
    started = anyio.Event()
    async with at_work(bench.jobs(runner=_stubborn(end, started))) as service:
        job = await submit(service, "a")
        await started.wait()
        assert await service.cancel(job) is (state is JobState.KILLED)
        assert (await service.get(job)).state is state


async def test_drain_waits_as_long_as_it_may(bench: Bench) -> None:
    """Draining ends when all is done or the time is up, and says what is left."""
    bench.gate("slow")
    async with at_work(bench.jobs()) as service:
        await submit(service, "slow")
        await submit(service, "next")
        left: list[int] = []

        async def drain() -> None:
            left.append(await service.drain(60.0))

        async with anyio.create_task_group() as group:
            group.start_soon(drain)
            await until(lambda: bench.ran == ["slow"])
            await anyio.wait_all_tasks_blocked()
            assert left == []
            bench.clock.advance(60.0)
        assert left == [2]
        bench.gates["slow"].set()
        assert await service.drain(60.0) == 0


async def test_an_end_that_cannot_be_written_is_tried_again(bench: Bench) -> None:
    """While the state file fails, a finished job keeps its lane and its end is not lost."""
    bench.gate("a")
    async with at_work(bench.jobs()) as service:
        job = await submit(service, "a")
        await until(lambda: bench.ran == ["a"])
        with bench.database.transaction() as cursor:
            cursor.execute("ALTER TABLE jobs RENAME TO away")
        bench.gates["a"].set()
        await until(lambda: len(bench.unexpected) == 1)
        await anyio.wait_all_tasks_blocked()
        assert (await service.state()).waiting == 1
        with bench.database.transaction() as cursor:
            cursor.execute("ALTER TABLE away RENAME TO jobs")
        bench.clock.advance(1.0)
        ended = await service.wait(job)
    assert ended.result == {"name": "a"}


async def test_a_run_that_failed_can_be_followed_by_another(bench: Bench) -> None:
    """After a failure of the service itself the jobs that ran are run again, each to its end."""
    service, publish, jobs = bench.jobs(), bench.sink.publish, list[str]()
    bench.gate("b")

    def fail_once(event: Event) -> None:
        publish(event)
        if event.topic == JOB_DONE:
            bench.sink.publish = publish  # type: ignore[method-assign]
            raise ValueError

    async def run_until_failure() -> None:
        async with at_work(service):
            jobs.append(await submit(service, "b", lane="/b"))
            await until(lambda: bench.ran == ["b"])
            bench.sink.publish = fail_once  # type: ignore[method-assign]
            jobs.append(await submit(service, "a", lane="/a"))
            await anyio.sleep_forever()

    with pytest.raises(ExceptionGroup):
        await run_until_failure()
    bench.gate("b").set()
    async with at_work(service):
        ends = [(await service.wait(job)).state for job in jobs]
    assert ends == [JobState.COMPLETED, JobState.COMPLETED]
    assert sorted(bench.ran) == ["a", "b", "b"]
