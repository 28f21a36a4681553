"""Background work lets prompts go first."""

import anyio
import pytest
from anyio import to_thread

from memd.base.yielding import checking, yield_to_requests, yielding


def test_work_can_be_ended_where_it_gives_way() -> None:
    """What is minded comes first and may end the work; giving way is as it was otherwise."""
    calls: list[str] = []

    def end() -> None:
        raise ZeroDivisionError

    with yielding(lambda: calls.append("way")):
        with checking(lambda: calls.append("first")):
            yield_to_requests()
        with checking(end), pytest.raises(ZeroDivisionError):
            yield_to_requests()
        yield_to_requests()
    assert calls == ["first", "way", "way"]


@pytest.mark.anyio
async def test_it_travels_into_threads_and_not_into_other_tasks() -> None:
    """A yielding job's threads give way; a prompt that runs beside it does not."""
    calls: list[str] = []
    begun, ended = anyio.Event(), anyio.Event()

    async def job() -> None:
        with yielding(lambda: calls.append("job")):
            await to_thread.run_sync(yield_to_requests)
            begun.set()
            await ended.wait()

    async with anyio.create_task_group() as group:
        group.start_soon(job)
        await begun.wait()
        await to_thread.run_sync(yield_to_requests)
        ended.set()
    assert calls == ["job"]
