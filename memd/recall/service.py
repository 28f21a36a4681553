"""Serve prefetch and search.

Memories are marked in the ledger as the last step, on the event loop and without waiting, when they
are certain to be in the reply. The mark is removed if the request is cancelled at that moment.

A prompt waits no longer than its deadline for the disk or a model.
"""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar

import anyio
import anyio.lowlevel
from anyio import CapacityLimiter, to_thread
from msgspec import Struct
from msgspec.structs import replace

from memd.base.clock import Clock
from memd.base.errors import MemdError
from memd.base.settings import Settings
from memd.base.text import iso_time
from memd.base.values import Project
from memd.jobs.priority import RequestPriority
from memd.model.errors import CapReachedError, ModelError
from memd.model.port import LOCAL, Model, ModelSource
from memd.recall import block, select, selector
from memd.recall.circuit_breaker import CircuitBreaker
from memd.recall.explain import (
    NO_ROOM,
    NOT_SELECTED,
    SESSION_BUDGET,
    UNREADABLE,
    Explanation,
    explained_rows,
)
from memd.recall.search import Authorship, Finder, Hit, Reader, RecalledMemory, Selection
from memd.recall.select import AUTO, PROMPT_SECONDS, Prefetched, Prompt
from memd.state.database import StateUnusableError
from memd.state.ledger import Item, Ledger, Parents
from memd.state.search import WordSearch

__all__ = ["PROMPT_SECONDS", "Authorship", "Prefetched", "Prompt", "Recall"]

T = TypeVar("T")

MODEL = "model"
_MOST_RESULTS = 100  # of a search
_MODEL_SECONDS = 4.0  # that a model may take to choose
_MANY_PROMPTS = 3  # if so many got no reply of the model in time, it is too slow
_MARGIN_SECONDS = 0.02  # of a deadline for the steps after the selection
_FLUSH_SECONDS = 0.02  # a reply waits so long until its marks are on the disk
_THREADS = 16  # of recall alone, so that a hanging disk does not block other rooms


class _Run(Struct, frozen=True):
    """A prompt being processed; ``until`` is its deadline in monotonic seconds."""

    project: Project
    settings: Settings
    prompt: Prompt
    session: str
    until: float


class Recall:
    """Selects memories for prompts, each once per session. Use it on the event loop."""

    def __init__(
        self,
        reader: Reader,
        search: WordSearch,
        ledger: Ledger,
        clock: Clock,
        models: ModelSource | None = None,
        *,
        priority: RequestPriority | None = None,
        authorship: Authorship = Authorship(),  # noqa: B008 - immutable
    ) -> None:
        self.ledger = ledger
        self._finder = Finder(reader, search, authorship)
        self._clock = clock
        self._models = models
        self._priority = priority or RequestPriority()
        self._model_answers: Counter[bool] = Counter()  # by whether the model replied in time
        self._breaker = CircuitBreaker()
        self._threads = CapacityLimiter(_THREADS)

    async def prefetch(self, project: Project, settings: Settings, prompt: Prompt) -> Prefetched:
        """Return the memories selected for a prompt, and mark them as surfaced.

        If it is cancelled, nothing is marked. If the directory or the ledger cannot be used or the
        deadline passes, the result is empty and says why; no error is raised.
        """
        # A margin stays for sending the result to the client, half of a very short deadline.
        seconds = max(prompt.seconds - _MARGIN_SECONDS, prompt.seconds / 2)
        run = _Run(
            project,
            settings,
            prompt,
            _printable(prompt.session),
            self._clock.monotonic() + seconds,
        )
        reason = select.gate(project, settings, prompt.query)
        try:
            with self._clock.move_on_after(seconds):
                await self._begin(run.session, prompt.parents, use=not prompt.explain)
                total = self.ledger.surfaced(run.session).bytes
                if not reason and total >= select.SESSION_BYTES:
                    reason = select.SESSION_BUDGET
                if not reason:
                    return await self._select_and_send(run)
                return self._empty_result(run, reason)
        except StateUnusableError as error:
            return self._empty_result(run, reason or select.LEDGER_UNAVAILABLE, error.sentence)
        except MemdError as error:  # an unreadable directory must not fail the client's turn
            return self._empty_result(run, select.UNREADABLE, error.sentence)
        return self._empty_result(run, select.DEADLINE)

    @property
    def model_is_too_slow(self) -> bool:
        """Whether three or more prompts used a model and none got its reply in time."""
        return self._model_answers[False] >= _MANY_PROMPTS and not self._model_answers[True]

    async def search(self, project: Project, query: str, limit: int) -> tuple[Hit, ...]:
        """Return the memories that have a word of the query, the best first, marking nothing.

        Raises the errors of reading a directory.
        """
        most = min(max(limit, 1), _MOST_RESULTS)
        find = partial(self._finder.search, project.memory_dir, query, most)
        return await to_thread.run_sync(find, abandon_on_cancel=True)

    async def begin(self, session: str, parents: Parents) -> None:
        """Load a session's marks; a new session inherits those of its parents."""
        with suppress(StateUnusableError):  # prompts then report it
            await self._begin(_printable(session), parents)
            await self.flush()

    async def given(self, session: str, directory: str, paths: Collection[str]) -> None:
        """Mark memories as surfaced that a session has in its context because it wrote them."""
        session = _printable(session)
        items = await self._in_thread(self._finder.items, directory, paths)
        with suppress(StateUnusableError):
            await self._begin(session)
            total = self.ledger.surfaced(session).bytes
            self.ledger.mark(session, items, total, self._clock.now())
        await self.flush()

    async def reset(self, session: str, but: Collection[str] = ()) -> None:
        """Remove a session's marks ``but`` some absolute paths, after it was compacted."""
        session = _printable(session)
        with suppress(StateUnusableError):  # so that it counts as known and inherits nothing later
            await self._begin(session)
        self.ledger.reset(session, but)
        await self.flush()

    async def flush(self) -> None:
        """Save the ledger; marks that the state file refuses are saved with the next ones."""
        with suppress(StateUnusableError):
            await to_thread.run_sync(self.ledger.flush)

    async def _begin(self, session: str, parents: Parents = frozenset, *, use: bool = True) -> None:
        """Load a session's marks and, with ``use``, record that it is used."""
        loaded: Collection[str] = ()
        if not self.ledger.known(session):
            loaded = await self._in_thread(self.ledger.load, session, parents)
        if use:
            self.ledger.use(session, self._clock.now(), loaded)

    async def _select_and_send(self, run: _Run) -> Prefetched:
        """Select memories and mark them. Raises the errors of reading a directory."""
        project, settings, prompt = run.project, run.settings, run.prompt
        model = self._model(settings) if prompt.strategy != LOCAL else None
        surfaced = self.ledger.surfaced(run.session).paths
        find = partial(self._finder.select, for_model=model is not None)
        selection = await self._in_thread(
            find, project, settings, prompt, surfaced, self._clock.now()
        )
        candidates, strategy, note = selection.candidates, LOCAL, ""
        if selection.empty:
            result = self._empty_result(run, select.NO_CANDIDATES)
        else:
            if model is not None:
                of_model, note = await self._ask_model(run, model, selection)
                if of_model is not None:
                    candidates, strategy = of_model, MODEL
            elif prompt.strategy == MODEL:
                note = selector.NO_MODEL
            sent = await self._send(run, candidates)
            result = replace(sent, strategy=strategy, note=note or None)
        if not prompt.explain:
            return result
        explanation = await self._in_thread(self._explain, run, selection, candidates, result)
        return replace(result, explanation=explanation)

    def _model(self, settings: Settings) -> Model | None:
        """Return the model that is configured for recall, ``None`` if there is none."""
        if self._models is None or not self._model_name(settings):
            return None
        return self._models.for_(settings)

    def _model_name(self, settings: Settings) -> str:
        """Return the name of the model that is configured for recall, "" if there is none."""
        return self._models.name(settings, "recall") if self._models else ""

    async def _ask_model(
        self, run: _Run, model: Model, selection: Selection
    ) -> tuple[tuple[RecalledMemory, ...] | None, str]:
        """Return a model's selection and "" or a note; ``None`` with the reason if it has none."""
        remaining = run.until - self._clock.monotonic()
        seconds = min(_MODEL_SECONDS, remaining - _MARGIN_SECONDS)
        if seconds < selector.LEAST_SECONDS:
            self._model_answers[False] += 1
            return None, selector.NO_TIME
        if not selection.options:
            return (), ""
        prompt, model_key = run.prompt, repr(run.settings.model)
        may_ask = self._breaker.allows(model_key, self._clock.monotonic())
        if prompt.strategy == AUTO and not may_ask:
            return None, selector.LEFT_ALONE
        most = select.most_memories(prompt.limit, run.settings)
        question = selector.question(
            selection.options,
            prompt.query,
            prompt.recent_tools,
            limit=most,
            model=self._model_name(run.settings),
            seconds=seconds,
            project=run.project.memory_dir,
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
        make = partial(self._finder.candidates, run.project.memory_dir, prompt.index)
        return await self._in_thread(make, paths, self._clock.now()), ""

    async def _send(self, run: _Run, candidates: Sequence[RecalledMemory]) -> Prefetched:
        """Mark the candidates that fit the budget and return them; an explanation marks nothing."""
        units = run.prompt.room
        text, shown_count = block.render([candidate.memory for candidate in candidates], units)
        memory_of = {candidate.item: candidate.memory for candidate in candidates[:shown_count]}
        items = tuple(memory_of)
        if run.prompt.explain:
            total = self.ledger.surfaced(run.session).bytes
            fitting_items = self.ledger.fitting(run.session, items, select.SESSION_BYTES)
            memories = tuple(memory_of[item] for item in fitting_items)
            return Prefetched(memories, None, LOCAL, total, block.render(memories, units)[0])
        await anyio.lowlevel.checkpoint()  # a cancelled prompt marks nothing
        now = self._clock.now()
        marked, total = self.ledger.mark(run.session, items, select.SESSION_BYTES, now)
        sent = tuple(memory_of[item] for item in marked)
        if len(sent) != len(candidates):  # the block has only what is sent
            text = block.render(sent, units)[0]
        if marked:
            await self._save(run.session, marked)
        return Prefetched(sent, None, LOCAL, total, text)

    async def _save(self, session: str, marked: Sequence[Item]) -> None:
        """Save marks, waiting 20 ms for the disk at most; if cancelled, remove them again."""
        try:
            with self._clock.move_on_after(_FLUSH_SECONDS), suppress(StateUnusableError):
                await self._in_thread(self.ledger.flush)
        except anyio.get_cancelled_exc_class():
            self.ledger.unmark(session, marked)
            raise

    def _explain(
        self,
        run: _Run,
        selection: Selection,
        candidates: Sequence[RecalledMemory],
        result: Prefetched,
    ) -> Explanation:
        """Return the explanation of a result that was selected from the candidates. Blocks."""
        directory, by_model = run.project.memory_dir, result.strategy == MODEL
        prefix = f"{directory}/"
        # Candidates beyond the block's size had no room; others were over the session's budget.
        _, fitting = block.render([candidate.memory for candidate in candidates])
        paths = [candidate.memory.path.removeprefix(prefix) for candidate in candidates]
        rows = explained_rows(
            selection.ranked,
            selection.excluded,
            sent={memory.path.removeprefix(prefix): memory.name for memory in result.memories},
            unsent=dict.fromkeys(paths[:fitting], SESSION_BUDGET)
            | dict.fromkeys(paths[fitting:], NO_ROOM),
            otherwise=NOT_SELECTED if by_model else UNREADABLE,
        )
        sightings = [self.ledger.last_surfaced(directory, row.path) for row in rows]
        return Explanation(
            result.strategy,
            result.note or "",
            selection.count,
            result.session_bytes,
            select.SESSION_BYTES,
            tuple(
                replace(row, last_surfaced=iso_time(sighting.at)) if sighting else row
                for row, sighting in zip(rows, sightings, strict=True)
            ),
        )

    def _empty_result(self, run: _Run, reason: str, note: str = "") -> Prefetched:
        """Return an empty result with the reason why it was skipped."""
        if not note and run.prompt.strategy == MODEL and self._model(run.settings) is None:
            note = selector.NO_MODEL
        total = self.ledger.surfaced(run.session).bytes
        return Prefetched((), reason, LOCAL, total, "", note or None)

    async def _in_thread(self, work: Callable[..., T], *arguments: object) -> T:
        """Run blocking work in a thread, which is abandoned if the caller is cancelled."""
        return await to_thread.run_sync(
            partial(work, *arguments), abandon_on_cancel=True, limiter=self._threads
        )


def _printable(session: str) -> str:
    """Return a session's name with characters replaced that UTF-8 cannot encode."""
    return session.encode(errors="replace").decode()
