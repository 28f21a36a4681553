"""Server-sent events for open pages: the names of the topics that changed, nothing else."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

import anyio

from memd.core.errors import MemdError
from memd.core.events import TOPICS
from memd.ui.link import SocketLink

STREAMS = 12  # open pages that get events; others must be reloaded by hand
_PAUSE_SECONDS = 0.5  # notifications within this time are sent as one event
_ALIVE_SECONDS = 15.0  # without an event, a comment is sent to notice a closed browser
_BEGIN = "retry: 5000\n\n"
_ALIVE = ":\n\n"
Sender = Callable[[str], Awaitable[None]]
Receiver = Callable[[], Awaitable[Any]]


class Events:
    """Counts and runs the open streams. ``stop`` ends them all."""

    def __init__(self, link: SocketLink, stop: anyio.Event) -> None:
        self._link = link
        self._stop = stop
        self.open = 0  # streams that run now

    def accepted_topics(self, topics: str) -> list[str]:
        """Return the valid topics in a list of words, none if too many streams are open."""
        words = topics.split()
        return [topic for topic in TOPICS if topic in words and self.open < STREAMS]

    async def run(self, topics: Sequence[str], cwd: str, send: Sender) -> None:
        """Send the events of one project, or without ``cwd`` of all, until daemon or page end."""
        self.open += 1
        params = {"topics": topics} | ({"cwd": cwd} if cwd else {})
        try:
            async with self._link.connection() as client, anyio.create_task_group() as group:
                group.start_soon(self._until_stopped, group.cancel_scope)
                with suppress(MemdError):  # the stream ends, and the browser reconnects
                    await client.call("subscribe", params)
                    await send(_BEGIN)
                    await _send_topics(client.notifications.receive, send)
                group.cancel_scope.cancel()
        except MemdError:
            return  # no daemon runs
        finally:
            self.open -= 1

    async def _until_stopped(self, scope: anyio.CancelScope) -> None:
        await self._stop.wait()
        scope.cancel()


async def _send_topics(receive: Receiver, send: Sender) -> None:
    """Send the topics of notifications until the daemon closes the connection."""
    while True:
        changed: set[str] = set()
        with anyio.move_on_after(_ALIVE_SECONDS) as quiet, suppress(anyio.EndOfStream):
            changed.add((await receive()).method)
        if not changed and not quiet.cancelled_caught:
            return
        if changed:
            with anyio.move_on_after(_PAUSE_SECONDS), suppress(anyio.EndOfStream):
                while True:
                    changed.add((await receive()).method)
        await send(f"data: {' '.join(sorted(changed))}\n\n" if changed else _ALIVE)
