"""Whether somebody waits for a prompt."""

import threading

import anyio
import pytest
from anyio import from_thread, to_thread

from memd.base.threads import in_thread
from memd.jobs.priority import RequestPriority


def test_background_work_waits_for_the_last_prompt() -> None:
    """While prompts are in flight a thread that gives way waits; with the last one it goes on."""
    priority = RequestPriority()
    priority.yield_to_requests()
    requested, went = threading.Event(), threading.Event()

    def work() -> None:
        requested.set()
        while not went.is_set():
            priority.yield_to_requests()
            if not priority._prompts:
                went.set()

    with priority.prompt():
        with priority.prompt():
            thread = threading.Thread(target=work)
            thread.start()
            requested.wait()
        assert not went.is_set()
    assert went.wait(60)
    thread.join()


def test_prompts_without_end_do_not_stop_the_background() -> None:
    """One wait is short, however long a prompt takes."""
    priority = RequestPriority()
    with priority.prompt():
        priority.yield_to_requests()
        priority.yield_to_requests()


def test_a_prompt_that_waits_for_others_is_left_out() -> None:
    """While it waits for a model the background goes on; outside of prompts nothing changes."""
    priority = RequestPriority()
    with priority.uncounted():
        assert priority._prompts == 0
    with priority.prompt():
        assert priority.in_flight == 1
        with priority.uncounted():
            assert priority.in_flight == 0
            assert priority._no_prompts.is_set()
        assert not priority._no_prompts.is_set()
    assert priority._no_prompts.is_set()


@pytest.mark.anyio
async def test_a_cancelled_job_looks_at_nothing_more() -> None:
    """Its thread ends where it next gives way; until then it goes through its work."""
    priority = RequestPriority()
    looked: list[int] = []

    def work() -> None:
        for piece in range(1_000):
            priority.checkpoint()
            looked.append(piece)
            if piece == 2:
                from_thread.run_sync(scope.cancel)

    with anyio.CancelScope() as scope:
        await to_thread.run_sync(work)
    assert scope.cancelled_caught
    assert looked == [0, 1, 2]


@pytest.mark.anyio
async def test_what_must_be_settled_is_not_cut_short() -> None:
    """Work behind a shield goes on to its end, whatever is cancelled around it."""
    priority = RequestPriority()
    looked: list[int] = []

    def finish() -> None:
        for piece in range(3):
            priority.checkpoint()
            looked.append(piece)

    with anyio.CancelScope() as scope:
        scope.cancel()
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(finish)
    assert looked == [0, 1, 2]


@pytest.mark.anyio
async def test_a_job_gives_way_in_short_threads_too() -> None:
    """Its check may come in a thread that knows no cancellation; the work is done to its end."""
    priority, looked = RequestPriority(), list[int]()

    def work() -> None:
        for piece in range(3):
            priority.checkpoint()
            looked.append(piece)

    await in_thread(work)
    assert looked == [0, 1, 2]
