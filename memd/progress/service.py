"""Lines of progress: what each sub-agent is doing, published every 30 s to subscribers.

Rules of this file
- Without a subscriber nothing is read, no timer runs and no model is asked.
- A round ends before the next begins, so there is one request per agent at a time.
- If a model is configured and the client has sent its own request, the model writes the line; else,
  and after any failure, ``table`` does.
- A model that failed three times in a row is not asked for five minutes.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import Any

import anyio
from anyio import CapacityLimiter, to_thread

from memd.agent import service as agent
from memd.core.clock import Clock
from memd.core.errors import MemdError
from memd.core.events import AGENT_PROGRESS, Event, EventSink
from memd.core.settings import Settings
from memd.model.errors import CapReachedError
from memd.model.port import LOCAL, ModelSource
from memd.progress import fork, lines
from memd.progress.following import ActiveAgent, AgentSource, Following
from memd.state.database import StateUnusableError

__all__ = ["AgentSource", "ProgressLines"]

SECONDS = 30.0
_AT_ONCE = 4  # requests to the model
_PREFIXES = 8  # stored client requests; each may be large
_FAILURES = 3
_LEFT_ALONE_SECONDS = 300.0


class ProgressLines:
    """Publishes what the sub-agents of one daemon are doing.

    ``listening`` says whether ``agent.progress`` has a subscriber. ``settings`` returns those of a
    project's root; it blocks, as the methods of ``source`` do.
    """

    def __init__(
        self,
        source: AgentSource,
        clock: Clock,
        models: ModelSource,
        events: EventSink,
        *,
        listening: Callable[[], bool],
        settings: Callable[[str], Settings],
        make_lock: Callable[[], AbstractContextManager[object]],
    ) -> None:
        self._clock = clock
        self._models = models
        self._events = events
        self._listening = listening
        self._settings = settings
        self._following = Following(source, make_lock)
        self._subscribed = anyio.Event()
        self._at_once = CapacityLimiter(_AT_ONCE)
        self._prefixes: OrderedDict[str, Mapping[str, Any]] = OrderedDict()
        self._newest: dict[int, str] = {}
        self._failures, self._resumes = 0, 0.0

    def subscribed(self) -> None:
        """Wake ``run``, because there may be a new subscriber."""
        self._subscribed.set()

    def remember(self, session: str, cache: Mapping[str, Any] | None) -> None:
        """Store the request that a client sends to its own model, if there is a subscriber."""
        if cache and self._listening():
            self._prefixes[session] = cache
            self._prefixes.move_to_end(session)
            while len(self._prefixes) > _PREFIXES:
                self._prefixes.popitem(last=False)

    def line(self, agent_id: int) -> str:
        """Return the newest line of a sub-agent, "" if nothing is known of it. Blocks."""
        return self._newest.get(agent_id) or self._following.line(agent_id)

    async def run(self) -> None:
        """Publish lines every 30 s while there are subscribers; runs until cancelled."""
        while True:
            await self._subscribed.wait()
            self._subscribed = anyio.Event()
            while self._listening():
                begun = self._clock.monotonic()
                await self._round()
                await self._clock.sleep(begun + SECONDS - self._clock.monotonic())
            self._prefixes.clear()
            self._newest.clear()

    async def _round(self) -> None:
        """Publish a line for each sub-agent whose transcript grew."""
        grown: tuple[ActiveAgent, ...] = ()
        with suppress(MemdError):  # a state file that cannot be read: the next round may
            grown = await to_thread.run_sync(self._following.grown)
        async with anyio.create_task_group() as group:
            for active in grown:
                group.start_soon(self._publish_line, active)

    async def _publish_line(self, active: ActiveAgent) -> None:
        """Publish a sub-agent's line, from the model if possible, else from the table."""
        engine, line = await self._by_model(active)
        if not line:
            engine, line = LOCAL, active.line
        self._newest[active.agent.id] = line
        facts = {"agent": active.agent.name, "address": active.address}
        facts |= {"parent": active.coordinator, "line": line, "engine": engine}
        self._events.publish(Event(AGENT_PROGRESS, active.agent.directory, facts))

    async def _by_model(self, active: ActiveAgent) -> tuple[str, str]:
        """Return the model's name and its line; the line is "" if no model could write one."""
        cache = next(filter(None, map(self._prefixes.get, active.sessions)), None)
        if cache is None:
            return "", ""
        settings = await to_thread.run_sync(self._settings, active.agent.root)
        model, name = self._models.for_(settings), self._models.name(settings, fork.KIND)
        if model is None or not model.calls_tools:
            return "", ""
        make = partial(fork.task, cache, active.calls, name, active.agent.directory)
        task = await to_thread.run_sync(make)
        if task is None:
            return "", ""
        async with self._at_once:
            if self._clock.monotonic() < self._resumes or not self._listening():
                return "", ""
            try:
                ended = await agent.run(task, model, fork.NoToolBench(), self._clock, _silent)
            except StateUnusableError:  # what it costs cannot be booked
                return "", ""
        self._count(ended)
        line = await to_thread.run_sync(lines.of_model, ended.text) if ended.finished else ""
        return name, line

    def _count(self, ended: agent.RunEnd) -> None:
        """Count failures in a row; a cap is none of the model's."""
        if isinstance(ended.error, CapReachedError):
            return
        self._failures = 0 if ended.finished else self._failures + 1
        if self._failures >= _FAILURES:
            self._failures = 0
            self._resumes = self._clock.monotonic() + _LEFT_ALONE_SECONDS


def _silent(_phase: str, **_facts: Any) -> None:
    """Tell nobody how a run goes: it takes seconds."""
