"""Run the daemon's background services; a service that fails is logged and started again."""

from collections.abc import Awaitable, Callable, MutableMapping
from functools import partial

import anyio
from anyio.abc import TaskGroup

from memd.base.clock import Clock
from memd.base.errors import MemdError
from memd.daemon.log import Log
from memd.rpc.server import contain

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 300.0  # seconds before a service is started again


class Background:
    """Runs services in a task group, each for itself: a failure neither ends the group nor others.

    ``failing`` has a sentence about each service that waits to be started again, by its name.
    """

    def __init__(
        self, group: TaskGroup, clock: Clock, log: Log, failing: MutableMapping[str, str]
    ) -> None:
        self._group = group
        self._clock = clock
        self._log = log
        self._failing = failing

    def start_soon(self, name: str, service: Callable[[], Awaitable[None]]) -> None:
        """Run a service until it returns, or until the group is cancelled."""
        self._group.start_soon(self._keep_running, name, service, anyio.Event())

    async def start(self, name: str, service: Callable[..., Awaitable[None]]) -> None:
        """Run a service as ``start_soon``, and return once it is ready or has failed."""
        ready = anyio.Event()
        run = partial(service, task_status=_Ready(ready))
        self._group.start_soon(self._keep_running, name, run, ready)
        await ready.wait()

    async def _keep_running(
        self, name: str, service: Callable[[], Awaitable[None]], ready: anyio.Event
    ) -> None:
        """Run a service, after each failure again; the pause before that grows up to a bound."""
        pause = _FIRST_PAUSE
        while True:
            started = self._clock.monotonic()
            failure = await contain(self._log, service, lambda: {"service": name})
            ready.set()
            if not isinstance(failure, MemdError):
                return
            if self._clock.monotonic() - started > _LONGEST_PAUSE:
                pause = _FIRST_PAUSE
            self._log.warning("service failed", service=name, detail=failure.sentence, wait=pause)
            self._failing[name] = f"{name}: {failure.sentence}"
            await self._clock.sleep(pause)
            del self._failing[name]
            pause = min(2 * pause, _LONGEST_PAUSE)


class _Ready:
    """The task status of a service, which reports at each of its starts that it is ready."""

    def __init__(self, ready: anyio.Event) -> None:
        self._ready = ready

    def started(self, _value: None = None) -> None:
        """Report that the service is ready."""
        self._ready.set()
