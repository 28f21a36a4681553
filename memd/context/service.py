"""Run the context services in worker threads.

A client keeps its conversation and the decisions about it; memd keeps the stored results only.
Storing has its own threads, so that a slow disk cannot hold up plans that store nothing.
"""

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from anyio import CapacityLimiter, move_on_after, to_thread
from msgspec.structs import asdict

from memd.agent import service as agent
from memd.agent.runs import Runs
from memd.base import limits
from memd.base.canonical import LEAST_CHARACTERS as _LEAST
from memd.base.canonical import content_hash
from memd.base.clock import Clock
from memd.base.errors import Invalid, MemdError, Storage
from memd.base.names import is_text
from memd.base.recent import Recent
from memd.base.settings import Settings
from memd.context import planning, results, spilling, summary
from memd.context.errors import messages_refused, summary_failed
from memd.context.planning import ToStore
from memd.context.requests import CacheBaseline as CacheBaseline
from memd.context.requests import ContextRequest as ContextRequest
from memd.context.requests import PlannedContext as PlannedContext
from memd.context.requests import SpilledResult as SpilledResult
from memd.context.results import SessionResults, StoredTotals
from memd.context.sizing import window_of as window_of
from memd.context.values import KEEP, SPILL, Action, BlockKey, StoredResult
from memd.context.values import Decision as Decision
from memd.methods.callers import Callers
from memd.methods.method import SessionId, method
from memd.model.errors import NO_USE_TODAY, ModelNotConfiguredError, PromptTooLongError
from memd.model.port import ModelSource
from memd.rpc.call import Call
from memd.state.docs import Docs
from memd.store.disk import Disk, real_disk

TIMEOUT = "the disk did not take it in time"
Place = Annotated[int, msgspec.Meta(ge=0)]
Window = Annotated[int, msgspec.Meta(ge=0, le=1_000_000_000)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]
_WINDOW_VARIABLE = "MEMD_CONTEXT_WINDOW"
_WINDOW = r"[1-9][0-9]{0,8}"  # below 10^9, which is the bound of ``Window`` too
_NO_TEXT = "a decision has texts in UTF-8"
_CONTENT = "content"  # where an error is, in what a client sends
_LOCKS = 16
_THREADS = 4  # of each kind; a slow disk must not take all threads of the daemon
_STORING_SECONDS = 5.0  # results not stored by then stay in the conversation
_SUMMARIES_IN_MEMORY = 16  # the newest finished ones
_RETRIES = 3  # if the conversation is too long for the model, with fewer rounds each time
_NO_CALLER = "nobody waits for it any more"
_NO_SUMMARY = "the model's answer holds no summary"

T = TypeVar("T")


class Contexts:
    """The context services of one daemon: plans, and the results that are stored for them.

    Methods with a request raise Invalid. ``seconds`` is how
    long storing results may take.
    """

    def __init__(
        self,
        clock: Clock,
        table: Docs,
        callers: Callers,
        disk: Disk | None = None,
        seconds: float = _STORING_SECONDS,
    ) -> None:
        self._clock = clock
        self._table = table
        self._callers = callers
        self._disk = disk or real_disk()
        self._seconds = seconds
        # One thread at a time writes results of a session; few sessions share a lock.
        self._locks = [threading.Lock() for _ in range(_LOCKS)]
        self._planning_threads = CapacityLimiter(_THREADS)
        self._storing_threads = CapacityLimiter(_THREADS)  # for results of a request
        # For results in a file; one of 64 MiB takes some 300 MB of memory for a moment.
        self._large_file_thread = CapacityLimiter(1)
        # Counts the threads that store, also abandoned ones, which the limiters no longer count.
        self._storing_slots = threading.BoundedSemaphore(_THREADS)

    @method("context.plan", "write")
    async def plan(
        self,
        call: Call,
        *,
        cwd: str,
        session_id: SessionId,
        conversation: SessionId = "",
        messages: list[Any],
        decisions: list[Decision] | None = None,
        model: str = "",
        system: Any = None,
        tools: list[Any] | None = None,
        betas: list[str] | None = None,
        usage: dict[str, Any] | None = None,
        diagnostics: dict[str, Any] | None = None,
        reader: str = "",
        supports: list[str] | None = None,
        window: Window = 0,
        may_drop_thinking: bool = False,
        idle_seconds: Seconds = 0.0,
        request: dict[str, Any] | None = None,
        baseline: CacheBaseline | None = None,
    ) -> PlannedContext:
        """What to send in place of parts of a conversation; each is decided once and stays.

        ``messages`` are all of the conversation. ``decisions`` are those of all earlier plans;
        ``request`` and ``baseline`` are of the last one. ``usage`` and ``diagnostics`` come from
        the last reply, ``idle_seconds`` ago. ``reader`` names the tool that reads stored results:
        without it no result is stored.
        """
        context_request = await self.request(
            call,
            cwd,
            session_id,
            conversation=conversation,
            messages=messages,
            decisions={each.key: each for each in _checked(decisions or ())},
            model=model,
            system=system,
            tools=tools,
            betas=betas or (),
            usage=usage,
            diagnostics=diagnostics,
            reader=reader,
            supports=frozenset(supports or ()),
            window=window,
            may_drop_thinking=may_drop_thinking,
            idle_seconds=idle_seconds,
            members=request,
            baseline=baseline,
        )
        return await self._plan(context_request)

    async def _plan(self, request: ContextRequest) -> PlannedContext:
        """Return how to send a conversation; results that go out short are on the disk then."""
        place = results.place(request.project, request.session)
        plan = await to_thread.run_sync(planning.plan, request, limiter=self._planning_threads)
        stored: dict[BlockKey, StoredResult | str] = {item.key: TIMEOUT for item in plan.store}
        if stored:
            ended = threading.Event()

            def store() -> None:
                """Store the results until the plan has ended. Runs in a worker thread."""
                for item in plan.store:
                    if ended.is_set():
                        return
                    try:
                        stored[item.key] = self._stored(place, item.tool_use_id, item.text)
                    except MemdError as error:
                        stored[item.key] = error.sentence

            await self._store(store, self._storing_threads)
            ended.set()
        finish = partial(planning.settled_plan, plan, dict(stored))
        return await to_thread.run_sync(finish, limiter=self._planning_threads)

    @method("context.spill", "write")
    async def spill_result(
        self,
        call: Call,
        *,
        cwd: str,
        session_id: SessionId,
        tool_use_id: SessionId,
        tool: SessionId,
        content: str | None = None,
        source_path: str | None = None,
        reader: str = "",
        action: Literal["spill", "clear"] | None = None,
    ) -> SpilledResult:
        """What to send in place of one tool result, for a program that asks as soon as it has it.

        With ``action``, which a plan has decided, it is stored below its tool's limit too.
        """
        if (content is None) == (source_path is None):  # both or neither
            raise Invalid("give content or source_path")
        request = await self.request(call, cwd, session_id, reader=reader)
        return await self.spill(
            request,
            tool=tool,
            tool_use_id=tool_use_id,
            content=content,
            source_path=source_path or "",
            action=action,
        )

    async def request(self, call: Call, cwd: str, session: str, **members: Any) -> ContextRequest:
        """Return a request about a session, with its project, its settings and other ``members``.

        No result is stored while memory is switched off. Raises Invalid.
        """
        environment = call.caller.environment
        project, settings, _ = await to_thread.run_sync(self._callers.where, call, cwd)
        usual = environment.get(_WINDOW_VARIABLE, "")
        window = int(usual) if re.fullmatch(_WINDOW, usual) else 0
        if not project.enabled:
            members["reader"] = ""  # without a reader no result is stored
        return ContextRequest(project, settings, session, usual_window=window, **members)

    async def spill(
        self,
        request: ContextRequest,
        *,
        tool: str,
        tool_use_id: str,
        content: str | None = None,
        source_path: str = "",
        action: Action | None = None,
    ) -> SpilledResult:
        """Store a result if it is large, and return what to send in its place.

        The result is ``content``, or the text of the file ``source_path``. With ``action``, which
        a plan has decided, it is stored below its tool's limit too. Raises the errors of
        ``results.from_file``.
        """
        place = results.place(request.project, request.session)

        def spill() -> SpilledResult:
            """Read the text and store it. Runs in a worker thread."""
            text = results.from_file(source_path) if content is None else content
            reason = spilling.reason_to_stay(tool, len(text), request)
            if reason and not (action and reason == spilling.SMALL and len(text) >= _LEAST):
                return SpilledResult(spilled=False, reason=reason)
            try:
                digest = content_hash(text)
            except UnicodeEncodeError as error:
                raise messages_refused(_CONTENT, str(error)) from error
            item = ToStore(0, 0, tool_use_id, digest, action or SPILL, text)
            try:
                stored = self._stored(place, tool_use_id, text)
            except MemdError as error:
                return SpilledResult(spilled=False, reason=error.sentence)
            decision = planning.replacement_decision(item, stored)
            if decision is None:
                decision = Decision(tool_use_id, digest, KEEP)
                return SpilledResult(spilled=False, decision=decision, reason=KEEP)
            return SpilledResult(
                spilled=True, content=decision.content, path=stored.path, decision=decision
            )

        limiter = self._storing_threads if content is not None else self._large_file_thread
        result = await self._store(spill, limiter)
        return result or SpilledResult(spilled=False, reason=TIMEOUT)

    def _stored(self, place: results.ResultsPlace, call: str, text: str) -> StoredResult:
        """Store the text of a call's result. Blocks.

        Raises TooLarge, Storage and StateUnusableError.
        """
        folder = place.folder
        with self._locks[hash(folder) % _LOCKS]:
            of_session = self._table.get(SessionResults, folder) or SessionResults()
            used = of_session.bytes, self._totals().bytes
            result = results.store(place, call, text, used=used, disk=self._disk)
            if result.is_new:
                name = result.path.rpartition("/")[2]
                sizes = of_session.sizes | {name: result.size}
                self._table.put(SessionResults(sizes), folder, synced=False)
        return result

    async def prune(self) -> None:
        """Remove the results of sessions that stored longest ago, while all are too large.

        Raises StateUnusableError.
        """
        await to_thread.run_sync(self._prune)

    def _prune(self) -> None:
        """Remove what is too large. Blocks."""
        bytes_left = limits.STORED_BYTES * 7 // 8  # so that there is room again
        for (folder, _), stored in reversed(self._table.list_all(SessionResults).items()):
            bytes_left -= stored.bytes
            if bytes_left >= 0:
                continue
            with self._locks[hash(folder) % _LOCKS], suppress(Storage):
                stored_now = self._table.get(SessionResults, folder) or stored
                results.remove(folder, stored_now.sizes, self._disk)
                self._table.delete(SessionResults, folder)

    async def totals(self) -> StoredTotals:
        """Return how many results are stored. Raises StateUnusableError."""
        return await to_thread.run_sync(self._totals)

    def _totals(self) -> StoredTotals:
        """Return how many results are stored. Blocks."""
        stored = self._table.list_all(SessionResults).values()
        return StoredTotals(sum(len(each.sizes) for each in stored), sum(e.bytes for e in stored))

    async def _store(self, work: Callable[[], T], limiter: CapacityLimiter) -> T | None:
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
            return await to_thread.run_sync(run, limiter=limiter, abandon_on_cancel=True)
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
        booked on ``project``. Raises PromptTooLongError and Model.
        """
        if not self._awaited[digest]:
            return failed_result(summary_failed(_NO_CALLER))
        model, name = self._models.for_(settings), self._models.name(settings, summary.KIND)
        if model is None or not name:
            return failed_result(ModelNotConfiguredError("none is named for summaries"))
        shown_rounds: Sequence[str] = rounds
        for _ in range(1 + _RETRIES):
            task = summary.summary_task(
                shown_rounds, instructions, len(rounds) - len(shown_rounds), name, project
            )
            ended = await agent.run(task, model, agent.NoTools(), self._clock, progress)
            await to_thread.run_sync(self._runs.save, job, ended.record)
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
            raise summary_failed(_NO_SUMMARY if ended.finished else ended.unfinished)
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


def _checked(decisions: Iterable[Decision]) -> Iterable[Decision]:
    """Yield decisions. Raises Invalid for a text that is not UTF-8."""
    for index, each in enumerate(decisions):
        if not all(map(is_text, (each.tool_use_id, each.content_hash, each.content, each.path))):
            place = f"decisions.{index}"
            raise messages_refused(place, _NO_TEXT)
        yield each
