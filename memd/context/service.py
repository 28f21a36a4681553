"""The context services as the daemon runs them.

``keeping`` knows and decides; this file waits, in worker threads of two sorts: those that a disk
may hold up while results are stored, and those that only need the state file.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from typing import Any, TypeVar

from anyio import CapacityLimiter, move_on_after, to_thread

from memd.agent import service as agent
from memd.context import compacting as compacting
from memd.context import local as local
from memd.context import restoring as restoring
from memd.context import results as results
from memd.context import summary as summary
from memd.context.errors import SummaryFailedError
from memd.context.keeping import TIMEOUT, ContextKeeper
from memd.context.requests import CacheBreak as CacheBreak
from memd.context.requests import ContextRequest as ContextRequest
from memd.context.requests import ContextView as ContextView
from memd.context.requests import CountedContext as CountedContext
from memd.context.requests import ListedContext as ListedContext
from memd.context.requests import PlannedContext as PlannedContext
from memd.context.requests import SpilledResult as SpilledResult
from memd.context.sizing import window_of as window_of
from memd.context.values import Decision as Decision
from memd.core.clock import Clock
from memd.core.errors import MemdError
from memd.core.recent import Recent
from memd.core.settings import Settings
from memd.files.disk import Disk
from memd.model.errors import NO_USE_TODAY, ModelNotConfiguredError, PromptTooLongError
from memd.model.port import ModelSource
from memd.state.tables import ContextTable, ContextTotals, Runs

_THREADS = 4  # a slow disk must not take all that the daemon has
_STORING_SECONDS = 5.0  # after which what is not stored stays in the conversation
_SUMMARIES = 16  # whose text waits for those who asked
_RETRIES = 3  # of a summary, with fewer rounds each time
_NOBODY = "nobody waits for it any more"
_NO_SUMMARY = "the model's answer holds no summary"

T = TypeVar("T")


class Contexts:
    """The conversations of one daemon's clients.

    Methods raise StateUnusableError, and those with a request SessionRefusedError. ``disk`` and
    ``seconds`` say where results are stored and how long that may take.
    """

    def __init__(
        self,
        clock: Clock,
        table: ContextTable,
        disk: Disk | None = None,
        seconds: float = _STORING_SECONDS,
    ) -> None:
        self._keeper = ContextKeeper(clock, threading.Lock, table, disk)
        self._table = table
        self._seconds = seconds
        self._deciding = CapacityLimiter(_THREADS)
        self._storing = CapacityLimiter(_THREADS)
        self._large = CapacityLimiter(1)  # a file of 64 MiB takes some 300 MB for a moment
        self._busy = threading.BoundedSemaphore(_THREADS)

    async def plan(self, request: ContextRequest) -> PlannedContext:
        """Return what to send of a conversation; what is decided is on the disk by then.

        Raises MessagesRefusedError and ConversationChangedError.
        """
        begun = await self._in_thread(partial(self._keeper.begin, request))
        if isinstance(begun, PlannedContext):
            return begun
        await self._store(partial(self._keeper.store, begun))
        return await self._in_thread(partial(self._keeper.end, begun))

    async def spill(
        self,
        request: ContextRequest,
        *,
        tool: str,
        tool_use_id: str,
        content: str | None = None,
        source_path: str = "",
    ) -> SpilledResult:
        """Store one result as it is born, where it is large, and return what to send.

        The result is a text, or the file at a path. Raises MessagesRefusedError and what
        ``results.from_file`` does.
        """

        def spill() -> SpilledResult:
            text = results.from_file(source_path) if content is None else content
            return self._keeper.spill(request, tool, tool_use_id, text)

        limiter = self._storing if content is not None else self._large
        return await self._store(spill, limiter) or SpilledResult(spilled=False, reason=TIMEOUT)

    async def count(self, request: ContextRequest) -> CountedContext:
        """Return the size of a conversation; nothing is noted. Raises MessagesRefusedError."""
        return await self._in_thread(partial(self._keeper.count, request))

    async def observe(
        self,
        request: ContextRequest,
        usage: Mapping[str, Any],
        diagnostics: Mapping[str, Any] | None,
    ) -> CacheBreak | None:
        """Take in what a server said of its last reply; return the break of its cache, if any."""
        return await self._in_thread(partial(self._keeper.observe, request, usage, diagnostics))

    async def restore(
        self, request: ContextRequest, decisions: Sequence[Decision], fork_of: str
    ) -> int:
        """Take over what a client was sent, and return how many decisions these are.

        ``fork_of`` is a session, "" for none, whose decisions this one begins with. Raises
        MessagesRefusedError.
        """
        restore = partial(self._keeper.restore, request, decisions, fork_of)
        return await self._in_thread(restore)

    async def forget(self, request: ContextRequest) -> bool:
        """Remove a session's decisions and stored results, and say whether there were any.

        Raises UnwrittenFileError where the disk refuses; what is left goes with the next call.
        """
        return await self._in_thread(partial(self._keeper.forget, request))

    async def prune(self, before: float) -> int:
        """Remove the sessions that were last planned before a time, and return how many."""
        return await self._in_thread(partial(self._keeper.prune, before))

    async def show(self, request: ContextRequest) -> ContextView:
        """Return a session for a person."""
        return await self._in_thread(partial(self._keeper.show, request))

    async def list(self, folder: str, most: int) -> tuple[ListedContext, ...]:
        """Return the conversations planned last, of sessions below a folder, or of all for ""."""
        return await self._in_thread(partial(self._keeper.list, folder, most))

    async def totals(self) -> ContextTotals:
        """Return how much there is of everything."""
        return await self._in_thread(self._table.totals)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await to_thread.run_sync(work, limiter=self._deciding)

    async def _store(
        self, work: Callable[[], T], limiter: CapacityLimiter | None = None
    ) -> T | None:
        """Run what stores something; ``None`` where the disk takes too long for it."""

        def run() -> T | None:
            # A thread whose caller has gone on still waits for the disk: there are so many at most.
            if not self._busy.acquire(blocking=False):
                return None
            try:
                return work()
            finally:
                self._busy.release()

        with move_on_after(self._seconds):
            return await to_thread.run_sync(
                run, limiter=limiter or self._storing, abandon_on_cancel=True
            )
        return None


class Summaries:
    """Summaries of conversations by a model; ``runs`` keeps the records of its runs.

    Their text is in no job's result, which the disk has for long: ``sections`` returns it. So a
    job outlives no one who waits: a daemon that is started anew asks no model for nobody.
    """

    def __init__(self, clock: Clock, models: ModelSource, runs: Runs) -> None:
        self._made: Recent[str, tuple[str, Mapping[str, str]]] = Recent(_SUMMARIES)
        self._awaited: Counter[str] = Counter()
        self._clock = clock
        self._models = models
        self._runs = runs

    async def run(
        self,
        settings: Settings,
        rounds: Sequence[str],
        instructions: str,
        *,
        project: str,
        job: str,
        digest: str,
        progress: agent.Progress,
    ) -> dict[str, Any]:
        """Make a summary; return what it cost, or as ``failure`` why no model can be used today.

        ``digest`` tells rounds from others that the job may get, and is ``awaited``.
        The spending is booked on ``project``. Raises PromptTooLongError and SummaryFailedError.
        """
        if not self._awaited[digest]:
            return failed(SummaryFailedError(_NOBODY))
        model, name = self._models.for_(settings), self._models.name(settings, summary.KIND)
        if model is None or not name:
            return failed(ModelNotConfiguredError("none is named for summaries"))
        shown: Sequence[str] = rounds
        for _ in range(1 + _RETRIES):
            task = summary.task(shown, instructions, len(rounds) - len(shown), name, project)
            ended = await agent.run(task, model, summary.NoTools(), self._clock, progress)
            await to_thread.run_sync(self._runs.save, job, ended.record, self._clock.now())
            if not isinstance(ended.error, PromptTooLongError):
                break
            shown = summary.shorter(shown, ended.error.sentence)
            if not shown:
                break
        if isinstance(ended.error, NO_USE_TODAY):
            return failed(ended.error)
        if isinstance(ended.error, PromptTooLongError):
            raise ended.error
        sections = summary.answered(ended.text) if ended.finished else {}
        if not sections:
            raise SummaryFailedError(_NO_SUMMARY if ended.finished else ended.unfinished)
        self._made[job] = digest, sections
        return {"engine": name, "turns": ended.turns, "usage": asdict(ended.usage)}

    @contextmanager
    def awaited(self, digest: str) -> Iterator[None]:
        """Wait for the summary of rounds, within the block."""
        self._awaited[digest] += 1
        try:
            yield
        finally:
            self._awaited[digest] -= 1
            self._awaited += Counter()  # without those that nobody waits for

    def sections(self, job: str, digest: str) -> Mapping[str, str] | None:
        """Return the summary that a job made, ``None`` where it is one of other rounds."""
        known, sections = self._made.get(job, ("", {}))
        return sections if known == digest else None


def failed(error: MemdError) -> dict[str, Any]:
    """Return the result of a job whose work could not be begun."""
    return {"failure": {"kind": error.kind, "message": error.sentence, **error.facts}}
