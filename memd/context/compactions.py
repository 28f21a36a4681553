"""context.compact: shorten a conversation by the first strategy that makes it small enough."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal, Protocol

import msgspec
from anyio import to_thread
from msgspec import Struct

from memd.base.errors import MemdError
from memd.base.settings import Settings
from memd.base.text import iso_time, sha256
from memd.base.values import Project
from memd.context import compacting, local, restoring, results, summary
from memd.context.errors import breaker_open, messages_refused, summary_failed
from memd.context.requests import COMPACTION, ContextEdit, ContextRequest
from memd.context.service import Contexts, Place, Summaries, Window, window_of
from memd.conversation.history import CompactionBoundary, CompactionPlan, boundary
from memd.jobs.methods import request_of
from memd.jobs.service import Jobs
from memd.methods.method import Result, SessionId, method
from memd.model.configured import Models
from memd.model.errors import CapReachedError, PromptTooLongError
from memd.rpc.call import Call
from memd.transcripts import reading

Strategy = Literal["notes", "api", "model", "local"]
Instructions = Annotated[str, msgspec.Meta(max_length=20_000)]
# Why a strategy does not help.
_REPLACES_ALL_ONLY = "it can only replace all of a conversation, and follows no instructions"
_NO_NOTES = "there are no notes, or they do not make the conversation small enough"
_UNSUPPORTED = "the client does not say that it supports compaction"
_MAY_NOT_WAIT = "a model would have to be waited for"
_WORK_IS_PAUSED = "background work is paused"
_NO_MODEL = "no model is configured"
_STILL_TOO_LARGE = "the summary does not make the conversation small enough"
_NOTHING_TO_SUMMARISE = "there is nothing to summarise, or a call is open"
_NOT_AN_OBJECT = "a message is an object"
_REPLACED = "a later request for this session took its place"
_SUB_AGENT = "sub-agents and forks are not compacted"


class TriedStrategy(Struct, frozen=True):
    """A strategy that did not help, and why not."""

    strategy: str
    reason: str


class CompactedContext(Result):
    """The new messages of a conversation; with ``strategy`` "" nothing changes, ``tried`` says why.

    The conversation becomes: its first ``keep_to`` messages, then ``messages``, then the client's
    own messages from ``keep_from`` on. From these the blocks of ``edits`` are removed (thinking is
    valid only after the messages that it followed), and messages that are empty then. With the
    strategy ``api`` the client sends its last request once more, with its messages up to
    ``keep_from`` and changed as ``request`` says; it puts the reply first, unchanged. ``tokens`` is
    the size afterwards, 0 while it is unknown. The client itself puts ``restore`` back.
    """

    strategy: str
    tried: tuple[TriedStrategy, ...]
    boundary: CompactionBoundary | None = None
    keep_to: int = 0
    messages: tuple[dict[str, Any], ...] = ()
    keep_from: int = 0
    edits: tuple[ContextEdit, ...] = ()
    tokens: int = 0
    request: compacting.RequestChange | None = None
    restore: tuple[restoring.RestoredItem, ...] = ()


class NotesSource(Protocol):
    """What a compaction needs of session notes."""

    async def compaction(
        self,
        call: Call,
        project: Project,
        settings: Settings,
        session: str,
        *,
        messages: Sequence[Any],
        transcript: str,
        window: int,
        trigger: str,
        results: str = "",
    ) -> CompactionPlan | None:
        """Return a plan that compacts messages with the notes, ``None`` if that does not help."""
        ...

    async def lines(self, messages: Any) -> dict[str, list[str]]:
        """Return lines about messages, by section."""
        ...


class _Task(Struct, frozen=True):
    """A compaction while strategies are tried.

    ``part`` are the messages to summarise, ``None`` where none can be. ``partly`` says that the
    caller named a first or last message, ``wait`` that a model may be waited for, and ``retry``
    that the model's breaker is closed first.
    """

    call: Call
    request: ContextRequest
    messages: list[Any]
    transcript: str
    instructions: str
    trigger: str
    window: int
    part: compacting.SummarisedPart | None
    partly: bool
    wait: bool
    retry: bool


class Compactions:
    """Shortens conversations, by their notes, their client's API, a model or without any."""

    def __init__(
        self,
        contexts: Contexts,
        summaries: Summaries,
        notes: NotesSource,
        models: Models,
        jobs: Jobs,
    ) -> None:
        self._contexts = contexts
        self._summaries = summaries
        self._notes = notes
        self._models = models
        self._jobs = jobs
        self._strategies: Mapping[str, Callable[[_Task], Awaitable[CompactedContext | str]]] = {
            compacting.NOTES: self._by_notes,
            compacting.API: self._by_api,
            compacting.MODEL: self._by_model,
            compacting.LOCAL: self._by_local,
        }

    @method("context.compact", "write")
    async def context_compact(
        self,
        call: Call,
        *,
        cwd: str,
        session_id: SessionId,
        conversation: SessionId = "",
        messages: list[Any] | None = None,
        transcript_path: str | None = None,
        strategy: Strategy | None = None,
        skip: list[Strategy] | None = None,
        from_: Place | None = None,
        up_to: Place | None = None,
        instructions: Instructions = "",
        trigger: Literal["auto", "manual"] = "auto",
        model: str = "",
        betas: list[str] | None = None,
        supports: list[str] | None = None,
        window: Window = 0,
        wait: bool = True,
        retry: bool = False,
    ) -> CompactedContext:
        """The messages that replace a conversation, from the first strategy that makes it small
        enough.

        The strategies ``notes``, ``api``, ``model`` and ``local`` are tried in this order, without
        those in ``skip``. With ``strategy`` only that one is tried, and its error is returned. With
        ``from`` the messages from that place on are summarised and those before it stay; with
        ``up_to`` those before that place are. ``messages`` are the whole conversation, each with
        its ``id`` and ``usage`` if it has them. Without ``wait`` no model is asked. With ``retry``
        the model is asked although its last summaries of this session failed. With
        ``conversation``, the id of a sub-agent or a fork, nothing is replaced.
        """
        reading.check_source(transcript_path, messages)
        request = await self._contexts.request(
            call,
            cwd,
            session_id,
            model=model,
            betas=betas or (),
            supports=frozenset(supports or ()),
            window=window,
        )
        if conversation:
            return CompactedContext(strategy="", tried=(TriedStrategy("", _SUB_AGENT),))
        messages = await to_thread.run_sync(_messages, messages, transcript_path)
        find_part = partial(compacting.part_to_summarise, messages, first=from_, up_to=up_to)
        work = _Task(
            call=call,
            request=request,
            messages=messages,
            transcript=transcript_path or "",
            instructions=instructions,
            trigger=trigger,
            window=window_of(request),
            part=await to_thread.run_sync(find_part),
            partly=from_ is not None or up_to is not None,
            wait=wait,
            retry=retry,
        )
        names = [name for name in compacting.STRATEGIES if name not in (skip or ())]
        return await self._try_each(
            work, [strategy] if strategy else names, strict=strategy is not None
        )

    async def _try_each(self, work: _Task, names: list[str], *, strict: bool) -> CompactedContext:
        """Return the result of the first strategy that helps, or an empty one with all reasons.

        With ``strict`` the error of a strategy is raised instead of being listed as its reason.
        """
        tried: list[TriedStrategy] = []
        for name in names:
            try:
                result = await self._strategies[name](work)
            except MemdError as error:
                if strict:
                    raise
                result = error.sentence
            if isinstance(result, CompactedContext):
                result.tried = tuple(tried)
                return result
            tried.append(TriedStrategy(name, result))
        return CompactedContext(strategy="", tried=tuple(tried))

    async def _by_notes(self, work: _Task) -> CompactedContext | str:
        """Replace the conversation by its session notes; return a reason if that does not help."""
        if work.partly or work.instructions:
            return _REPLACES_ALL_ONLY
        request = work.request
        plan = await self._notes.compaction(
            work.call,
            request.project,
            request.settings,
            request.session,
            messages=work.messages,
            transcript=work.transcript,
            window=work.window,
            trigger=work.trigger,
            results=_results_folder(work),
        )
        return await _answer(work, plan) if plan else _NO_NOTES

    async def _by_api(self, work: _Task) -> CompactedContext | str:
        """Return a request by which the client has the API summarise, or why it is impossible."""
        if COMPACTION not in work.request.supports:
            return _UNSUPPORTED
        if work.partly or work.instructions:
            return _REPLACES_ALL_ONLY
        if work.part is None:
            return _NOTHING_TO_SUMMARISE
        tail = work.part.tail
        find = partial(boundary, work.messages, tail, strategy=compacting.API, trigger=work.trigger)
        edge = await to_thread.run_sync(find)
        plan = CompactionPlan(edge, messages=(), keep_from=tail.first, tokens=0)
        return await _answer(work, plan, compacting.api_request_change())

    async def _by_model(self, work: _Task) -> CompactedContext | str:
        """Have the model summarise in a job and wait for it; return a reason if none may be asked.

        Raises the job's error, and Model if a later request replaced this summary.
        """
        if work.part is None:
            return _NOTHING_TO_SUMMARISE
        if not work.wait:
            return _MAY_NOT_WAIT
        if self._models.for_(work.request.settings) is None:
            return _NO_MODEL
        if (await self._jobs.state()).paused_since is not None:
            return _WORK_IS_PAUSED
        session, folder = work.request.session, _results_folder(work)
        if work.retry:
            await self._jobs.close_breaker(folder)
        shown = partial(summary.quoted_rounds, work.messages, work.part.start, work.part.tail.first)
        task = {"rounds": await to_thread.run_sync(shown), "instructions": work.instructions}
        # The digest tells this summary from one that a later request put into the same job.
        digest = sha256(msgspec.json.encode(task))
        task |= {"digest": digest, **request_of(work.call, work.request.project.cwd)}
        with self._summaries.awaited(digest):
            submitted = await self._jobs.submit(summary.KIND, folder, session, task)
            ended = await self._jobs.wait(submitted.job)
        failure = ended.error or (ended.result or {}).get("failure")
        if failure:
            raise _failure(failure)
        sections = self._summaries.sections(submitted.job, digest)
        if sections is None:
            raise summary_failed(_REPLACED)
        return await self._summarised(work, compacting.MODEL, work.part, sections)

    async def _by_local(self, work: _Task) -> CompactedContext | str:
        """Summarise without a model; the end of a whole conversation stays as it is."""
        part = work.part
        if part is not None and not work.partly:
            part = await to_thread.run_sync(compacting.without_newest, work.messages, part)
        if part is None:
            return _NOTHING_TO_SUMMARISE
        replaced = work.messages[part.start : part.tail.first]
        lines = await self._notes.lines(replaced)
        sections = await to_thread.run_sync(local.sections, replaced, lines)
        return await self._summarised(work, compacting.LOCAL, part, sections)

    async def _summarised(
        self,
        work: _Task,
        strategy: str,
        part: compacting.SummarisedPart,
        sections: Mapping[str, str],
    ) -> CompactedContext | str:
        """Return the result with a summary of these sections, or a reason where it is too large."""
        make = partial(
            compacting.plan,
            work.messages,
            part,
            sections,
            strategy=strategy,
            trigger=work.trigger,
            window=work.window,
            transcript=work.transcript,
            folder=_results_folder(work),
        )
        plan = await to_thread.run_sync(make)
        return await _answer(work, plan) if plan else _STILL_TOO_LARGE


async def _answer(
    work: _Task, plan: CompactionPlan, change: compacting.RequestChange | None = None
) -> CompactedContext:
    """Return the result of a plan; ``change`` is set where the API is to summarise."""
    memory_dir = work.request.project.memory_dir
    restore = partial(
        restoring.items_to_restore, work.messages, plan.keep_to, plan.keep_from, memory_dir
    )
    edits = partial(compacting.thinking_removals, work.messages, plan.keep_from)
    return CompactedContext(
        strategy=plan.boundary.strategy,
        tried=(),
        boundary=plan.boundary,
        keep_to=plan.keep_to,
        messages=plan.messages[:1],  # the summary; the client has those that follow it
        keep_from=plan.keep_from,
        edits=() if change else await to_thread.run_sync(edits),
        tokens=plan.tokens,
        request=change,
        restore=await to_thread.run_sync(restore),
    )


def _results_folder(work: _Task) -> str:
    """Return the folder in which the results of the session's tools are stored."""
    return results.place(work.request.project, work.request.session).folder


def _messages(messages: list[Any] | None, path: str | None) -> list[Any]:
    """Return the messages of the transcript at ``path``, without it those of the request. Blocks.

    Raises Refused, and Invalid for a message that is no JSON object.
    """
    messages = reading.client_messages(path) if path is not None else messages or []
    for number, message in enumerate(messages):
        place = f"messages.{number}"
        if not isinstance(message, dict):
            raise messages_refused(place, _NOT_AN_OBJECT)
    return messages


def _failure(error: Mapping[str, Any]) -> MemdError:
    """Return the exception for the error that a summary's job has stored."""
    if error["kind"] == PromptTooLongError.kind:
        return PromptTooLongError(error["cause"])
    if error["kind"] == "breaker_open":
        return breaker_open()
    if error["kind"] == CapReachedError.kind:
        resumes = error["resumes"]
        return CapReachedError(error["purpose"], error["cap"], resumes, iso_time(resumes))
    return summary_failed(error["message"])
