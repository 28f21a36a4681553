"""Run the context services in worker threads.

Storing results has its own threads, so that a slow disk cannot hold up requests that only need the
state file.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from anyio import CapacityLimiter, move_on_after, to_thread
from msgspec.structs import asdict

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

_THREADS = 4  # of each kind; a slow disk must not take all threads of the daemon
_STORING_SECONDS = 5.0  # results not stored by then stay in the conversation
_SUMMARIES_IN_MEMORY = 16  # the newest finished ones
_RETRIES = 3  # if the conversation is too long for the model, with fewer rounds each time
_NO_CALLER = "nobody waits for it any more"
_NO_SUMMARY = "the model's answer holds no summary"

T = TypeVar("T")


class Contexts:
    """The context services of one daemon.

    Methods raise StateUnusableError; those with a request also raise SessionRefusedError.
    ``seconds`` is how long storing results may take.
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
        self._state_threads = CapacityLimiter(_THREADS)  # for requests that need the state file
        self._storing_threads = CapacityLimiter(_THREADS)  # for results of a request
        # For results in a file; one of 64 MiB takes some 300 MB of memory for a moment.
        self._large_file_thread = CapacityLimiter(1)
        # Counts the threads that store, also abandoned ones, which the limiters no longer count.
        self._storing_slots = threading.BoundedSemaphore(_THREADS)

    async def plan(self, request: ContextRequest) -> PlannedContext:
        """Return how to send a conversation; its decisions are on the disk before that.

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
        """Store a new result if it is large, and return what to send in its place.

        The result is ``content``, or the text of the file ``source_path``. Raises
        MessagesRefusedError and the errors of ``results.from_file``.
        """

        def spill() -> SpilledResult:
            """Read the text and store it. Runs in a worker thread."""
            text = results.from_file(source_path) if content is None else content
            return self._keeper.spill(request, tool, tool_use_id, text)

        limiter = self._storing_threads if content is not None else self._large_file_thread
        result = await self._store(spill, limiter)
        return result or SpilledResult(spilled=False, reason=TIMEOUT)

    async def restore(
        self, request: ContextRequest, decisions: Sequence[Decision], fork_of: str
    ) -> int:
        """Save the decisions that a client restores, and return their number.

        Decisions of the session ``fork_of`` ("" for none) are copied too. Raises
        MessagesRefusedError.
        """
        restore = partial(self._keeper.restore, request, decisions, fork_of)
        return await self._in_thread(restore)

    async def forget(self, request: ContextRequest) -> bool:
        """Remove a session's rows and stored results; return whether there were rows.

        Raises UnwrittenFileError if the disk refuses; the next call then removes the rest.
        """
        return await self._in_thread(partial(self._keeper.forget, request))

    async def prune(self) -> int:
        """Remove the sessions planned longest ago that are too much, and return how many."""
        return await self._in_thread(self._keeper.prune)

    async def show(self, request: ContextRequest) -> ContextView:
        """Return a session's conversations, decisions and stored results for a person."""
        return await self._in_thread(partial(self._keeper.show, request))

    async def list(self, folder: str, most: int) -> tuple[ListedContext, ...]:
        """Return the newest ``most`` conversations, of sessions below a folder or all for ""."""
        return await self._in_thread(partial(self._keeper.list, folder, most))

    async def totals(self) -> ContextTotals:
        """Return the totals over all sessions."""
        return await self._in_thread(self._table.totals)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Return the result of ``work`` from a worker thread."""
        return await to_thread.run_sync(work, limiter=self._state_threads)

    async def _store(
        self, work: Callable[[], T], limiter: CapacityLimiter | None = None
    ) -> T | None:
        """Return the result of ``work``; ``None`` if it takes too long or too many are running."""

        def run() -> T | None:
            """Do the work, or return ``None`` if too many abandoned threads are still working."""
            # A thread that was abandoned after the time limit still waits for the disk.
            if not self._storing_slots.acquire(blocking=False):
                return None
            try:
                return work()
            finally:
                self._storing_slots.release()

        with move_on_after(self._seconds):
            return await to_thread.run_sync(
                run, limiter=limiter or self._storing_threads, abandon_on_cancel=True
            )
        return None


class Summaries:
    """Summaries of conversations by a model; ``runs`` stores the records of its runs.

    A job's result is on the disk for long, so it does not hold the summary; ``sections`` returns
    it from memory. A job therefore fails at once if no caller waits, as after a restart.
    """

    def __init__(self, clock: Clock, models: ModelSource, runs: Runs) -> None:
        # By job: the digest of the summarised rounds, and the sections of the summary.
        self._finished: Recent[str, tuple[str, Mapping[str, str]]] = Recent(_SUMMARIES_IN_MEMORY)
        self._awaited: Counter[str] = Counter()  # by digest, how many callers wait
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
        """Return the job result of summarising rounds: its cost, or a ``failure``.

        It is a failure if no caller waits, and if no model is configured or usable today.
        ``instructions`` are the person's, "" for none.
        ``digest`` is the hash of the rounds and instructions; it must be ``awaited``. The cost is
        booked on ``project``. Raises PromptTooLongError and SummaryFailedError.
        """
        if not self._awaited[digest]:
            return failed_result(SummaryFailedError(_NO_CALLER))
        model, name = self._models.for_(settings), self._models.name(settings, summary.KIND)
        if model is None or not name:
            return failed_result(ModelNotConfiguredError("none is named for summaries"))
        shown_rounds: Sequence[str] = rounds
        for _ in range(1 + _RETRIES):
            task = summary.summary_task(
                shown_rounds, instructions, len(rounds) - len(shown_rounds), name, project
            )
            ended = await agent.run(task, model, summary.NoTools(), self._clock, progress)
            await to_thread.run_sync(self._runs.save, job, ended.record, self._clock.now())
            if not isinstance(ended.error, PromptTooLongError):
                break
            shown_rounds = summary.without_oldest(shown_rounds, ended.error.sentence)
            if not shown_rounds:
                break
        if isinstance(ended.error, NO_USE_TODAY):
            return failed_result(ended.error)
        if isinstance(ended.error, PromptTooLongError):
            raise ended.error
        sections = summary.sections_of_reply(ended.text) if ended.finished else {}
        if not sections:
            raise SummaryFailedError(_NO_SUMMARY if ended.finished else ended.unfinished)
        self._finished[job] = digest, sections
        return {"engine": name, "turns": ended.turns, "usage": asdict(ended.usage)}

    @contextmanager
    def awaited(self, digest: str) -> Iterator[None]:
        """Count a caller as waiting for the summary with this digest during the block."""
        self._awaited[digest] += 1
        try:
            yield
        finally:
            self._awaited[digest] -= 1
            self._awaited += Counter()  # removes entries that are zero

    def sections(self, job: str, digest: str) -> Mapping[str, str] | None:
        """Return the summary that a job wrote of these rounds, ``None`` if there is none."""
        finished_digest, sections = self._finished.get(job, ("", {}))
        return sections if finished_digest == digest else None


def failed_result(error: MemdError) -> dict[str, Any]:
    """Return the result of a job that failed before its work began."""
    return {"failure": {"kind": error.kind, "message": error.sentence, **error.facts}}
