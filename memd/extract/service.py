"""Run extractions: turn the new part of a conversation into memories.

If the settings name a model, an agent reads the conversation and writes in a workspace. Without a
model, or if a cap is reached or the server refuses memd, the local extractor is used. Either way
the result is one change set, committed together with the cursor and the job's end, so that after a
crash the same messages are read again.
"""

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial

import anyio
from anyio import to_thread
from msgspec.structs import asdict, replace

from memd.agent import service as agent
from memd.agent.proposal import ChangePlan
from memd.agent.runs import Runs
from memd.agent.service import RunEnd, Task
from memd.agent.workspace import Workspace
from memd.base import errors, text
from memd.base.clock import Clock
from memd.base.covered import Covered, CoveredIn, in_no_file, in_no_project
from memd.base.errors import Secret
from memd.base.names import TEAM
from memd.base.recent import Recent
from memd.base.settings import Settings
from memd.base.values import (
    AGENT,
    ASSISTANT,
    PERSON,
    Actor,
    Draft,
    MemoryFile,
    Project,
    Provenance,
    Suggestion,
    Tree,
)
from memd.extract import candidates, fork, listening, requests
from memd.extract.candidates import REQUESTED
from memd.extract.cursors import (
    ExtractionCursor,
    cursor_moved,
    read_cursor,
    transcript_cursors,
)
from memd.extract.evidence import Utterance
from memd.extract.listening import Extraction, NewPart, conversation, read_new_part
from memd.extract.merge import MergedDraft, merge, shown
from memd.extract.requests import ExtractionResult, ExtractRequest
from memd.extract.review import Reviewer, quotations
from memd.model.errors import LEFT_ALONE, NO_USE_TODAY
from memd.model.port import LOCAL, Model, ModelSource
from memd.projects.project import slug, transcript_folders
from memd.state.docs import Docs
from memd.state.jobs import job_completed
from memd.state.suggestions import StoredSuggestion, suggestion_saved
from memd.store import secret
from memd.store.store import Store
from memd.transcripts.sessions import sessions_of

__all__ = ["ExtractRequest", "ExtractionResult", "Extractions"]

Progress = Callable[..., None]
Note = Callable[..., None]
CountTexts = Callable[[str, Sequence[str]], int]  # texts of a directory
Waiting = Callable[[str], Awaitable[Sequence[StoredSuggestion]]]
TOO_MANY = "too_many"  # the reason for candidates above ``_MOST_AT_ONCE``
_ALL = ""  # stands for all files, where the refused one has a name that is not told
_MOST_AT_ONCE = 400  # candidates of one extraction; a change set may have 500 files
_SUGGESTIONS, _MESSAGES = 2, 100  # so many that nobody requested, of so many messages of a session
_LEAST_TURNS = 5  # of the person in a session that a model reads as a whole
_HOUR = 3600.0  # between two readings of a session that goes on
_PREFIXES = 16  # of sessions whose client sends its own request
_QUOTATIONS = 5  # of one memory that are searched
_FLUSHED_SECONDS = 0.5  # for the client to write its latest message to the transcript


def _reason_unused(ended: RunEnd) -> str:
    """Return why no model can be used today, "" if a run counts. Raises Model otherwise."""
    if isinstance(ended.error, NO_USE_TODAY):
        return ended.error.sentence
    if ended.valid:
        return ""
    raise errors.Model(
        ended.unfinished,
        retryable=True,
        hint="memctl job show tells what the model did",
        reason=str(ended.reason),
        turns=ended.turns,
    )


class Extractions:
    """Extractions of one daemon; the jobs run one at a time for each memory directory.

    ``models`` returns the model of the settings; ``runs`` stores the records of its runs;
    ``waiting`` returns a directory's open suggestions, ``new_suggestions`` how many texts are new
    ones; ``note`` writes to the log. ``joined`` returns whether a directory joined a team,
    ``covered`` a function that finds a text in a project's instruction files. ``new_suggestions``
    and ``joined`` block.
    """

    def __init__(
        self,
        store: Store,
        table: Docs,
        clock: Clock,
        models: ModelSource,
        runs: Runs,
        *,
        waiting: Waiting,
        note: Note,
        joined: Callable[[str], bool] = lambda _: False,
        covered: CoveredIn = in_no_project,
        new_suggestions: CountTexts = lambda _, texts: len(texts),
    ) -> None:
        self._store = store
        self._table = table
        self._clock = clock
        self._models = models
        self._runs = runs
        self._open_suggestions = waiting
        self._log = note
        self._is_joined = joined
        self._covered_in = covered
        self._count_new = new_suggestions
        # The fingerprints of the client's prefix in the last run, by directory and session.
        self._prefixes: Recent[tuple[str, str], Mapping[str, str]] = Recent(_PREFIXES)

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

        With ``extract.at_end`` a model reads what is new in the session where that is due, and no
        single turn. Without ``allow_model`` the local extractor is used even if a model is
        configured. Raises Refused, Invalid, Model and the errors of ``Store.commit``; the cursor
        does not move then.
        """
        reason = requests.gate(settings, project)
        if reason:
            return ExtractionResult(requests.SKIPPED, reason)
        model = self._models.for_(settings) if settings.extract.use_model else None
        at_end = settings.extract.at_end and model is not None
        is_whole = model is not None and allow_model and not at_end
        read = partial(self._read_turn, project, request, whole=is_whole)
        new_part, problem = await to_thread.run_sync(read), ""
        extraction = Extraction(project, settings, request, new_part, job, client)
        if model is not None and at_end:
            if self._is_due(new_part.cursor, ended=request.ended):
                reading = partial(self._read_session, extraction, model, progress)
                done = await reading() if allow_model else LEFT_ALONE
                if isinstance(done, ExtractionResult):
                    return done
                problem = done
                if not done:  # no model may read it, so it counts as read
                    new_part = replace(new_part, cursor=new_part.cursor.all_read())
                    extraction = replace(extraction, new_part=new_part)
            model = None
        problem = problem or new_part.problem
        if 0 < new_part.turns < settings.extract.every_turns:
            return ExtractionResult(requests.SKIPPED, requests.EVERY_TURNS, problem=problem)
        reason = await to_thread.run_sync(_skip_reason, project, settings, new_part)
        if not reason and model is not None:
            done = await self._run_model(extraction, model, progress) if allow_model else LEFT_ALONE
            if isinstance(done, ExtractionResult):
                return done
            problem = done
        return await self._run_locally(extraction, reason, problem)

    def _is_due(self, cursor: ExtractionCursor, *, ended: bool) -> bool:
        """Return whether to read a session: it ended, or what is unread in it is an hour old."""
        if cursor.unread_since is None or cursor.messages < _LEAST_TURNS:
            return False
        return ended or self._clock.now() - cursor.unread_since >= _HOUR

    async def _read_session(
        self, turn: Extraction, model: Model, progress: Progress
    ) -> "ExtractionResult | str":
        """Have a model read what no model has read of a session; return the result.

        Return a sentence if no model can be used, "" if none may read it.
        """
        cursor = turn.new_part.cursor
        read = partial(read_new_part, turn.request, cursor.unread(), whole=True)
        unread = await to_thread.run_sync(read)
        # The messages of the last turn are counted already.
        counted = replace(unread.cursor, messages=cursor.messages, suggested=cursor.suggested)
        new_part = replace(unread, cursor=counted)
        if await to_thread.run_sync(_skip_reason, turn.project, turn.settings, new_part):
            return ""
        return await self._run_model(replace(turn, new_part=new_part, at_end=True), model, progress)

    def _read_turn(self, project: Project, request: ExtractRequest, *, whole: bool) -> NewPart:
        """Return what is new since the session's cursor, and since when it is unread. Blocks."""
        cursor = read_cursor(self._table, project.memory_dir, request.session)
        new_part = read_new_part(request, cursor, whole=whole)
        times = [each.at for each in new_part.messages if each.origin == PERSON and each.text]
        if not times or new_part.cursor.unread_since is not None:
            return new_part
        since = self._clock.now() if times[0] is None else times[0]
        return replace(new_part, cursor=replace(new_part.cursor, unread_since=since))

    async def proven(self, project: Project, body: str, said: str) -> tuple[str, str]:
        """Return an assistant's text with verified quotations of the person, and its origin.

        ``said`` is a quotation; if it is "", those in the text itself are verified. They are
        searched in the ends of the project's newest transcripts, and removed if they are not there.
        The origin is the person only if all were there, else the assistant; it is an agent if
        the text repeats another agent's message. Raises StateUnusableError.
        """
        search = partial(to_thread.run_sync, self._verify_quotations, project, body, said)
        proven, origin = await search()
        if origin != PERSON and (said or quotations(body)):
            await anyio.sleep(_FLUSHED_SECONDS)  # the client may not have written it yet
            proven, origin = await search()
        return proven, origin

    async def _run_locally(
        self, extraction: Extraction, skip_reason: str, problem: str
    ) -> ExtractionResult:
        """Commit the local extractor's result, or with a ``skip_reason`` only the cursor."""
        session, now, project = extraction.session, self._clock.now(), extraction.project
        result = candidates.Candidates(())
        covered: Covered = in_no_file
        if not skip_reason:
            messages = extraction.new_part.messages
            result = await to_thread.run_sync(candidates.find, messages, now, session)
            if not extraction.settings.extract.suggest:
                result = replace(result, suggestions=())
        if result.candidates or result.suggestions:
            covered = await self._covered_in(project, extraction.settings)
            result = await to_thread.run_sync(_without_covered, result, covered)
        newest = result.candidates[-_MOST_AT_ONCE:]
        extracted = ExtractionResult(
            requests.SKIPPED if skip_reason else requests.COMPLETED,
            skip_reason,
            refused=result.refused,
            passed_over=result.passed_over + (TOO_MANY,) * (len(result.candidates) - len(newest)),
            problem=problem,
        ).without(result.already_said)
        suggestions = _without_secrets(result.suggestions)
        room = _count_allowed(extraction.new_part.cursor)

        def plan(tree: Tree) -> MergedDraft:
            """Return the candidates' change, with as many suggestions as there is room for."""
            merged = merge(
                newest, tree, session=session, at=now, suggestions=suggestions, covered=covered
            )
            requested = [each for each in merged.suggestions if each.reason in REQUESTED]
            others = [each for each in merged.suggestions if each not in requested]
            return replace(merged, suggestions=(*requested, *others[:room]))

        return await self._commit(extraction, extracted, plan, PERSON)

    async def _commit(
        self,
        extraction: Extraction,
        extracted: ExtractionResult,
        plan: Callable[[Tree], MergedDraft],
        origin: str,
    ) -> ExtractionResult:
        """Commit a plan together with its result, the suggestions and the cursor."""
        cursor, now = extraction.new_part.cursor, self._clock.now()
        directory = extraction.project.memory_dir
        result, is_local = extracted, extracted.engine == LOCAL
        if not is_local:
            cursor = cursor.all_read()
        refused: dict[str, str] = {}  # the secret rules for which the store refuses files, by path

        def draft(tree: Tree) -> Draft:  # called again if the directory has changed
            nonlocal result
            merged = MergedDraft(Draft()) if _ALL in refused else plan(tree).without(refused)
            rules = (*merged.refused, *refused.values())
            suggestions = merged.suggestions if extraction.settings.extract.suggest else ()
            new = self._count_new(directory, [each.text for each in suggestions])
            result = replace(extracted.of(merged.draft), suggested=new)
            result = result.without(merged.already_said).refusing(rules)
            moved = replace(cursor, suggested=cursor.suggested + len(suggestions))
            effects = [
                cursor_moved(directory, moved),
                *(suggestion_saved(directory, suggestion, now) for suggestion in suggestions),
            ]
            if extraction.job:
                effects.append(job_completed(extraction.job, result.facts(), now))
            return replace(
                merged.draft,
                effects=tuple(effects),
                transcript=cursor.source,
                message=cursor.message or cursor.marker,
            )

        provenance = Provenance(
            Actor.EXTRACT,
            extraction.client,
            extraction.session,
            model="" if is_local else extracted.engine,
            reason=f"extracted by {'the local extractor' if is_local else 'a model'}",
            origin=origin,
        )
        while True:
            try:
                committed = await self._store.commit(directory, draft, provenance)
                break
            except Secret as error:
                # Else the same messages would be refused for ever, and all later ones with them.
                if _ALL in refused:
                    raise
                path = str(error.facts.get("path", _ALL))
                refused[_ALL if path in refused else path] = str(error.facts["rule"])
        return replace(result, change=committed.change)

    async def _run_model(
        self, extraction: Extraction, model: Model, progress: Progress
    ) -> "ExtractionResult | str":
        """Have an agent extract; return the result, or the sentence why no model can be used.

        Raises Model and the errors of ``Store.commit``.
        """
        project, settings, new_part = extraction.project, extraction.settings, extraction.new_part
        directory, session, now = project.memory_dir, extraction.session, self._clock.now()
        headers = (await to_thread.run_sync(self._store.reading.snapshot, directory)).headers
        suggested = await self._open_suggestions(directory) if settings.extract.suggest else ()
        covered = await self._covered_in(project, settings)
        team = settings.team.used(joined=await to_thread.run_sync(self._is_joined, directory))
        quotes = [suggestion.text for suggestion in suggested]
        both = new_part.before, new_part.pieces
        news = fork.News(directory, *both, headers, now, quotes, team)
        client = fork.prefix(extraction.request.cache)
        task, is_client_s, files = await self._make_task(extraction, model, client, news)
        # What the model is shown of each memory, by the memory's path.
        heads = [(header.path, f"{header.name}\n{header.description}") for header in headers]
        texts = [*heads, *((file.header.path, file.body) for file in files)]
        shown, sent = [words for _, words in texts], client.messages if client else ()
        earlier = [Utterance(suggestion.text, suggestion.at) for suggestion in suggested]
        talk = await to_thread.run_sync(conversation, new_part, sent, earlier, shown, now)
        shared = [words for path, words in texts if path.startswith(TEAM)]
        reviewer = Reviewer(talk, shared=shared, covered=covered)
        open_workspace = partial(_open_workspace, project, reviewer, team=team)
        async with agent.opened(open_workspace) as workspace:
            ended = await agent.run(task, model, workspace, self._clock, progress)
            now = self._clock.now()
            if extraction.job:
                await to_thread.run_sync(self._runs.save, extraction.job, ended.record)
            if reason := _reason_unused(ended):
                return reason
            run = await to_thread.run_sync(
                reviewer.reviewed, workspace.proposal(), workspace.refused, session
            )
        if ended.unfinished and run.is_empty and not extraction.at_end:
            return ended.unfinished  # nothing valid is left of the run
        compare = partial(to_thread.run_sync, self._compare_prefix, extraction, task)
        extracted = ExtractionResult(
            requests.COMPLETED,
            passed_over=run.faults,
            already_said=run.already_said,
            problem=new_part.problem or ended.unfinished,
            engine=task.model,
            usage=asdict(ended.usage),
            turns=ended.turns,
            prefix_changed=await compare() if is_client_s else (),
        )
        change = ChangePlan(
            run.proposal, session=session, modified=text.iso_time(now), pointers=run.pointers
        )
        accepted = {file.path: file for file in run.proposal.files}

        def plan(tree: Tree) -> MergedDraft:
            """Return the run's change; a memory that meets a newer file becomes a suggestion."""
            draft = change.plan(tree)
            conflicting = [reviewer.suggestion(accepted[path], session) for path in change.left]
            suggestions = (*run.suggestions, *filter(None, conflicting))
            return MergedDraft(draft, suggestions=_without_secrets(suggestions))

        return await self._commit(extraction, extracted, plan, run.origin)

    async def _make_task(
        self, extraction: Extraction, model: Model, client: Task | None, news: fork.News
    ) -> tuple[Task, bool, Sequence[MemoryFile]]:
        """Return the task, whether it begins with the client's, and the memories it shows."""
        name = self._models.name(extraction.settings, fork.KIND)
        if model.calls_tools:
            cheaper = partial(fork.cheaper, news, name, client, extraction.settings.spend.prices)
            return *await to_thread.run_sync(cheaper), ()
        paths = await to_thread.run_sync(fork.touched, news)
        files = await to_thread.run_sync(self._store.reading.read_many, news.directory, paths)
        task = await to_thread.run_sync(fork.single, news, name, files)
        return task, False, files

    def _verify_quotations(self, project: Project, body: str, said: str) -> tuple[str, str]:
        """Return the text and origin for ``proven``. Blocks: runs in a worker thread."""
        folders, directory = transcript_folders(project), os.path.realpath(project.memory_dir)
        paths = {f"{folder}/{name}.jsonl" for folder in folders for name in sessions_of(folder)}
        paths |= {move.source for at, move in transcript_cursors(self._table) if at == directory}
        quoting_lines = quotations(body)
        claimed = [said] if said else [*quoting_lines.values()][:_QUOTATIONS]
        sources = [listening.quoted(paths, words) for words in claimed]
        proven = [text.said_line(said.text, said.at) for said in sources if said]
        own = "\n".join(line for line in body.split("\n") if line not in quoting_lines).strip()
        origin = PERSON if 0 < len(proven) == len(claimed) else ASSISTANT
        if listening.repeats_agents(paths, own):
            origin = AGENT
        return "\n\n".join(filter(None, (own, *proven))), origin

    def _compare_prefix(self, extraction: Extraction, task: Task) -> tuple[str, ...]:
        """Remember the client's prefix; return and log its parts that changed since the last."""
        directory, session = extraction.project.memory_dir, extraction.session
        parts = fork.fingerprints(task)
        changed = fork.changed(self._prefixes.pop((directory, session), {}), parts)
        self._prefixes[directory, session] = parts
        if changed:
            self._log("prefix_changed", session=session, directory=directory, parts=list(changed))
        return changed


def _skip_reason(project: Project, settings: Settings, new_part: NewPart) -> str:
    """Return why what is new in a conversation is not looked at, "" if it is. Blocks."""
    if listening.wrote_memory(project, new_part):
        return requests.ALREADY_WRITTEN
    if not new_part.turns:
        return requests.NOTHING_NEW
    return requests.OUTSIDE if new_part.outside and settings.extract.skip_outside else ""


def _without_covered(result: candidates.Candidates, covered: Covered) -> candidates.Candidates:
    """Return a result without the suggestions that stand in instruction files, which it names."""
    said = [(each, covered(each.text)) for each in result.suggestions]
    return replace(
        result,
        suggestions=tuple(suggestion for suggestion, file in said if not file),
        already_said=tuple(shown(suggestion.text, file) for suggestion, file in said if file),
    )


def _open_workspace(project: Project, reviewer: Reviewer, *, team: bool) -> Workspace:
    """Return a run's workspace, in which each change is reviewed. Blocks."""
    workspace = Workspace(
        project.memory_dir,
        transcripts=(f"{project.transcripts}/{slug(project.cwd)}",),
        origin=PERSON,
        removals=True,
        team=team,
        check=reviewer.problem,
    )
    reviewer.answers, reviewer.theirs = workspace.answers, workspace.shared
    return workspace


def _without_secrets(suggestions: Iterable[Suggestion]) -> tuple[Suggestion, ...]:
    """Return suggestions without those that look like a credential; these are not stored."""
    return tuple(
        each
        for each in suggestions
        if not secret.find(f"{each.text}\n{each.reason}\n{each.type}\n{each.session}")
    )


def _count_allowed(cursor: ExtractionCursor) -> int:
    """Return how many suggestions that nobody requested a session may still make."""
    allowed = _SUGGESTIONS * max(1, -(-cursor.messages // _MESSAGES))
    return max(0, allowed - cursor.suggested)
