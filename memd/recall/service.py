"""Serve prefetch and search, and keep the indices up to date in the background.

Memories are marked in the ledger as the last step, on the event loop and without waiting, when they
are certain to be in the reply. The mark is removed if the request is cancelled at that moment.

A prompt waits no longer than its deadline for the disk, an unfinished index or a model.
"""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar

import anyio
import anyio.lowlevel
from anyio import CapacityLimiter, to_thread
from anyio.abc import TaskStatus
from msgspec.structs import replace

from memd.base.clock import Clock
from memd.base.errors import Busy, MemdError
from memd.base.settings import Settings
from memd.base.values import Project
from memd.jobs.priority import RequestPriority
from memd.model.errors import CapReachedError, ModelError
from memd.model.port import LOCAL, Model, ModelSource
from memd.recall import block, explain, local, select, selector
from memd.recall.circuit_breaker import CircuitBreaker
from memd.recall.explain import Explanation
from memd.recall.indexes import Indexes, Reader
from memd.recall.local import (
    Authorship,
    Hit,
    PromptRun,
    RecallRequest,
    RecallSelection,
    SurfacedCandidate,
)
from memd.recall.select import AUTO, PROMPT_SECONDS, Prefetched, Prompt
from memd.state.database import StateUnusableError
from memd.state.ledger import Item, Ledger, Parents

__all__ = ["PROMPT_SECONDS", "Authorship", "Prefetched", "Prompt", "Recall"]

T = TypeVar("T")

MODEL = "model"
_MOST_RESULTS = 100  # of a search
_MODEL_SECONDS = 4.0  # that a model may take to choose
_MANY_PROMPTS = 3  # if so many got no reply of the model in time, it is too slow
_MARGIN_SECONDS = 0.02  # of a deadline for the steps after the selection
_FLUSH_SECONDS = 0.02  # a reply waits so long until its marks are on the disk
_MEMORIES_AT_ONCE = (
    20  # memories indexed at once in the background (4 ms), so that prompts are not delayed
)
_THREADS = 16  # of recall alone, so that a hanging disk does not block other rooms


class Recall:
    """Selects memories for prompts, each once per session. Use it on the event loop."""

    def __init__(
        self,
        reader: Reader,
        ledger: Ledger,
        clock: Clock,
        indexes: Indexes,
        models: ModelSource | None = None,
        *,
        priority: RequestPriority | None = None,
        authorship: Authorship = Authorship(),  # noqa: B008 - immutable
    ) -> None:
        self._reader = reader
        self.ledger = ledger
        self._clock = clock
        self._indexes = indexes
        self._models = models
        self._priority = priority or RequestPriority()
        self._authorship = authorship
        self._model_answers: Counter[bool] = Counter()  # by whether the model replied in time
        self._breaker = CircuitBreaker()
        self._threads = CapacityLimiter(_THREADS)
        self._unindexed: dict[str, None] = {}  # directories with background work, in their order
        self._has_work = anyio.Event()  # set when a directory is added to these

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Index in the background until cancelled; then save the ledger and close the indices."""
        task_status.started()
        try:
            while True:
                await self._has_work.wait()
                self._has_work = anyio.Event()
                while self._unindexed:
                    await self._index_some(next(iter(self._unindexed)))
        finally:
            with anyio.CancelScope(shield=True):
                await self._flush()
                await to_thread.run_sync(self._indexes.close)

    def prepare(self, project: Project, settings: Settings) -> None:
        """Schedule indexing before a session's first prompt, if recall is on for the project."""
        if project.enabled and settings.recall.enabled:
            self.warm(project.memory_dir)

    async def open(self, project: Project, settings: Settings) -> None:
        """Schedule indexing, and wait until the index on the disk can be searched."""
        self.prepare(project, settings)
        if project.memory_dir in self._unindexed:
            await self._index_some(project.memory_dir)

    def warm(self, directory: str) -> None:
        """Schedule a directory's index to be brought up to date in the background."""
        self._unindexed[directory] = None
        self._has_work.set()

    async def prefetch(self, project: Project, settings: Settings, prompt: Prompt) -> Prefetched:
        """Return the memories selected for a prompt, and mark them as surfaced.

        If it is cancelled, nothing is marked. If the directory or the ledger cannot be used or the
        deadline passes, the result is empty and says why; no error is raised.
        """
        # A margin stays for sending the result to the client, half of a very short deadline.
        until = self._clock.monotonic() + max(prompt.seconds - _MARGIN_SECONDS, prompt.seconds / 2)
        request = PromptRun(
            project, settings, prompt, select.printable_session(prompt.session), until
        )
        reason = select.gate(project, settings, prompt.query)
        try:
            with self._clock.move_on_after(until - self._clock.monotonic()):
                await self._begin(request.session, prompt.parents, use=not prompt.explain)
                if (
                    not reason
                    and self.ledger.surfaced(request.session).bytes >= select.SESSION_BYTES
                ):
                    reason = select.SESSION_BUDGET
                if reason:
                    return self._empty_result(request, reason)
                return await self._select_and_send(request)
        except StateUnusableError as error:
            return self._empty_result(request, reason or select.LEDGER_UNAVAILABLE, error.sentence)
        except MemdError as error:  # an unreadable directory must not fail the client's turn
            if not isinstance(error, Busy):
                return self._empty_result(request, select.UNREADABLE, error.sentence)
        return self._empty_result(request, select.DEADLINE)

    @property
    def model_is_too_slow(self) -> bool:
        """Whether three or more prompts used a model and none got its reply in time."""
        return self._model_answers[False] >= _MANY_PROMPTS and not self._model_answers[True]

    async def search(self, project: Project, query: str, limit: int) -> tuple[Hit, ...]:
        """Return the memories that have a word of the query, the best first, marking nothing.

        Raises the errors of reading a directory.
        """
        directory, most_hits = project.memory_dir, min(max(limit, 1), _MOST_RESULTS)
        find = partial(local.search, self._indexes, self._reader, directory, query, most_hits)
        return await to_thread.run_sync(find, abandon_on_cancel=True)

    async def begin(self, session: str, parents: Parents) -> None:
        """Load a session's marks; a new session inherits those of its parents."""
        with suppress(StateUnusableError):  # prompts then report it
            await self._begin(select.printable_session(session), parents)
            await self._flush()

    async def given(self, session: str, directory: str, paths: Collection[str]) -> None:
        """Mark memories as surfaced that a session has in its context because it wrote them."""
        session = select.printable_session(session)
        items = await self._in_thread(local.ledger_items, self._reader, directory, paths)
        with suppress(StateUnusableError):
            await self._begin(session)
            total = self.ledger.surfaced(session).bytes
            self.ledger.mark(session, items, total, self._clock.now())
        await self._flush()

    async def reset(self, session: str, but: Collection[str] = ()) -> None:
        """Remove a session's marks ``but`` some absolute paths, after it was compacted."""
        session = select.printable_session(session)
        with suppress(StateUnusableError):  # so that it counts as known and inherits nothing later
            await self._begin(session)
        self.ledger.reset(session, but)
        await self._flush()

    async def forget(self) -> None:
        """Save the ledger and remove all indices. Raises Busy and OSError."""
        await self._flush()
        await to_thread.run_sync(self._indexes.forget)

    async def _begin(self, session: str, parents: Parents = frozenset, *, use: bool = True) -> None:
        """Load a session's marks and, with ``use``, record that it is used."""
        loaded: Collection[str] = ()
        if not self.ledger.known(session):
            loaded = await self._in_thread(self.ledger.load, session, parents)
        if use:
            self.ledger.use(session, self._clock.now(), loaded)

    async def _select_and_send(self, request: PromptRun) -> Prefetched:
        """Select memories and mark them. Raises the errors of reading a directory."""
        directory = request.project.memory_dir
        model = self._model_for_prompt(request)
        selection = await self._in_thread(
            local.select_memories, self._indexes, self._reader, self._ranker_request(request, model)
        )
        if selection.busy:
            self.warm(directory)
        if selection.empty:
            empty = self._empty_result(request, select.NO_CANDIDATES)
            return await self._with_explanation(empty, request, selection)
        candidates, strategy, note = selection.offers, LOCAL, ""
        if model is not None:
            of_model, note = await self._ask_model(request, model, selection)
            if of_model is not None:
                candidates, strategy = of_model, MODEL
        elif request.prompt.strategy == MODEL:
            note = selector.NO_MODEL
        notes = "; ".join(n for n in (note, selection.unfinished, *selection.notes) if n)
        sent = await self._send(request, candidates)
        result = replace(sent, strategy=strategy, note=notes or None)
        return await self._with_explanation(result, request, selection, candidates)

    def _model_for_prompt(self, request: PromptRun) -> Model | None:
        """Return the model to ask, or ``None``."""
        if request.prompt.strategy == LOCAL:
            return None
        return self._configured_model(request.settings)

    def _configured_model(self, settings: Settings) -> Model | None:
        """Return the model that is configured for recall, ``None`` if there is none."""
        if self._models is None or not self._model_name(settings):
            return None
        return self._models.for_(settings)

    def _model_name(self, settings: Settings) -> str:
        """Return the name of the model that is configured for recall, "" if there is none."""
        return self._models.name(settings, "recall") if self._models else ""

    def _ranker_request(self, request: PromptRun, model: Model | None) -> RecallRequest:
        """Return the request to the local ranker for a prompt, with its limits and deadline."""
        return request.ranker_request(
            surfaced=self.ledger.surfaced(request.session).paths,
            now=self._clock.now(),
            monotonic=self._clock.monotonic,
            authorship=self._authorship,
            for_model=model is not None,
        )

    async def _ask_model(
        self, request: PromptRun, model: Model, selection: RecallSelection
    ) -> tuple[tuple[SurfacedCandidate, ...] | None, str]:
        """Return a model's selection and "" or a note; ``None`` with the reason if it has none."""
        remaining = request.until - self._clock.monotonic()
        seconds = min(_MODEL_SECONDS, remaining - _MARGIN_SECONDS)
        if seconds < selector.LEAST_SECONDS:
            self._model_answers[False] += 1
            return None, selector.NO_TIME
        if not selection.options:
            return (), ""
        prompt, model_key = request.prompt, repr(request.settings.model)
        may_ask = self._breaker.allows(model_key, self._clock.monotonic())
        if prompt.strategy == AUTO and not may_ask:
            return None, selector.LEFT_ALONE
        most = select.most_memories(prompt.limit, request.settings)
        question = selector.question(
            selection.options,
            prompt.query,
            prompt.recent_tools,
            limit=most,
            model=self._model_name(request.settings),
            seconds=seconds,
            project=request.project.memory_dir,
        )
        paths, note = None, selector.OVERDUE
        try:
            with self._clock.move_on_after(seconds), self._priority.uncounted():
                reply = await model.ask(question)
                known = [header.path for header in selection.options]
                paths, problem = selector.read(reply, known, most)
                note = selector.with_local(problem) if problem else ""
        except CapReachedError as error:  # the model was not asked, so it does not count as failed
            return None, selector.with_local(error.sentence)
        except ModelError as error:
            note = selector.with_local(error.sentence)
        worked = paths is not None
        self._model_answers[worked] += 1
        self._breaker = self._breaker.after_prompt(
            model_key, self._clock.monotonic(), worked=worked
        )
        if paths is None:
            return None, note
        make = partial(local.make_candidates, self._reader, self._ranker_request(request, model))
        return await self._in_thread(make, paths), ""

    async def _send(
        self, request: PromptRun, candidates: Sequence[SurfacedCandidate]
    ) -> Prefetched:
        """Mark the candidates that fit the budget and return them; an explanation marks nothing."""
        units = request.prompt.room
        text, shown_count = block.render([candidate.memory for candidate in candidates], units)
        memory_of = {candidate.item: candidate.memory for candidate in candidates[:shown_count]}
        items = tuple(memory_of)
        if request.prompt.explain:
            total = self.ledger.surfaced(request.session).bytes
            fitting_items = self.ledger.fitting(request.session, items, select.SESSION_BYTES)
            memories = tuple(memory_of[item] for item in fitting_items)
            return Prefetched(memories, None, LOCAL, total, block.render(memories, units)[0])
        await anyio.lowlevel.checkpoint()  # a cancelled prompt marks nothing
        now = self._clock.now()
        marked, total = self.ledger.mark(request.session, items, select.SESSION_BYTES, now)
        sent = tuple(memory_of[item] for item in marked)
        if len(sent) != len(candidates):  # the block has only what is sent
            text = block.render(sent, units)[0]
        if marked:
            await self._save(request.session, marked)
        return Prefetched(sent, None, LOCAL, total, text)

    async def _save(self, session: str, marked: Sequence[Item]) -> None:
        """Save marks, waiting 20 ms for the disk at most; if cancelled, remove them again."""
        try:
            with self._clock.move_on_after(_FLUSH_SECONDS), suppress(StateUnusableError):
                await self._in_thread(self.ledger.flush)
        except anyio.get_cancelled_exc_class():
            self.ledger.unmark(session, marked)
            raise

    async def _with_explanation(
        self,
        result: Prefetched,
        request: PromptRun,
        selection: RecallSelection,
        candidates: Sequence[SurfacedCandidate] = (),
    ) -> Prefetched:
        """Return the result with an explanation, if the prompt asks for one."""
        if not request.prompt.explain:
            return result
        directory, by_model = request.project.memory_dir, result.strategy == MODEL
        rows = local.finished_rows(
            selection.rows, directory, result.memories, candidates, by_model=by_model
        )
        shown_rows = explain.ordered(rows)
        add_times = partial(local.rows_with_sightings, self.ledger, directory)
        rows_with_times = await self._in_thread(add_times, shown_rows)
        facts = (result.strategy, result.note or "", selection.count, result.session_bytes)
        explanation = Explanation(*facts, select.SESSION_BYTES, rows_with_times)
        return replace(result, explanation=explanation)

    def _empty_result(self, request: PromptRun, reason: str, note: str = "") -> Prefetched:
        """Return an empty result with the reason why it was skipped."""
        asks_model = request.prompt.strategy == MODEL
        if not note and asks_model and self._model_for_prompt(request) is None:
            note = selector.NO_MODEL
        total = self.ledger.surfaced(request.session).bytes
        return Prefetched((), reason or None, LOCAL, total, "", note or None)

    async def _index_some(self, directory: str) -> None:
        """Do one slice of a directory's indexing; after an error the rest is left for later."""
        try:
            has_more = await self._in_thread(self._work, directory)
        except MemdError:
            has_more = False
        if not has_more:
            self._unindexed.pop(directory, None)

    def _work(self, directory: str) -> bool:
        """Index one slice of a directory after running prompts; return whether more is left."""
        self._priority.yield_to_requests()
        return self._indexes.work(directory, _MEMORIES_AT_ONCE)

    async def _flush(self) -> None:
        """Save the ledger; marks that the state file refuses are saved with the next ones."""
        with suppress(StateUnusableError):
            await to_thread.run_sync(self.ledger.flush)

    async def _in_thread(self, work: Callable[..., T], *arguments: object) -> T:
        """Run blocking work in a thread, which is abandoned if the caller is cancelled."""
        return await to_thread.run_sync(
            partial(work, *arguments), abandon_on_cancel=True, limiter=self._threads
        )
