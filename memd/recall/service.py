"""Serve prefetch and search.

All that one prompt needs of the disk is done in one thread, from finding its project to marking the
memories in the ledger as the last step. A request that is cancelled before its reply is there marks
nothing.

A prompt waits no longer than its deadline for the disk or a model.
"""

from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from typing import Annotated, Any, Literal, cast

import anyio
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from memd.agent import service as agent
from memd.base.clock import Clock
from memd.base.errors import MemdError
from memd.base.settings import Settings
from memd.base.text import iso_time
from memd.base.threads import in_thread
from memd.base.values import Project
from memd.jobs.priority import RequestPriority
from memd.methods.callers import AgentName, Callers, SubagentScope
from memd.methods.method import Limit, SessionId, method
from memd.model import breaker
from memd.model.breaker import PROMPTS, Breaker
from memd.model.errors import CapReachedError
from memd.model.port import LOCAL, Model, ModelSource
from memd.projects.projects import Located
from memd.recall import block, select, selector
from memd.recall.explain import (
    NO_ROOM,
    NOT_SELECTED,
    SESSION_BUDGET,
    UNREADABLE,
    Explanation,
    explained_rows,
)
from memd.recall.own_rules import UNITS, OwnRules
from memd.recall.search import (
    Authorship,
    Distilled,
    Finder,
    Hit,
    Reader,
    RecalledMemory,
    Selection,
)
from memd.recall.select import AUTO, PROMPT_SECONDS, Prefetched, Prompt
from memd.rpc.call import Call
from memd.state.database import StateUnusableError
from memd.state.docs import Docs
from memd.state.ledger import Delivery, Ledger, Parents
from memd.state.search import WordSearch
from memd.text.words import count

__all__ = ["PROMPT_SECONDS", "Authorship", "Prefetched", "Prompt", "Recall"]


MODEL = "model"
_MOST_RESULTS = 100  # of a search
_MODEL_SECONDS = 4.0  # that a model may take to choose
_MARGIN_SECONDS = 0.02  # of a deadline for the steps after the selection
_THREADS = 16  # of recall alone, so that a hanging disk does not block other rooms
_COMMAND_LINE = "memctl"  # a person's, unless an assistant started it


_NO_PROJECT, _DEFAULTS = Project("", "", "", "", "", enabled=False), Settings()  # not located yet

Locate = Callable[[], Located]  # may block


class Hits(Struct, frozen=True):
    """The best hits first."""

    hits: tuple[Hit, ...]


class _Run(Struct):
    """A prompt being processed; ``until`` is its deadline in monotonic seconds.

    ``locate`` finds the project and its settings; then the model is set that is to choose, if there
    is one, and the ``breaker`` of the project's prompts if the last use of a model failed.
    ``reason`` names the gate that closed, ``result`` is set once the memories are marked.
    """

    locate: Locate
    prompt: Prompt
    delivery: Delivery
    until: float = 0.0
    project: Project = _NO_PROJECT
    settings: Settings = _DEFAULTS
    model: Model | None = None
    breaker: Breaker | None = None
    reason: str = ""
    result: Prefetched | None = None


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
        table: Docs,
        priority: RequestPriority | None = None,
        authorship: Authorship = Authorship(),  # noqa: B008 - immutable
        distilled: Distilled = lambda _: {},
        callers: Callers,
    ) -> None:
        self.ledger = ledger
        self._finder = Finder(reader, search, authorship, distilled)
        self._clock = clock
        self._callers = callers
        self._models = models
        self._priority = priority or RequestPriority()
        self._docs = table  # the stored breakers
        # Runs blocking work in a thread, which is abandoned if the caller is cancelled.
        self._in_thread: Callable[..., Awaitable[Any]] = partial(
            in_thread, abandon=True, limiter=anyio.Semaphore(_THREADS, fast_acquire=True)
        )

    async def prefetch(self, locate: Locate, prompt: Prompt) -> Prefetched:
        """Return the memories selected for a prompt, and mark them as surfaced.

        ``locate`` returns the prompt's project and settings and is called in a thread. Raises what
        it raises. If the request is cancelled, nothing is marked. If the directory or the ledger
        cannot be used or the deadline passes, the result is empty and says why.
        """
        return await self._prefetch(_Run(locate, prompt, Delivery(_printable(prompt.session))))

    async def _prefetch(self, run: _Run) -> Prefetched:
        """Do what ``prefetch`` does; afterwards ``run`` has the project, if it was found."""
        # A margin stays for sending the result to the client, half of a very short deadline.
        seconds = max(run.prompt.seconds - _MARGIN_SECONDS, run.prompt.seconds / 2)
        run.until = self._clock.monotonic() + seconds
        skipped, note = select.DEADLINE, ""
        try:
            with self._clock.move_on_after(seconds):
                selection = await self._in_thread(self._select, run)
                if selection is not None:
                    paths, note = await self._ask_model(run, selection)
                    await self._in_thread(self._send, run, selection, paths, note)
        except anyio.get_cancelled_exc_class():
            self.ledger.cancel(run.delivery)
            raise
        except StateUnusableError as error:
            skipped, note = run.reason or select.LEDGER_UNAVAILABLE, error.sentence
        except MemdError as error:
            if run.project is _NO_PROJECT:
                raise
            # An unreadable directory must not fail the client's turn.
            skipped, note = select.UNREADABLE, error.sentence
        # At the deadline it is there if only the state file has not taken the marks yet.
        if run.result is not None:
            return run.result
        self.ledger.cancel(run.delivery)
        return self._empty_result(run, skipped, note)

    async def begin(self, session: str, parents: Parents) -> None:
        """Load a session's marks; a new session inherits those of its parents."""

        def begin() -> None:
            with suppress(StateUnusableError):  # prompts then report it
                self.ledger.open(_printable(session), self._clock.now(), parents)
                self.ledger.flush()

        await self._in_thread(begin)

    def given(self, session: str, directory: str, paths: Collection[str]) -> None:
        """Mark memories as surfaced that a session has in its context by other ways. Blocks."""
        items, now = self._finder.items(directory, paths), self._clock.now()
        with suppress(StateUnusableError):
            self.ledger.open(_printable(session), now)
            self.ledger.mark(Delivery(_printable(session)), items, None, now)
            self.ledger.flush()

    def own_rules(self, directory: str, room: int = UNITS) -> OwnRules:
        """Return the person's own rules for a session's start, none if they cannot be read.

        Blocks.
        """
        with suppress(MemdError):
            return self._finder.own_rules(directory, room)
        return OwnRules()

    async def reset(self, session: str, but: Collection[str] = ()) -> None:
        """Remove a session's marks ``but`` some absolute paths, after it was compacted."""

        def reset() -> None:
            with suppress(StateUnusableError):  # it counts as known and inherits nothing later
                self.ledger.open(_printable(session), self._clock.now())
            self.ledger.reset(_printable(session), but)
            with suppress(StateUnusableError):
                self.ledger.flush()

        await self._in_thread(reset)

    async def flush(self) -> None:
        """Save the ledger; marks that the state file refuses are saved with the next ones."""
        with suppress(StateUnusableError):
            await in_thread(self.ledger.flush)

    def _select(self, run: _Run) -> Selection | None:
        """Select memories for a prompt and set its result; return what a model has to choose from.

        Blocks. Raises what locating the project raises, the errors of reading a directory, and
        StateUnusableError.
        """
        prompt = run.prompt
        project, settings, _ = run.locate()
        run.project, run.settings = project, settings
        if prompt.strategy != LOCAL and self._models and (model := self._models.for_(settings)):
            run.model = model if self._models.name(settings, "recall") else None
        words, now = count(prompt.query), self._clock.now()
        if not project.enabled:
            run.reason = select.MEMORY_OFF
        elif not settings.recall.enabled:
            run.reason = select.RECALL_OFF
        elif words <= 1:
            run.reason = select.SINGLE_WORD if words else select.NO_TEXT
        surfaced = self.ledger.open(
            run.delivery.session, now, prompt.parents, use=not prompt.explain
        )
        if not run.reason and surfaced.bytes >= select.SESSION_BYTES:
            run.reason = select.SESSION_BUDGET
        if run.reason:
            run.result = self._empty_result(run, run.reason)
            return None
        note = selector.NO_MODEL if prompt.strategy == MODEL and run.model is None else ""
        if run.model is not None:
            run.breaker = breaker.find(self._docs, project.memory_dir, PROMPTS)
            if prompt.strategy == AUTO and run.breaker and run.breaker.is_open(now):
                run.model, note = None, selector.LEFT_ALONE
        selection = self._finder.select(
            project, settings, prompt, surfaced.paths, now, for_model=run.model is not None
        )
        if run.model is not None and not selection.empty:
            return selection
        self._send(run, selection, None, note)
        return None

    def _send(
        self, run: _Run, selection: Selection, paths: Sequence[str] | None, note: str
    ) -> None:
        """Mark what fits the budget of a selection, and set it as the result. Blocks.

        ``paths`` are those that a model chose, if one did. An explanation marks nothing.
        """
        prompt, candidates, now = run.prompt, selection.candidates, self._clock.now()
        if paths is not None:
            # Logs are in no manifest: the local ranker has chosen their lines.
            logs = tuple(each for each in candidates if each.is_log)
            candidates = self._finder.candidates(selection.place, prompt.index, paths, now)
            candidates = (candidates + logs)[: selection.most]
        if selection.empty:
            result = self._empty_result(run, select.NO_CANDIDATES)
        else:
            memories = [candidate.memory for candidate in candidates]
            text, shown_count = block.render(memories, prompt.room)
            memory_of = {each.item: each.memory for each in candidates[:shown_count]}
            marked, total = self.ledger.mark(
                run.delivery, tuple(memory_of), select.SESSION_BYTES, now, store=not prompt.explain
            )
            sent = tuple(memory_of[item] for item in marked)
            if len(sent) != len(candidates):  # the block has only what is sent
                text = block.render(sent, prompt.room)[0]
            has_no_room = any(total + item.bytes > select.SESSION_BYTES for item in memory_of)
            skipped = select.SESSION_BUDGET if has_no_room and not sent else None
            strategy = LOCAL if paths is None else MODEL
            result = Prefetched(sent, skipped, strategy, total, text, note or None)
        if prompt.explain:
            explanation = self._explain(run, selection, candidates, result)
            result = replace(result, explanation=explanation)
        run.result = result
        if run.delivery.items:
            with suppress(StateUnusableError):
                self.ledger.flush()

    async def _ask_model(
        self, run: _Run, selection: Selection
    ) -> tuple[tuple[str, ...] | None, str]:
        """Return the paths that a model chose and "", or ``None`` and why it chose none."""
        remaining = run.until - self._clock.monotonic()
        seconds = min(_MODEL_SECONDS, remaining - _MARGIN_SECONDS)
        if seconds < selector.LEAST_SECONDS:
            return None, selector.NO_TIME
        if run.model is None or self._models is None or not selection.options:
            return (), ""
        prompt = run.prompt
        most = selection.most
        task = selector.task(
            selection.options,
            prompt.query,
            prompt.recent_tools,
            limit=most,
            model=self._models.name(run.settings, "recall"),
            seconds=seconds,
            project=run.project.memory_dir,
        )
        try:
            with self._priority.uncounted():
                ended = await agent.run(task, run.model, agent.NoTools(), self._clock)
        except StateUnusableError as error:  # the cost cannot be recorded
            return None, selector.with_local(error.sentence)
        known = [header.path for header in selection.options]
        paths, problem = selector.read(ended, known, most)
        if isinstance(ended.error, CapReachedError):
            return None, selector.with_local(problem)  # it was not asked, so it has not failed
        if paths is None or run.breaker is not None:
            await self._in_thread(self._count_use_of_model, run, problem)
        return paths, selector.with_local(problem) if problem else ""

    def _count_use_of_model(self, run: _Run, problem: str) -> None:
        """Open or close the breaker of a project's prompts after one asked its model. Blocks."""
        directory = run.project.memory_dir
        with suppress(StateUnusableError):
            if problem:
                breaker.model_failed(self._docs, directory, PROMPTS, problem, self._clock.now())
            else:
                breaker.model_worked(self._docs, directory, PROMPTS)

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
        if not note and run.prompt.strategy == MODEL and run.model is None:
            note = selector.NO_MODEL
        total = self.ledger.bytes_of(run.delivery.session)
        return Prefetched((), reason, LOCAL, total, "", note or None)

    @method("prefetch", "read")
    async def prefetched(
        self,
        call: Call,
        *,
        cwd: str,
        session_id: SessionId,
        query: str,
        recent_tools: tuple[str, ...] = (),
        read_paths: tuple[str, ...] = (),
        limit: Limit | None = None,
        strategy: Literal["auto", "model", "local"] = "auto",
        deadline_ms: Annotated[int, msgspec.Meta(ge=10, le=60_000)] | None = None,
        explain: bool = False,
    ) -> Prefetched:
        """The few memories that are relevant for this prompt; each is returned once per session."""
        prompt = Prompt(
            session=session_id,
            query=query,
            recent_tools=recent_tools,
            read_paths=read_paths,
            limit=limit,
            strategy=strategy,
            seconds=PROMPT_SECONDS if deadline_ms is None else deadline_ms / 1000,
            explain=explain,
        )
        # A person looks: nobody works in that session, and it counts as no use.
        is_look = call.caller.client == _COMMAND_LINE and not await in_thread(
            self._callers.started_by_an_assistant, call
        )
        locate = partial(self._callers.where, call, cwd)
        run = _Run(locate, prompt, Delivery(_printable(session_id), for_person=is_look))
        result = await self._prefetch(run)
        if run.project is not _NO_PROJECT and not explain and not is_look:
            self._callers.visited(call, run.project, session_id)
        return result

    @method("memory.search", "read")
    async def search(
        self,
        call: Call,
        *,
        cwd: str,
        query: str,
        limit: Limit = 10,
        agent: AgentName = "",
        scope: SubagentScope | None = None,
    ) -> Hits:
        """Search the memories of a project, or with ``agent`` those of that sub-agent alone."""
        most = min(limit, _MOST_RESULTS)

        def find() -> Hits:
            directory = self._callers.readable(call, cwd, agent, scope).memory_dir
            return Hits(self._finder.search(directory, query, most, self._clock.now()))

        return cast("Hits", await self._in_thread(find))


def _printable(session: str) -> str:
    """Return a session's name with characters replaced that UTF-8 cannot encode."""
    return session.encode(errors="replace").decode()
