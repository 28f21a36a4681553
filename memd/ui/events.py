"""What changed while a page is open, as server-sent events: names of topics and nothing else."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

import anyio

from memd.core.errors import MemdError
from memd.core.events import TOPICS
from memd.ui.link import SocketLink

STREAMS = 12  # open pages that are told of changes; more are reloaded by hand
_PAUSE_SECONDS = 0.5  # what happens at once is told once
_ALIVE_SECONDS = 15.0  # a browser that went away is noticed by then
_BEGIN = "retry: 5000\n\n"
_ALIVE = ":\n\n"
Sender = Callable[[str], Awaitable[None]]
Receiver = Callable[[], Awaitable[Any]]


class Events:
    """The open streams. ``stop`` ends them all."""

    def __init__(self, link: SocketLink, stop: anyio.Event) -> None:
        self._link = link
        self._stop = stop
        self.open = 0

    def known(self, topics: str) -> list[str]:
        """Return the topics that a page may be told of, none where there are too many pages."""
        named = topics.split()
        return [topic for topic in TOPICS if topic in named and self.open < STREAMS]

    async def run(self, topics: Sequence[str], cwd: str, send: Sender) -> None:
        """Send what happens, of one project or of all, until the daemon or this server ends."""
        self.open += 1
        about = {"topics": topics} | ({"cwd": cwd} if cwd else {})
        try:
            async with self._link.connection() as client, anyio.create_task_group() as group:
                group.start_soon(self._until_stopped, group.cancel_scope)
                with suppress(MemdError):  # the stream ends, and the browser comes again
                    await client.call("subscribe", about)
                    await send(_BEGIN)
                    await _tell(client.notifications.receive, send)
                group.cancel_scope.cancel()
        except MemdError:
            return  # no daemon runs
        finally:
            self.open -= 1

    async def _until_stopped(self, scope: anyio.CancelScope) -> None:
        await self._stop.wait()
        scope.cancel()


async def _tell(receive: Receiver, send: Sender) -> None:
    """Send the topics of notifications until the daemon hangs up."""
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
