"""Publish a line of progress about each active sub-agent to subscribers, every 30 s.

Rules of this file
- Without a subscriber no transcript is read, no timer runs and no model is called.
- A round ends before the next begins, so there is one request per agent at a time.
- If a model is configured and the client has sent its own request, the model writes the line. Else,
  and after any failure, the line is made from the last tool call (``table``).
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import Any

import anyio
from anyio import CapacityLimiter, to_thread

from memd.agent import service as agent
from memd.base.clock import Clock
from memd.base.errors import MemdError
from memd.base.events import AGENT_PROGRESS, Event, EventSink
from memd.base.settings import Settings
from memd.model.configured import Models
from memd.model.port import LOCAL
from memd.progress import fork, lines
from memd.progress.following import ActiveAgent, AgentSource, Following
from memd.state.database import StateUnusableError

__all__ = ["AgentSource", "ProgressLines"]

SECONDS = 30.0
_CONCURRENT_REQUESTS = 4  # requests to the model
_MOST_PREFIXES = 8  # stored client requests; each may be large
_NO_LINE = "", ""  # no model and no line


class ProgressLines:
    """Publishes what the sub-agents of one daemon are doing.

    ``listening`` returns whether ``agent.progress`` has a subscriber. ``settings`` returns the
    settings of a project's root; it blocks, as the methods of ``source`` do.
    """

    def __init__(
        self,
        source: AgentSource,
        clock: Clock,
        models: Models,
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
        self._may_have_subscriber = anyio.Event()
        self._request_limiter = CapacityLimiter(_CONCURRENT_REQUESTS)
        self._prefixes: OrderedDict[str, Mapping[str, Any]] = OrderedDict()  # requests by session
        self._last_lines: dict[int, str] = {}  # the last line of each agent

    def subscribed(self) -> None:
        """Wake ``run``, because there may be a new subscriber."""
        self._may_have_subscriber.set()

    def remember(self, session: str, cache: Mapping[str, Any] | None) -> None:
        """Store a client's last request to its own model, if there is a subscriber.

        The requests of the eight last sessions are stored.
        """
        if cache and self._listening():
            self._prefixes[session] = cache
            self._prefixes.move_to_end(session)
            while len(self._prefixes) > _MOST_PREFIXES:
                self._prefixes.popitem(last=False)

    def line(self, agent_id: int) -> str:
        """Return the newest line of a sub-agent, "" if nothing is known of it. Blocks."""
        return self._last_lines.get(agent_id) or self._following.line(agent_id)

    async def run(self) -> None:
        """Publish lines every 30 s while there are subscribers; runs until cancelled."""
        while True:
            await self._may_have_subscriber.wait()
            self._may_have_subscriber = anyio.Event()
            while self._listening():
                started = self._clock.monotonic()
                await self._publish_lines()
                await self._clock.sleep(started + SECONDS - self._clock.monotonic())
            self._prefixes.clear()
            self._last_lines.clear()

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
        self._last_lines[active.agent.id] = line
        facts = {"agent": active.agent.name, "address": active.address}
        facts |= {"parent": active.coordinator, "line": line, "engine": engine}
        self._events.publish(Event(AGENT_PROGRESS, active.agent.directory, facts))

    async def _write_with_model(self, active: ActiveAgent) -> tuple[str, str]:
        """Let the model write a line; return the model's name and the line.

        The line is "" without a client's request, a usable model, a valid reply or a subscriber.
        """
        requests = [self._prefixes[each] for each in active.sessions if each in self._prefixes]
        if not requests:
            return _NO_LINE
        settings = await to_thread.run_sync(self._settings, active.agent.root)
        model, name = self._models.for_(settings), self._models.name(settings, fork.KIND)
        if model is None or not model.calls_tools:
            return _NO_LINE
        make_task = partial(fork.task, requests[0], active.calls, name, active.agent.directory)
        task = await to_thread.run_sync(make_task)
        if task is None:
            return _NO_LINE
        # Loading the library takes seconds, which a run of five has not.
        await self._models.warm(settings)
        async with self._request_limiter:
            if not self._listening():
                return _NO_LINE
            try:
                run_end = await agent.run(task, model, agent.NoTools(), self._clock)
            except StateUnusableError:  # the cost cannot be recorded
                return _NO_LINE
        line = await to_thread.run_sync(lines.parse_reply, run_end.text) if run_end.finished else ""
        return name, line
