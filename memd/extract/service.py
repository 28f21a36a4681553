"""Run extractions: turn the new part of a conversation into memories.

If the settings name a model, an agent reads the conversation and writes in a workspace. Without a
model, or if a cap is reached or the server refuses memd, the local extractor is used. Either way
the result is one change set, committed together with the cursor and the job's end, so that after a
crash the same messages are read again.
"""

import json
import os
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import anyio
from anyio import to_thread
from msgspec import Struct
from msgspec.structs import asdict, replace

from memd.agent import service as agent
from memd.agent.proposal import ChangePlan
from memd.agent.service import RunEnd, Task
from memd.agent.workspace import Workspace
from memd.core import text
from memd.core.clock import Clock
from memd.core.covered import Covered, CoveredIn, CoveredText, in_no_file, in_no_project
from memd.core.errors import MemdError
from memd.core.names import TEAM
from memd.core.settings import Settings
from memd.core.values import (
    AGENT,
    ASSISTANT,
    PERSON,
    Actor,
    Draft,
    JobEnd,
    MemoryFile,
    Project,
    Provenance,
    Suggestion,
    Tree,
)
from memd.extract import already_said, candidates, fork, requests
from memd.extract.evidence import Utterance
from memd.extract.listening import ConversationReader, Heard, conversation, quoted, repeats_agents
from memd.extract.merge import Merged, merge
from memd.extract.requests import ExtractionResult, ExtractRequest
from memd.extract.review import Reviewer, quotations
from memd.model.errors import LEFT_ALONE, NO_USE_TODAY
from memd.model.port import LOCAL, Model, ModelSource
from memd.projects.project import slug, transcript_folders
from memd.state.tables import Cursors, OpenSuggestion, Runs
from memd.store.service import Store
from memd.transcripts import reading
from memd.transcripts.sessions import sessions_of

__all__ = ["ExtractRequest", "ExtractionResult", "Extractions"]

Progress = Callable[..., None]
Note = Callable[..., None]
Waiting = Callable[[str], Awaitable[Sequence[OpenSuggestion]]]
TOO_MANY = "too_many"  # candidates in one extraction
_MOST_AT_ONCE = 400  # a change set may have 500 files
_QUOTATIONS = 5  # of one memory
_FLUSHED_SECONDS = 0.5  # for the client to write its latest message to the transcript


class ExtractionFailedError(MemdError):
    """A model did not finish an extraction; its work is discarded."""

    code = 1022
    kind = "extraction_failed"
    retryable = True
    of_model = True
    hint = "memctl job show tells what the model did"

    def __init__(self, ended: RunEnd) -> None:
        super().__init__(ended.unfinished, reason=str(ended.reason), turns=ended.turns)


class Extractions:
    """Extractions of one daemon; the jobs run one at a time for each memory directory.

    ``models`` returns the model of the settings; ``runs`` stores the records of its runs;
    ``waiting`` returns a directory's open suggestions; ``note`` writes to the log. ``joined``
    returns whether a directory joined a team, ``covered`` a function that finds a text in a
    project's instruction files. ``said_again`` counts memories that a person had to say again.
    Both ``joined`` and ``said_again`` block; the latter never raises.
    """

    def __init__(
        self,
        store: Store,
        cursors: Cursors,
        clock: Clock,
        models: ModelSource,
        runs: Runs,
        *,
        waiting: Waiting,
        note: Note,
        joined: Callable[[str], bool] = lambda _: False,
        covered: CoveredIn = in_no_project,
        said_again: Callable[[str, Sequence[str], float], None] = lambda *_: None,
    ) -> None:
        self._store = store
        self._cursors = cursors
        self._clock = clock
        self._models = models
        self._runs = runs
        self._waiting = waiting
        self._log = note
        self._joined = joined
        self._covered = covered
        self._said_again = said_again
        self._listener = ConversationReader()
        self.tally = requests.ExtractionTally()

    def gate(self, settings: Settings, project: Project) -> str:
        """Return the reason why nothing may be extracted, "" if it may."""
        if not (project.enabled and settings.enabled):
            return requests.MEMORY_OFF
        return "" if settings.extract.enabled else requests.EXTRACTION_OFF

    async def run(
        self,
        project: Project,
        settings: Settings,
        request: ExtractRequest,
        *,
        job: str,
        client: str,
        progress: Progress,
        allow_model: bool = True,
    ) -> ExtractionResult:
        """Extract memories from the messages since the session's cursor, and move the cursor.

        Without ``allow_model`` the local extractor is used even if a model is configured. Raises
        TranscriptRefusedError, InvalidMessagesError, ExtractionFailedError and the errors of
        ``Store.commit``; the cursor does not move then.
        """
        reason = self.gate(settings, project)
        if reason:
            return ExtractionResult(requests.SKIPPED, reason)
        wanted = self._models.for_(settings) if settings.extract.use_model else None
        model = wanted if allow_model else None
        cursor = await to_thread.run_sync(self._cursors.get, project.memory_dir, request.session)
        now, whole = self._clock.monotonic(), model is not None
        hear = partial(self._listener.hear, whole=whole, now=now)
        heard = await to_thread.run_sync(hear, project.memory_dir, request, cursor)
        problem = heard.problem
        if 0 < heard.turns < settings.extract.every_turns:
            return ExtractionResult(requests.SKIPPED, requests.EVERY_TURNS, problem=problem)
        query = _Extraction(project, settings, request, heard, job, client)
        if await to_thread.run_sync(_wrote_memory, project, heard):
            reason = requests.ALREADY_WRITTEN
        elif not heard.turns:
            reason = requests.NOTHING_NEW
        elif heard.outside and settings.extract.skip_outside:
            reason = requests.OUTSIDE
        elif model is not None:
            done = await self._run_model(query, model, progress)
            if isinstance(done, ExtractionResult):
                return done
            problem = done
        elif wanted is not None:
            problem = LEFT_ALONE
        return await self._run_locally(query, reason, problem)

    async def has_read(self, directory: str, session: str) -> bool:
        """Return whether a session of a memory directory was ever read."""
        return await to_thread.run_sync(self._cursors.get, directory, session) is not None

    async def proven(self, project: Project, body: str, said: str) -> tuple[str, str]:
        """Return an assistant's text with verified quotations of the person, and its origin.

        ``said`` is a quotation; if it is "", those in the text itself are verified. They are
        searched in the ends of the project's newest transcripts, and removed if they are not there.
        The origin is the person only if all were there, else the assistant; it is an agent if
        the text repeats another agent's message. Raises StateUnusableError.
        """
        search = partial(to_thread.run_sync, self._verify_quotations, project, body, said)
        proven = await search()
        if proven[1] != PERSON and (said or quotations(body)):
            await anyio.sleep(_FLUSHED_SECONDS)  # the client may not have written it yet
            proven = await search()
        return proven

    async def _run_locally(
        self, request: "_Extraction", skipped: str, problem: str
    ) -> ExtractionResult:
        """Commit the local extractor's result; only the cursor for a reason ``skipped``."""
        session, now, result = request.request.session, self._clock.now(), candidates.Candidates(())
        covered: Covered = in_no_file
        if not skipped:
            messages = request.heard.messages
            result = await to_thread.run_sync(candidates.find, messages, now, session)
            if not request.settings.extract.suggest:
                result = replace(result, suggestions=())
        if result.candidates or result.suggestions:
            covered = await self._covered(request.project, request.settings)
            result = await to_thread.run_sync(already_said.without, result, covered)
        newest = result.candidates[-_MOST_AT_ONCE:]
        extracted = ExtractionResult(
            requests.SKIPPED if skipped else requests.COMPLETED,
            skipped,
            refused=result.refused,
            passed_over=result.passed_over + (TOO_MANY,) * (len(result.candidates) - len(newest)),
            problem=problem,
        ).without(result.already_said)
        plan = partial(merge, newest, session=session, at=now, covered=covered)
        done = await self._commit(request, extracted, result.suggestions, plan, PERSON)
        self._listener.save(request.project.memory_dir, session, request.heard)
        return done

    async def _commit(
        self,
        request: "_Extraction",
        extracted: ExtractionResult,
        suggestions: Sequence[Suggestion],
        plan: Callable[[Tree], Merged],
        origin: str,
    ) -> ExtractionResult:
        """Commit a plan together with its result, the suggestions and the cursor."""
        suggestions = suggestions if request.settings.extract.suggest else ()
        done = extracted = replace(extracted, suggested=len(suggestions))
        again: tuple[str, ...] = ()

        def whole(tree: Tree) -> Draft:  # called again if the directory has changed
            nonlocal done, again
            merged = plan(tree)
            again = merged.said_again
            done = extracted.of(merged.draft).without(merged.already_said)
            end = JobEnd(request.job, requests.COMPLETED, json.dumps(done.facts()))
            ends = (end,) if request.job else ()
            return replace(merged.draft, effects=(request.heard.cursor, *suggestions, *ends))

        local = extracted.engine == LOCAL
        by = Provenance(
            Actor.EXTRACT,
            request.client,
            request.request.session,
            model="" if local else extracted.engine,
            reason=f"extracted by {'the local extractor' if local else 'a model'}",
            origin=origin,
        )
        directory = request.project.memory_dir
        committed = await self._store.commit(directory, whole, by)
        if again:
            await to_thread.run_sync(self._said_again, directory, again, self._clock.now())
        return replace(done, change=committed.change)

    async def _run_model(
        self, request: "_Extraction", model: Model, progress: Progress
    ) -> "ExtractionResult | str":
        """Have an agent extract; return the result, or the sentence why no model can be used.

        Raises ExtractionFailedError and the errors of ``Store.commit``.
        """
        directory, heard = request.project.memory_dir, request.heard
        session, now = request.request.session, self._clock.now()
        headers = (await self._store.snapshot(directory)).headers
        suggest = request.settings.extract.suggest
        waiting = await self._waiting(directory) if suggest else ()
        covered = await self._covered(request.project, request.settings)
        waiting, said = await to_thread.run_sync(_without_covered, waiting, heard, covered)
        joined = await to_thread.run_sync(self._joined, directory)
        team = request.settings.team.used(joined=joined)
        quotes = [each.text for each in waiting]
        news = fork.News(directory, heard.dialogue, heard.pieces, headers, now, quotes, team, said)
        client = fork.prefix(request.request.cache)
        task, whole, files = await self._make_task(request, model, client, news)
        heads = [(header.path, f"{header.name}\n{header.description}") for header in headers]
        texts = [*heads, *((file.header.path, file.body) for file in files)]
        shown = [words for _, words in texts]
        sent = client.messages if client else ()
        earlier = [Utterance(each.text, each.at) for each in waiting]
        talk = await to_thread.run_sync(conversation, heard, sent, earlier, shown)
        shared = [words for path, words in texts if path.startswith(TEAM)]
        reviewer = Reviewer(talk, shared=shared, covered=covered)
        async with agent.opened(
            partial(_open_workspace, request.project, reviewer, team=team)
        ) as workspace:
            ended = await agent.run(task, model, workspace, self._clock, progress)
            now = self._clock.now()
            if request.job:
                await to_thread.run_sync(self._runs.save, request.job, ended.record, now)
            if isinstance(ended.error, NO_USE_TODAY):
                return ended.error.sentence
            if not ended.finished:
                raise ExtractionFailedError(ended)
            run = await to_thread.run_sync(
                reviewer.reviewed, workspace.proposal(), workspace.refused, session
            )
        extracted = ExtractionResult(
            requests.COMPLETED,
            passed_over=run.faults,
            already_said=run.already_said,
            problem=heard.problem,
            engine=task.model,
            usage=asdict(ended.usage),
            turns=ended.turns,
            prefix_changed=await to_thread.run_sync(self._compare_prefix, request, task, whole),
        )
        change = ChangePlan(
            run.proposal, session=session, modified=text.iso_time(now), pointers=run.pointers
        )

        stated = await to_thread.run_sync(candidates.find, heard.messages, now, session)
        twice = partial(merge, stated.candidates, session=session, at=now, covered=covered)

        def plan(tree: Tree) -> Merged:
            return Merged(change.plan(tree), said_again=twice(tree).said_again)

        return await self._commit(request, extracted, run.suggestions, plan, run.origin)

    async def _make_task(
        self, request: "_Extraction", model: Model, client: Task | None, news: fork.News
    ) -> tuple[Task, bool, Sequence[MemoryFile]]:
        """Return the task, whether it has the whole conversation, and the memories it shows."""
        name = self._models.name(request.settings, fork.KIND)
        if model.calls_tools:
            rest = (client, request.heard.before, request.settings.spend.prices)
            return *await to_thread.run_sync(fork.cheaper, news, name, *rest), ()
        likely = await to_thread.run_sync(fork.touched, news)
        files = await self._store.read_many(news.directory, likely)
        task = await to_thread.run_sync(fork.single, news, name, files)
        return task, False, files

    def _verify_quotations(self, project: Project, body: str, said: str) -> tuple[str, str]:
        """Return the text and origin for ``proven``. Blocks: runs in a worker thread."""
        folders, directory = transcript_folders(project), os.path.realpath(project.memory_dir)
        paths = {f"{folder}/{name}.jsonl" for folder in folders for name in sessions_of(folder)}
        paths |= {move.source for at, move in self._cursors.transcripts() if at == directory}
        claims = quotations(body)
        claimed = [said] if said else [*claims.values()][:_QUOTATIONS]
        sources = [(" ".join(words.split()), quoted(paths, words)) for words in claimed]
        lines = [text.said_line(words, message.at) for words, message in sources if message]
        own = "\n".join(line for line in body.split("\n") if line not in claims).strip()
        all_proven = 0 < len(lines) == len(claimed)
        origin = AGENT if repeats_agents(paths, own) else PERSON if all_proven else ASSISTANT
        return "\n\n".join(filter(None, (own, *lines))), origin

    def _compare_prefix(self, request: "_Extraction", task: Task, whole: bool) -> tuple[str, ...]:  # noqa: FBT001 - a thread's argument
        """Remember a run's prefix; return and log its parts that changed since the last run."""
        directory, session = request.project.memory_dir, request.request.session
        parts, now = fork.fingerprints(task) if whole else None, self._clock.monotonic()
        before = self._listener.save(directory, session, request.heard, parts, now)
        changed = fork.changed(before, parts) if parts else ()
        if changed:
            self._log("prefix_changed", session=session, directory=directory, parts=list(changed))
        return changed


class _Extraction(Struct, frozen=True):
    """One extraction while it runs."""

    project: Project
    settings: Settings
    request: ExtractRequest
    heard: Heard
    job: str
    client: str


def _open_workspace(project: Project, reviewer: Reviewer, *, team: bool) -> Workspace:
    """Return a run's workspace, in which each change is reviewed. Blocks."""
    workspace = Workspace(
        project.memory_dir,
        project=project.readable,
        transcripts=(f"{project.transcripts}/{slug(project.cwd)}",),
        origin=PERSON,
        removals=True,
        team=team,
        check=reviewer.problem,
    )
    reviewer.answers, reviewer.theirs = workspace.answers, workspace.shared
    return workspace


def _without_covered(
    waiting: Sequence[OpenSuggestion], heard: Heard, covered: Covered
) -> tuple[Sequence[OpenSuggestion], Sequence[CoveredText]]:
    """Return the suggestions that no file covers, and the covered new sentences. Blocks."""
    rest = [each for each in waiting if not covered(each.text)]
    return rest, already_said.in_messages(heard.messages, covered)


def _wrote_memory(project: Project, heard: Heard) -> bool:
    """Return whether the assistant wrote a memory file itself, also through a link. Blocks."""
    named = {path for message in heard.messages for path in message.writes}
    real = {os.path.realpath(path) for path in named if path.endswith(".md")}
    places = (project.memory_dir, os.path.realpath(project.memory_dir), reading.MEMORY_ROOT)
    below = tuple(f"{place.rstrip('/')}/" for place in places)
    return any(path.startswith(below) for path in named | real)
