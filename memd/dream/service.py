"""Run dreams: consolidate under the lock, judge each group and commit the good ones as one change.

Rules of this file
- ``lock.py`` takes and releases the lock; the lock's time, the proposal and the change are
  committed in one transaction. ``recover`` repairs locks after a crash, before any dream begins.
- Pass and judgement run on the directory without blocking writers. The commit leaves each group of
  which a file has changed since it was read. A dream that is cancelled or late does not begin a
  commit; one that has begun is completed, and then the lock's new time stays.
- A model works in a workspace. What it wrote anew is put to it once more, in a request of its own
  (``second_reader.py``). It is told the problems once. A bound that it reaches is an end: what it
  did is judged. A model that fails changes nothing; the fixed pass takes the place of one that
  cannot be used today.
- Releasing the lock is shielded from cancellation, for a limited time.
- Groups with a problem are stored as a proposal (``state/proposals.py``). The rest is committed and
  the dream counts as done, as another dream would propose the same.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial

import anyio
from anyio import to_thread
from msgspec.structs import replace

from memd.agent import service as agent
from memd.agent.runs import Runs
from memd.agent.service import Progress, RunEnd, RunRecord, Task
from memd.base.clock import Clock
from memd.base.errors import Busy, Cancelled, MemdError
from memd.base.settings import Settings
from memd.base.text import iso_time
from memd.base.values import Draft, Project, Reasoned, Tree
from memd.base.yielding import checking
from memd.dream import briefing, check, gates, second_reader, sources
from memd.dream.committing import Committing, Judged, Pass, size
from memd.dream.consolidate import fixed_pass
from memd.dream.lock import DreamLock, time_kept
from memd.dream.removals import removed_lately
from memd.dream.run import MINUTES, DreamRun, ModelRun, dream_timeout, dream_unfinished
from memd.dream.sources import OwnWords
from memd.dream.values import DirectorySize, DreamReport, Group, Wanted, problems_of
from memd.model.errors import LEFT_ALONE, NO_USE_TODAY, ModelError
from memd.model.port import LOCAL, Model, ModelSource
from memd.state.database import Database, StateUnusableError
from memd.state.docs import Docs
from memd.state.logs import distilled_logs
from memd.state.proposals import ProposalTable
from memd.store.directory import ensure
from memd.store.lock import IsAlive, is_alive
from memd.store.past import Past
from memd.store.store import Store

__all__ = ["DirectorySize", "DreamReport", "Dreams", "Reasoned"]

_CLEANUP_SECONDS = 5.0  # two renames and one durable transaction, on a slow disk
_MINUTE = 60.0
_SECOND_READS = 20  # groups that one dream has read a second time
_REFUSALS = 20  # newest refused edits that a model is shown
Note = Callable[..., None]


Work = Callable[[Tree], Wanted]  # returns what a pass wants


def _ignore_report(*_: object, **__: object) -> None:
    """Ignore a report of progress or a log entry."""


def _no_words(_: str) -> str:
    """Return no word of a message as the person's."""
    return ""


class Dreams:
    """Consolidates memory directories: takes the lock, runs a pass, judges and commits it.

    ``models`` returns the model of the settings; ``runs`` stores the records of its runs. ``work``
    replaces the fixed pass. ``own_words`` returns the person's own words in a message. ``is_alive``
    returns whether a PID lives, ``note`` writes to the log.
    """

    def __init__(
        self,
        store: Store,
        database: Database,
        proposals: ProposalTable,
        clock: Clock,
        *,
        models: ModelSource,
        runs: Runs,
        work: Work | None = None,
        own_words: OwnWords = _no_words,
        is_alive: IsAlive = is_alive,
        note: Note = _ignore_report,
    ) -> None:
        self._store = store
        self._database = database  # what earlier dreams removed is in their jobs' results
        self._proposals = proposals
        self._clock = clock
        self._models = models
        self._runs = runs  # stores what a model did in each turn
        self._note = note
        self._own_words = own_words
        self._docs = Docs(database)
        self._replacement = work  # takes the place of the fixed pass, None for the fixed pass
        self._lock = DreamLock(self._docs, clock, is_alive)

    async def recover(self) -> tuple[str, ...]:
        """Release the locks of dreams that a crash ended; call it before any dream.

        Returns a sentence about each. Raises StateUnusableError.
        """
        return await to_thread.run_sync(self._lock.recover)

    def engine(self, settings: Settings) -> str:
        """Return the name of the model that a dream would ask, or ``LOCAL``."""
        uses_model = settings.dream.use_model and self._models.for_(settings) is not None
        return self._models.name(settings, briefing.KIND) if uses_model else LOCAL

    async def proposals_in(self, directory: str) -> int:
        """Return how many proposals for a directory are open. Raises StateUnusableError."""
        return await to_thread.run_sync(self._proposals.waiting_in, directory)

    async def run(
        self,
        project: Project,
        settings: Settings,
        *,
        job: str,
        client: str = "",
        session: str = "",
        progress: Progress = _ignore_report,
        allow_model: bool = True,
    ) -> DreamReport:
        """Consolidate the memories of a project and return the report.

        Without ``allow_model`` the fixed pass is used even if a model is configured. Raises
        Busy, Model, Storage and the errors of ``Store.take_back``. A failure or a cancellation
        leaves memories and the lock's time as they were.
        """
        gate = gates.switch_gate(project, settings)
        if not gate.open:
            return DreamReport(gate=gate.name)
        progress("starting")
        await to_thread.run_sync(ensure, project.memory_dir)
        lock = await to_thread.run_sync(self._lock.take, project.memory_dir)
        if lock is None:
            return DreamReport(gate=gates.LOCK)
        started_at = self._clock.monotonic()
        dream = DreamRun(project, settings, lock, progress, started_at, job, client, session)
        try:
            report = await self._run_in_time(dream, allow_model=allow_model)
        finally:
            await self._release_lock(dream)
        report = await self._complete_report(dream, report)
        if report.change is not None:
            progress("updating", files=list(report.changed), change=report.change)
        return report

    async def _run_in_time(self, dream: DreamRun, *, allow_model: bool) -> DreamReport:
        """Run the dream within 20 minutes and return its report.

        Raises Busy after that time, and the errors of the dream.
        """
        timer_scope = anyio.CancelScope()

        async def end_after_time() -> None:
            """Cancel the dream after its time, unless ``timer_scope`` is cancelled before."""
            with timer_scope:
                try:
                    await self._clock.sleep(MINUTES * _MINUTE)
                finally:  # the time is over, or the dream ended or was cancelled
                    dream.is_over = True
                group.cancel_scope.cancel()

        failure: MemdError = dream_timeout()
        async with anyio.create_task_group() as group:
            group.start_soon(end_after_time)
            try:
                judged = await self._run_pass(dream, allow_model=allow_model)
                dream.report = await self._commit(dream, judged)
            except Cancelled:
                pass  # timed out, or cancelled: then the checkpoint below raises
            except MemdError as error:  # raised below, outside the group, which would wrap it
                failure = error
            timer_scope.cancel()
        if dream.report is not None:
            return dream.report
        await anyio.lowlevel.checkpoint()  # raises if the dream was cancelled
        raise failure

    async def _commit(self, dream: DreamRun, judged: Judged) -> DreamReport:
        """Commit the good groups, and the others as a proposal; return the report."""
        committing = Committing(judged)
        engine = dream.provenance(judged.report.engine).model

        def plan(tree: Tree) -> Draft:
            """Return the edits of the good groups that the live tree still fits."""
            dream.check()
            if not dream.lock.is_ours():
                raise Busy(
                    f"another program began to consolidate {dream.directory}; nothing was written",
                    directory=dream.directory,
                )
            now = self._clock.now()
            effect = committing.effect(dream.directory, dream.job, engine, now)
            # From now on a release of the lock sets the dream's time, even after a crash.
            return committing.draft(tree, (effect, time_kept(dream.lock)))

        by = dream.provenance(judged.report.engine)
        committed = await self._store.commit(dream.directory, plan, by)
        return replace(committing.report, change=committed.change, proposal=committing.proposal)

    async def _judge(self, dream: DreamRun, make: Pass, report: DreamReport) -> Judged:
        """Return what a pass wants of the directory, without blocking writers."""

        def judge_now(past: Past, _: str) -> Judged:
            with self._store.reading.tree(dream.directory) as tree, checking(dream.check):
                before = size(tree.headers(), tree.index())
                return Judged(make(past, tree), replace(report, before=before))

        return await to_thread.run_sync(self._store.consult, judge_now, dream.directory)

    async def _run_pass(self, dream: DreamRun, *, allow_model: bool) -> Judged:
        """Return the result of the model's pass, or of the fixed pass if there is no model.

        Raises Model and the errors of reading the directory.
        """
        model = self._models.for_(dream.settings) if dream.settings.dream.use_model else None
        problem = LEFT_ALONE if model and not allow_model else ""
        task = None
        if model is not None and allow_model:
            task = await self._make_task(dream, model)
        if model is None or task is None:
            return await self._run_fixed_pass(dream, DreamReport(model_problem=problem))
        async with agent.opened(partial(dream.workspace, self._own_words)) as workspace:
            run = ModelRun(dream, task, model, workspace)
            try:
                return await self._run_model(run)
            finally:
                await self._save_record(dream.job, run.record)

    async def _run_model(self, run: ModelRun) -> Judged:
        """Return the result of a model's pass; the model may correct its work once.

        The fixed pass takes its place if it cannot be used today. Raises errors.Model.
        """
        dream, task = run.dream, run.task
        ended = await self._run_agent(run, task)
        if not ended.valid:
            if not isinstance(ended.error, NO_USE_TODAY):
                raise dream_unfinished(ended)
            report = run.with_cost(DreamReport(model_problem=ended.error.sentence))
            return await self._run_fixed_pass(dream, report)
        judged = await self._judge_run(run, ended.text)
        problems = problems_of(judged.wanted.groups)
        if not problems or not ended.finished or ended.turns >= task.budget.turns:
            return judged
        correction = briefing.correction_task(task, ended, problems)
        corrected = await self._run_agent(run, replace(correction, seconds=self._left(run)))
        if not corrected.valid:  # what it did at first, with the cost of both runs
            return replace(judged, report=run.with_cost(judged.report))
        return await self._judge_run(run, corrected.text or ended.text)

    async def _judge_run(self, run: ModelRun, text: str) -> Judged:
        """Return what a model's work is worth: by the rules, and by a second reader.

        ``text`` is the model's last message.
        """
        dream = run.dream

        def make(past: Past, tree: Tree) -> Wanted:
            """Return the groups of the run's work, as they fit the directory."""
            repeats = partial(past.repeats, dream.directory)
            now = self._clock.now()
            return check.wanted(
                run.workspace, tree, session=dream.session, now=now, repeats=repeats
            )

        report = await to_thread.run_sync(run.report, text)
        judged = await self._judge(dream, make, report)
        groups = [await self._read_again(run, group) for group in judged.wanted.groups]
        lately = await to_thread.run_sync(
            removed_lately, self._database, dream.directory, self._clock.now()
        )
        bounded = check.too_many(groups, judged.report.before.memories, len(lately))
        wanted = replace(judged.wanted, groups=bounded)
        return Judged(wanted, run.with_cost(judged.report))

    async def _read_again(self, run: ModelRun, group: Group) -> Group:
        """Return a group with the differences that a second reader finds as its problems."""
        if not (group.old or group.new):
            return group
        texts = (group.old, group.new)
        named = ", ".join(edit.path for edit in group.edits)
        if texts not in run.read_again:
            if len(run.read_again) >= _SECOND_READS:
                return replace(group, problems=(f"{named}: no second reader for so many groups",))
            ask = second_reader.request(
                group,
                kind=briefing.KIND,
                model=run.task.model,
                today=iso_time(self._clock.now())[:10],
                directory=run.dream.directory,
            )
            try:
                seconds = min(ask.seconds, self._left(run))
                reply = await run.model.ask(replace(ask, seconds=seconds))
            except ModelError as error:
                return replace(group, problems=(f"{named}: no second reader: {error.sentence}",))
            run.usage += reply.usage
            run.read_again[texts] = second_reader.problems(reply, group)
        return replace(group, problems=run.read_again[texts])

    def _left(self, run: ModelRun) -> float:
        """Return how many seconds a model's run has left."""
        return max(run.dream.started_at + run.task.seconds - self._clock.monotonic(), 0.0)

    async def _run_agent(self, run: ModelRun, task: Task) -> RunEnd:
        """Run an agent once and add the run to the dream's sums."""
        ended = await agent.run(
            task, run.model, run.workspace, self._clock, run.progress, record=run.record
        )
        run.add_run(ended)
        return ended

    async def _make_task(self, dream: DreamRun, model: Model) -> Task | None:
        """Return the task for a model, ``None`` if there are neither memories nor new logs."""
        snapshot = await to_thread.run_sync(self._store.reading.snapshot, dream.directory)
        distilled = await to_thread.run_sync(distilled_logs, self._docs, dream.directory)
        logs = await to_thread.run_sync(
            briefing.new_logs, dream.directory, distilled, self._clock.now()
        )
        if not (snapshot.headers or logs):
            return None
        brief = briefing.Brief(
            dream.project,
            snapshot,
            model=self._models.name(dream.settings, briefing.KIND),
            now=self._clock.now(),
            refusals=await to_thread.run_sync(self._proposals.refused, dream.directory, _REFUSALS),
        )
        if model.calls_tools:
            return await to_thread.run_sync(
                briefing.agent_task, brief, dream.last_dream_at, tuple(logs)
            )
        newest = [header.path for header in snapshot.headers[: briefing.MEMORIES_OF_ONE_REQUEST]]
        files = await to_thread.run_sync(self._store.reading.read_many, dream.directory, newest)
        return briefing.single_request_task(brief, files, logs)

    async def _run_fixed_pass(self, dream: DreamRun, report: DreamReport) -> Judged:
        """Return the result of the fixed pass, or of the constructor's ``work`` in its place.

        It is without the edits that a person took back.
        """
        replacement = self._replacement

        def make(past: Past, tree: Tree) -> Wanted:
            if replacement is not None:
                return replacement(tree)
            wanted = fixed_pass(tree, partial(past.repeats, dream.directory))
            distilled = distilled_logs(self._docs, dream.directory)
            logs = briefing.new_logs(dream.directory, distilled, self._clock.now())
            words = sources.suggestions(logs, dream.transcripts(self._own_words))
            return replace(wanted, suggestions=words)

        return await self._judge(dream, make, report)

    async def _save_record(self, job: str, record: RunRecord) -> None:
        """Store the record of a dream's runs, even if the dream failed or is cancelled."""
        turns = [turn | {"turn": number} for number, turn in enumerate(record.turns, 1)]
        with anyio.move_on_after(_CLEANUP_SECONDS, shield=True):
            try:
                await to_thread.run_sync(self._runs.save, job, turns)
            except StateUnusableError as error:  # must not replace the dream's own error
                self._note("record_lost", job=job, detail=error.sentence)

    async def _complete_report(self, dream: DreamRun, report: DreamReport) -> DreamReport:
        """Return a report with the new size and the duration."""
        after = None
        # A committed dream is reported even if it is cancelled now or the directory is unreadable.
        with anyio.CancelScope(shield=True), suppress(MemdError):
            snapshot = await to_thread.run_sync(self._store.reading.snapshot, dream.directory)
            after = size(snapshot.headers, snapshot.index)
        seconds = round(self._clock.monotonic() - dream.started_at, 3)
        return replace(report, after=after, seconds=seconds)

    async def _release_lock(self, dream: DreamRun) -> None:
        """Release the lock, even if the dream is cancelled."""
        with anyio.move_on_after(_CLEANUP_SECONDS, shield=True):
            finish = partial(self._lock.finish, dream.lock, is_complete=dream.report is not None)
            await to_thread.run_sync(finish, abandon_on_cancel=True)
