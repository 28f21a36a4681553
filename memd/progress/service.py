"""Publish a line of progress about each active sub-agent to subscribers, every 30 s.

Rules of this file
- Without a subscriber no transcript is read, no timer runs and no model is called.
- A round ends before the next begins, so there is one request per agent at a time.
- If a model is configured and the client has sent its own request, the model writes the line. Else,
  and after any failure, the line is made from the last tool call (``table``).
- A model that failed three times in a row is not called for five minutes.
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
_CONCURRENT_REQUESTS = 4  # requests to the model
_PREFIXES = 8  # stored client requests; each may be large
_FAILURES_BEFORE_BREAK = 3
_BREAK_SECONDS = 300.0


class ProgressLines:
    """Publishes what the sub-agents of one daemon are doing.

    ``listening`` returns whether ``agent.progress`` has a subscriber. ``settings`` returns the
    settings of a project's root; it blocks, as the methods of ``source`` do.
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
        self._at_once = CapacityLimiter(_CONCURRENT_REQUESTS)
        self._prefixes: OrderedDict[str, Mapping[str, Any]] = OrderedDict()  # requests by session
        self._newest: dict[int, str] = {}  # the last line of each agent
        self._failures, self._resumes = 0, 0.0  # in a row; when the model is called again

    def subscribed(self) -> None:
        """Wake ``run``, because there may be a new subscriber."""
        self._subscribed.set()

    def remember(self, session: str, cache: Mapping[str, Any] | None) -> None:
        """Store a client's last request to its own model, if there is a subscriber.

        The requests of the eight last sessions are stored.
        """
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
                started = self._clock.monotonic()
                await self._publish_lines()
                await self._clock.sleep(started + SECONDS - self._clock.monotonic())
            self._prefixes.clear()
            self._newest.clear()

    async def _publish_lines(self) -> None:
        """Publish a line for each sub-agent whose transcript grew."""
        grown: tuple[ActiveAgent, ...] = ()
        with suppress(MemdError):  # if the state file is unusable, the next round tries again
            grown = await to_thread.run_sync(self._following.grown)
        async with anyio.create_task_group() as group:
            for active in grown:
                group.start_soon(self._publish_line, active)

    async def _publish_line(self, active: ActiveAgent) -> None:
        """Publish a sub-agent's line, from the model if possible, else from the table."""
        engine, line = await self._write_with_model(active)
        if not line:
            engine, line = LOCAL, active.line
        self._newest[active.agent.id] = line
        facts = {"agent": active.agent.name, "address": active.address}
        facts |= {"parent": active.coordinator, "line": line, "engine": engine}
        self._events.publish(Event(AGENT_PROGRESS, active.agent.directory, facts))

    async def _write_with_model(self, active: ActiveAgent) -> tuple[str, str]:
        """Let the model write a line; return the model's name and the line.

        The line is "" without a client's request, a usable model, a valid reply or a subscriber.
        """
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
                ended = await agent.run(task, model, fork.NoToolBench(), self._clock, _ignore_phase)
            except StateUnusableError:  # the cost cannot be recorded
                return "", ""
        self._count_failures(ended)
        line = await to_thread.run_sync(lines.parse_reply, ended.text) if ended.finished else ""
        return name, line

    def _count_failures(self, ended: agent.RunEnd) -> None:
        """Count failures of the model in a row, and stop calling it for a while after three.

        A reached spending cap does not count, as it is no failure of the model.
        """
        if isinstance(ended.error, CapReachedError):
            return
        self._failures = 0 if ended.finished else self._failures + 1
        if self._failures >= _FAILURES_BEFORE_BREAK:
            self._failures = 0
            self._resumes = self._clock.monotonic() + _BREAK_SECONDS


def _ignore_phase(_phase: str, **_facts: Any) -> None:
    """Ignore a phase of a run, which takes only seconds."""
