"""The context services as the daemon runs them.

``keeping`` knows and decides, in worker threads of its own number; this file waits.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread

from memd.context.keeping import ContextKeeper, folder_of, session_folder
from memd.context.requests import (
    CacheBreak,
    ContextRequest,
    ContextView,
    CountedContext,
    ListedContext,
    PlannedContext,
    SpilledResult,
)
from memd.context.values import Decision
from memd.core.clock import Clock
from memd.state.tables import ContextTable, ContextTotals

__all__ = [
    "CacheBreak",
    "ContextRequest",
    "ContextView",
    "Contexts",
    "CountedContext",
    "Decision",
    "ListedContext",
    "PlannedContext",
    "SpilledResult",
    "session_folder",
]

_THREADS = 4  # a slow disk must not take all that the daemon has

T = TypeVar("T")


class Contexts:
    """The conversations of one daemon's clients. Methods raise StateUnusableError."""

    def __init__(self, clock: Clock, table: ContextTable) -> None:
        self._keeper = ContextKeeper(clock, threading.Lock, table)
        self._table = table
        self._threads = CapacityLimiter(_THREADS)

    async def plan(self, request: ContextRequest) -> PlannedContext:
        """Return what to send of a conversation; decisions are on the disk by then.

        Raises MessagesRefusedError and ConversationChangedError.
        """
        return await self._in_thread(partial(self._keeper.plan, request))

    async def spill(
        self, request: ContextRequest, tool_use_id: str, tool: str, content: str
    ) -> SpilledResult:
        """Store one result as it is born, where it is large enough, and return what to send."""
        del request, tool_use_id, tool, content
        return SpilledResult(spilled=False, reason="small")

    async def count(self, request: ContextRequest) -> CountedContext:
        """Return the size of a conversation; nothing is noted. Raises MessagesRefusedError."""
        return await self._in_thread(partial(self._keeper.count, request))

    async def observe(
        self,
        request: ContextRequest,
        usage: Mapping[str, Any],
        diagnostics: Mapping[str, Any] | None,
    ) -> CacheBreak | None:
        """Take in what the server counted for a reply; return the break of its cache, if any."""
        del request, usage, diagnostics
        return None

    async def restore(
        self, request: ContextRequest, decisions: Sequence[Decision], fork_of: str = ""
    ) -> int:
        """Take over what was sent, and return how many decisions that are.

        ``fork_of`` is the folder of a session whose decisions this one begins with; what the client
        says stands above them.
        """
        restore = partial(self._keeper.restore, folder_of(request), decisions, fork_of)
        return await self._in_thread(restore)

    async def forget(self, request: ContextRequest) -> bool:
        """Remove a session's decisions and stored results, and say whether there were any."""
        return await self._in_thread(partial(self._keeper.forget, folder_of(request)))

    async def show(self, request: ContextRequest) -> ContextView:
        """Return a session for a person."""
        return await self._in_thread(partial(self._keeper.show, folder_of(request)))

    async def list(self, folders: str, limit: int) -> tuple[ListedContext, ...]:
        """Return the conversations planned last, of sessions below a folder or of all."""
        return await self._in_thread(partial(self._keeper.list, folders, limit))

    async def totals(self) -> ContextTotals:
        """Return how much there is of everything."""
        return await self._in_thread(self._table.totals)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await to_thread.run_sync(work, limiter=self._threads)
