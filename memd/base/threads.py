"""Call a blocking function in a worker thread of the event loop and await its result.

This is ``anyio.to_thread.run_sync``, but the event loop goes round twice less for each call, and
beside other threads each round waits for the interpreter. Two things differ:
- A thread does not keep the process: a function that hangs on a disk does not delay its end.
- ``anyio.from_thread`` needs a token here. What asks it without one runs in anyio's own threads.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from typing import TypeVar, TypeVarTuple
from weakref import WeakKeyDictionary

import anyio

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
_AT_ONCE = 40  # functions of one loop whose callers wait, as anyio has it
_IDLE_SECONDS = 10.0  # after which a thread ends when another one is used


class _Threads:
    """The threads of one event loop; they end with it. Used on the loop only."""

    def __init__(self) -> None:
        self.limiter = anyio.Semaphore(_AT_ONCE, fast_acquire=True)
        # Where idle threads get their work, and since when they are idle; the newest comes last.
        self._idle: deque[tuple[SimpleQueue[Callable[[], None] | None], float]] = deque()

    def __del__(self) -> None:
        for inbox, _ in self._idle:
            inbox.put(None)

    def start(self, function: Callable[[], T]) -> asyncio.Future[T]:
        """Call a function in a thread, and return its result to come."""
        loop, context = asyncio.get_running_loop(), copy_context()
        future: asyncio.Future[T] = loop.create_future()
        if self._idle:
            inbox, _ = self._idle.pop()
        else:
            inbox = SimpleQueue()
            threading.Thread(target=_work, args=(inbox,), name="memd worker", daemon=True).start()
        while self._idle and loop.time() - self._idle[0][1] > _IDLE_SECONDS:
            self._idle.popleft()[0].put(None)

        def end(tell: Callable[[], None]) -> None:
            self._idle.append((inbox, loop.time()))
            if not future.done():  # else its caller has gone
                tell()

        def work() -> None:
            try:
                tell = partial(future.set_result, context.run(function))
            except StopIteration as error:  # no future takes it
                tell = partial(future.set_exception, RuntimeError(repr(error)))
            except BaseException as error:  # noqa: BLE001 - it is raised where the result is awaited
                tell = partial(future.set_exception, error)
            with suppress(RuntimeError):  # the loop has ended, and with it who would wait
                loop.call_soon_threadsafe(end, tell)

        inbox.put(work)
        return future


_threads: WeakKeyDictionary[asyncio.AbstractEventLoop, _Threads] = WeakKeyDictionary()


async def in_thread(
    function: Callable[[*Ts], T],
    *args: *Ts,
    abandon: bool = False,
    limiter: anyio.Semaphore | None = None,
) -> T:
    """Return what the function returns, and raise what it raises.

    A caller that is cancelled goes on when the function has ended, or with ``abandon`` at once. The
    function has the context variables of the caller. As many run at once as the ``limiter`` lets.
    """
    loop = asyncio.get_running_loop()
    threads = _threads.get(loop)
    if threads is None:
        threads = _threads[loop] = _Threads()
    async with limiter or threads.limiter:
        future = threads.start(partial(function, *args))
        if not abandon:
            with anyio.CancelScope(shield=True):
                await future
        return await future


def _work(inbox: SimpleQueue[Callable[[], None] | None]) -> None:
    """Do what comes in, in a thread of its own, until ``None`` comes."""
    while (work := inbox.get()) is not None:
        work()
        del work
