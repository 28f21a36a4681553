"""Worker threads of the event loop: results, context, cancellation, bounds, and their end."""

import gc
import threading
from contextvars import ContextVar

import anyio
import pytest

from memd.base.threads import in_thread

pytestmark = pytest.mark.anyio
_NAME = ContextVar("_NAME", default="")


async def test_a_function_runs_in_a_thread_with_its_arguments_and_context() -> None:
    """Result, error and context variables are as if the function had been called here."""
    _NAME.set("caller")
    assert await in_thread(lambda a, b: (a, b, _NAME.get()), 1, "b") == (1, "b", "caller")
    assert await in_thread(threading.get_ident) != threading.get_ident()
    with pytest.raises(ValueError, match="bad"):
        await in_thread(int, "bad")
    with pytest.raises(RuntimeError, match="StopIteration"):
        await in_thread(next, iter(()))


async def test_a_cancelled_caller_gets_its_result_first() -> None:
    """A caller that is cancelled goes on with the result, and is cancelled where it waits next."""
    begun, may_end = threading.Event(), threading.Event()
    results: list[bool] = []

    def work() -> bool:
        begun.set()
        return may_end.wait(10)

    async def call() -> None:
        results.append(await in_thread(work))
        await anyio.sleep_forever()

    async with anyio.create_task_group() as group:
        group.start_soon(call)
        await in_thread(begun.wait, 10)
        group.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await anyio.wait_all_tasks_blocked()
            assert results == []
        may_end.set()
    assert results == [True]


async def test_a_caller_that_abandons_goes_on_at_once() -> None:
    """An abandoned function runs to its end, without its caller."""
    may_end, ended = threading.Event(), threading.Event()

    def work() -> None:
        may_end.wait(10)
        ended.set()

    with anyio.move_on_after(0.05) as scope:
        await in_thread(work, abandon=True)
    assert scope.cancelled_caught
    assert not ended.is_set()
    may_end.set()
    assert await in_thread(ended.wait, 10)


async def test_nothing_begins_for_who_is_cancelled_already() -> None:
    """A caller in a cancelled scope calls nothing."""
    called: list[int] = []
    with anyio.CancelScope() as scope:
        scope.cancel()
        await in_thread(called.append, 1)
    assert called == []


async def test_no_more_run_at_once_than_a_limiter_lets() -> None:
    """Callers wait for one of the places of their limiter."""
    limiter = anyio.Semaphore(2, fast_acquire=True)
    lock = threading.Lock()
    running, most = 0, 0
    pair = threading.Barrier(2)

    def work() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        pair.wait(10)
        with lock:
            running -= 1

    async with anyio.create_task_group() as group:
        for _ in range(10):
            group.start_soon(lambda: in_thread(work, limiter=limiter))
    assert most == 2


def test_threads_end_with_their_loop() -> None:
    """Idle threads end once their event loop is gone, and none of them keeps the process."""

    async def main() -> threading.Thread:
        return await in_thread(threading.current_thread)

    thread = anyio.run(main)
    assert thread.daemon
    gc.collect()
    thread.join(10)
    assert not thread.is_alive()
