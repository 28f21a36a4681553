"""Extraction as the daemon runs it: what is new in a conversation becomes memories.

With a model that the settings name, an agent reads the conversation and works in a workspace; what
it leaves there is one change set. Without one, or where a cap is reached or the server will not let
memd in, the local extractor does it, and its work is one change set as well. The
cursor and the job's end move with it: after a crash the stretch is read again.
"""

import json
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial

from anyio import to_thread

from memd.agent import service as agent
from memd.agent.proposal import ChangePlan, Proposed
from memd.agent.service import RunEnd, RunRecord, Task
from memd.agent.workspace import Workspace
from memd.core import text
from memd.core.clock import Clock
from memd.core.errors import MemdError
from memd.core.settings import Settings
from memd.core.values import (
    PERSON,
    Actor,
    Draft,
    Effect,
    Header,
    JobEnd,
    Project,
    Provenance,
    Suggestion,
    Tree,
)
from memd.extract import candidates, fork, requests
from memd.extract.candidates import Candidate
from memd.extract.evidence import Talk, Utterance
from memd.extract.listening import ConversationReader, Heard, conversation
from memd.extract.merge import MergedDraft, finish, merge
from memd.extract.requests import ExtractionResult, ExtractRequest, NewMessages
from memd.extract.review import ReviewedRun, Reviewer
from memd.model.errors import LEFT_ALONE, NO_USE_TODAY
from memd.model.port import LOCAL, Model, ModelSource
from memd.projects.project import slug
from memd.state.tables import Cursors, OpenSuggestion, Runs
from memd.store.service import Store
from memd.transcripts import reading
from memd.transcripts.reading import InvalidMessagesError, TranscriptRefusedError

__all__ = [
    "ExtractRequest",
    "ExtractionResult",
    "Extractions",
    "InvalidMessagesError",
    "TranscriptRefusedError",
]


Progress = Callable[..., None]
Note = Callable[..., None]


Waiting = Callable[[str], Awaitable[Sequence[OpenSuggestion]]]


def _quiet(*_: object, **__: object) -> None:
    """Tell nobody."""


async def _none_wait(_: str) -> Sequence[OpenSuggestion]:
    """Return no suggestions."""
    return ()


class ExtractionFailedError(MemdError):
    """A model did not come to an end with a conversation; nothing was kept of its work."""

    code = 1022
    kind = "extraction_failed"
    retryable = True
    of_model = True
    hint = "memctl job show tells what the model did"

    def __init__(self, ended: RunEnd) -> None:
        super().__init__(ended.unfinished, reason=str(ended.reason), turns=ended.turns)


class Extractions:
    """Extractions of one daemon; one at a time per memory directory is the jobs' business.

    ``models`` gives the model that the settings name; ``runs`` keeps the records of its runs;
    ``waiting`` gives a directory's suggestions that a model is to decide; ``note`` is told what
    belongs into the log.
    """

    def __init__(
        self,
        store: Store,
        cursors: Cursors,
        clock: Clock,
        models: ModelSource | None = None,
        runs: Runs | None = None,
        *,
        waiting: Waiting = _none_wait,
        note: Note = _quiet,
    ) -> None:
        self._store = store
        self._cursors = cursors
        self._clock = clock
        self._models = models
        self._runs = runs
        self._waiting = waiting
        self._log = note
        self._listener = ConversationReader()

    def gate(self, settings: Settings, project: Project) -> str:
        """Return the reason to extract nothing, "" to go on."""
        return requests.gate(settings, project)

    async def run(
        self,
        project: Project,
        settings: Settings,
        request: ExtractRequest,
        *,
        job: str,
        client: str,
        progress: Progress = _quiet,
        allow_model: bool = True,
    ) -> ExtractionResult:
        """Read what is new since the session's cursor, keep what is worth keeping, move on.

        Unless ``allow_model`` the fixed extractor does it, although a model is configured.
        Raises TranscriptRefusedError, InvalidMessagesError, ExtractionFailedError and what
        ``Store.commit`` raises; then the cursor stays where it was.
        """
        reason = requests.gate(settings, project)
        if reason:
            return ExtractionResult(requests.SKIPPED, reason)
        wanted = self._model(settings)
        model = wanted if allow_model else None
        heard = await to_thread.run_sync(self._hear, project, request, model is not None)
        unread = heard.unread
        turns = requests.turns(unread.messages)
        if 0 < turns < settings.extract.every_turns:
            return ExtractionResult(requests.SKIPPED, requests.EVERY_TURNS, problem=unread.problem)
        written = await to_thread.run_sync(_wrote_memory, project, unread)
        query = _Extraction(project, settings, request, heard, job, client)
        problem = unread.problem
        if written:
            reason = requests.ALREADY_WRITTEN
        elif not turns:
            reason = requests.NOTHING_NEW
        elif heard.outside and settings.extract.skip_outside:
            reason = requests.OUTSIDE
        elif model is not None:
            done = await self._by_model(query, model, progress)
            if isinstance(done, ExtractionResult):
                return done
            problem = done
        elif wanted is not None:
            problem = LEFT_ALONE
        return await self._locally(query, reason, problem)

    async def _locally(
        self, request: "_Extraction", skipped: str, problem: str
    ) -> ExtractionResult:
        """Keep what the fixed extractor finds; nothing where the stretch is skipped."""
        run = _Local(request, self._clock.now(), skipped, problem)
        if not skipped:
            await to_thread.run_sync(run.find)
        directory, session = request.project.memory_dir, request.request.session
        reason = f"extracted by the {LOCAL} extractor"
        by = Provenance(Actor.EXTRACT, request.client, session, reason=reason, origin="user")
        result = await self._store.commit(directory, run.plan, by)
        self._listener.save(directory, session, request.heard)
        return replace(run.extracted, change=result.change)

    def _model(self, settings: Settings) -> Model | None:
        """Return the model that learns from conversations, or ``None``."""
        if self._models is None or not settings.extract.use_model:
            return None
        return self._models.for_(settings)

    async def _by_model(
        self, request: "_Extraction", model: Model, progress: Progress
    ) -> "ExtractionResult | str":
        """Let an agent look at what is new; return how it ended, or why it did not begin.

        Raises ExtractionFailedError and what ``Store.commit`` raises.
        """
        directory, session = request.project.memory_dir, request.request.session
        headers = (await self._store.snapshot(directory)).headers
        if request.settings.extract.suggest:
            request = replace(request, waiting=tuple(await self._waiting(directory)))
        task, whole, texts = await self._request(request, model, headers)
        talk = await to_thread.run_sync(_conversation, request)
        listed = (f"{header.name} {header.description}" for header in headers)
        shown = "\n".join((*listed, *texts))
        record = RunRecord()
        make = partial(_workspace, request.project, talk, shown)
        async with agent.opened(make) as workspace:
            ended = await agent.run(task, model, workspace, self._clock, progress, record=record)
            await self._note(request.job, ended)
            if not ended.finished:
                if isinstance(ended.error, NO_USE_TODAY):
                    return ended.error.sentence
                raise ExtractionFailedError(ended)
            run = await to_thread.run_sync(_reviewed, workspace, talk, shown, session)
        extracted = ExtractionResult(
            requests.COMPLETED,
            saved=run.proposal.saved,
            updated=run.proposal.updated,
            removed=tuple(path for path, _ in run.proposal.removed),
            passed_over=run.faults,
            problem=request.heard.unread.problem,
            engine=task.model,
            usage=asdict(ended.usage),
            turns=ended.turns,
            prefix_changed=await to_thread.run_sync(self._compared, request, task, whole),
        )
        by = Provenance(
            Actor.EXTRACT,
            client=request.client,
            session=session,
            model=task.model,
            reason="extracted by a model",
            origin=run.origin,
        )
        change = ChangePlan(
            run.proposal,
            session=session,
            modified=text.iso_time(self._clock.now()),
            pointers=run.pointers,
            effects=lambda made: request.effects(extracted.without(made.left), run.suggestions),
        )
        result = await self._store.commit(directory, change.plan, by)
        return replace(extracted.without(change.left), change=result.change)

    async def _request(
        self, request: "_Extraction", model: Model, headers: Sequence[Header]
    ) -> tuple[Task, bool, Sequence[str]]:
        """Return the run, whether it goes over the whole conversation, and what it shows whole."""
        if model.calls_tools:
            return *await to_thread.run_sync(self._task, request, headers), ()
        news, name = self._news(request, headers)
        likely = await to_thread.run_sync(fork.touched, news)
        files = await self._store.read_many(news.directory, likely)
        task = await to_thread.run_sync(fork.single, news, name, files)
        return task, False, [file.body for file in files]

    def _news(self, request: "_Extraction", headers: Sequence[Header]) -> tuple[fork.News, str]:
        """Return what a run is about, and its model's name."""
        heard, now = request.heard, self._clock.now()
        name = self._models.name(request.settings, fork.KIND) if self._models else ""
        directory = request.project.memory_dir
        waiting = [each.text for each in request.waiting]
        return fork.News(directory, heard.dialogue, heard.pieces, headers, now, waiting), name

    def _task(self, request: "_Extraction", headers: Sequence[Header]) -> tuple[Task, bool]:
        """Return the run that costs less, and whether it goes over the whole conversation."""
        news, name = self._news(request, headers)
        client, known = fork.prefix(request.request.cache), None
        if client is None:
            known = max(request.heard.before - news.dialogue.dropped, 0)
        long = fork.shared(client, news) if client else fork.own(news, name, request.heard.before)
        prices = request.settings.spend.prices
        task = fork.cheaper(long, fork.short(news, name), before=known, prices=prices)
        return task, task is long

    def _compared(self, request: "_Extraction", task: Task, whole: bool) -> tuple[str, ...]:  # noqa: FBT001 - a thread's argument
        """Return what of a run's prefix is not as at the session's last run, and log it."""
        directory, session = request.project.memory_dir, request.request.session
        if not whole:
            self._listener.save(directory, session, request.heard)
            return ()
        parts, now = fork.fingerprints(task), self._clock.monotonic()
        before = self._listener.save(directory, session, request.heard, parts, now)
        changed = fork.changed(before, task)
        if changed:
            self._log("prefix_changed", session=session, directory=directory, parts=list(changed))
        return changed

    async def _note(self, job: str, ended: RunEnd) -> None:
        """Keep the record of a run, whatever came of it."""
        if job and self._runs is not None:
            await to_thread.run_sync(self._runs.save, job, ended.record, self._clock.now())

    def _hear(self, project: Project, request: ExtractRequest, whole: bool) -> Heard:  # noqa: FBT001 - a thread's argument
        """Read from the cursor on. Blocks: runs in a worker thread."""
        cursor = self._cursors.get(project.memory_dir, request.session)
        now = self._clock.monotonic()
        return self._listener.hear(project.memory_dir, request, cursor, whole=whole, now=now)


@dataclass(frozen=True, slots=True)
class _Extraction:
    """One extraction while it runs."""

    project: Project
    settings: Settings
    request: ExtractRequest
    heard: Heard
    job: str
    client: str
    waiting: tuple[OpenSuggestion, ...] = ()

    def effects(
        self, extracted: ExtractionResult, suggestions: Sequence[Suggestion] = ()
    ) -> tuple[Effect, ...]:
        """Return what moves with the change set: the cursor, the job's end, suggestions."""
        suggested = suggestions if self.settings.extract.suggest else ()
        effects: tuple[Effect, ...] = (self.heard.unread.cursor, *suggested)
        if not self.job:
            return effects
        return *effects, JobEnd(self.job, requests.COMPLETED, json.dumps(extracted.facts()))


class _Local:
    """What the fixed extractor keeps of one stretch; the plan may run again on a changed tree."""

    def __init__(self, request: _Extraction, now: float, skipped: str, problem: str) -> None:
        self._requested = request
        self._now = now
        self._candidates: Sequence[Candidate] = ()
        self._suggestions: Sequence[Suggestion] = ()
        status = requests.SKIPPED if skipped else requests.COMPLETED
        self.extracted = ExtractionResult(status, skipped, problem=problem)

    def find(self) -> None:
        """Look for candidates. Takes a while on a long conversation: runs in a worker thread."""
        request = self._requested
        messages, session = request.heard.unread.messages, request.request.session
        result = candidates.find(messages, self._now, session)
        self._suggestions = result.suggestions if request.settings.extract.suggest else ()
        self._candidates, over = finish(result.candidates)
        self.extracted = replace(
            self.extracted,
            refused=result.refused,
            passed_over=(*result.passed_over, *over),
            suggested=len(self._suggestions),
        )

    def plan(self, tree: Tree) -> Draft:
        """Return the change set for the directory as it is now. Runs in the store's thread."""
        merged = MergedDraft(Draft())
        if self._candidates:  # else the directory, which may be long, need not be looked at
            session = self._requested.request.session
            merged = merge(self._candidates, tree, session=session, at=self._now)
        self.extracted = replace(self.extracted, saved=merged.saved, updated=merged.updated)
        return replace(
            merged.draft, effects=self._requested.effects(self.extracted, self._suggestions)
        )


def _conversation(request: _Extraction) -> Talk:
    """Return who said what in all that a run is shown. Blocks."""
    client = fork.prefix(request.request.cache)
    talk = conversation(request.heard, client.messages if client else ())
    earlier = (Utterance(each.text, each.at) for each in request.waiting)
    return replace(talk, person=(*earlier, *talk.person))


def _workspace(project: Project, talk: Talk, shown: str) -> Workspace:
    folder = f"{project.transcripts}/{slug(project.cwd)}"

    def check(file: Proposed) -> str:
        return reviewer.problem(file)

    workspace = Workspace(
        project.memory_dir,
        project=project.root,
        transcripts=(folder,),
        origin=PERSON,
        removals=True,
        check=check,
    )
    reviewer = Reviewer(talk, lambda: "\n".join((shown, *workspace.answers)))
    return workspace


def _reviewed(workspace: Workspace, talk: Talk, shown: str, session: str) -> ReviewedRun:
    """Return what of a run's work may stand. Blocks."""
    reviewer = Reviewer(talk, lambda: "\n".join((shown, *workspace.answers)))
    return reviewer.reviewed(workspace.proposal(), workspace.refused, session)


def _wrote_memory(project: Project, unread: NewMessages) -> bool:
    """Return whether the assistant wrote a memory itself, by whatever way it went. Blocks."""
    named = {path for message in unread.messages for path in message.writes}
    # Whoever goes through a link writes there too; a file that is no Markdown is no memory.
    real = {os.path.realpath(path) for path in named if path.endswith(".md")}
    directories = (project.memory_dir, os.path.realpath(project.memory_dir))
    return requests.wrote_memory(named | real, directories, reading.MEMORY_ROOT)
