"""Background work lets prompts go first."""

import anyio
import pytest
from anyio import to_thread

from memd.core.courtesy import give_way, minding, polite


def test_nobody_waits_unasked() -> None:
    """Outside of polite work giving way does nothing; inside it calls what it was told to."""
    calls: list[int] = []
    give_way()
    with polite(lambda: calls.append(1)):
        give_way()
        with polite(lambda: calls.append(2)):
            give_way()
        give_way()
    give_way()
    assert calls == [1, 2, 1]


def test_work_can_be_ended_where_it_gives_way() -> None:
    """What is minded comes first and may end the work; giving way is as it was otherwise."""
    calls: list[str] = []

    def end() -> None:
        raise ZeroDivisionError

    with polite(lambda: calls.append("way")):
        with minding(lambda: calls.append("first")):
            give_way()
        with minding(end), pytest.raises(ZeroDivisionError):
            give_way()
        give_way()
    assert calls == ["first", "way", "way"]


@pytest.mark.anyio
async def test_it_travels_into_threads_and_not_into_other_tasks() -> None:
    """A polite job's threads give way; a prompt that runs beside it does not."""
    calls: list[str] = []
    begun, ended = anyio.Event(), anyio.Event()

    async def job() -> None:
        with polite(lambda: calls.append("job")):
            await to_thread.run_sync(give_way)
            begun.set()
            await ended.wait()

    async with anyio.create_task_group() as group:
        group.start_soon(job)
        await begun.wait()
        await to_thread.run_sync(give_way)
        ended.set()
    assert calls == ["job"]
