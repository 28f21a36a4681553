"""Dreams: consolidation under the lock, judged at the door, one change set.

Rules of this file
- The lock is taken and settled by ``lock.py``; its time and the change become true in one
  transaction. ``recover`` settles what a crash left, before any dream begins.
- Pass and judge run on the directory as it is, and no writer waits for them. The commit compares
  each file that they would touch with what they saw; where one differs, both run again inside it,
  on the live tree. Cancelled or late, a dream commits nothing once its pass has ended; a commit
  that has begun is never cut in half: it ends, and then the lock is kept.
- A model works in a workspace. It hears once what the judge has against its work. One that does not
  finish has done nothing; one that cannot be asked today is replaced by the fixed pass.
- Settling the lock is shielded from cancellation, and bounded.
- What the judge does not let through is kept as a proposal (``state/proposals.py``); the rest of
  the dream is committed, and the dream counts as done: tomorrow's proposal would be the same.
"""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial

import anyio
from anyio import to_thread

from memd.agent import service as agent
from memd.agent.service import Progress, RunEnd, RunRecord, Task
from memd.core.clock import Clock
from memd.core.covered import CoveredIn, in_no_project
from memd.core.errors import MemdError
from memd.core.names import INDEX
from memd.core.settings import Settings
from memd.core.values import Actor, Draft, JobEnd, LockTaken, Project, Provenance, Tree
from memd.core.yielding import checking
from memd.dream import briefing, gates, unused
from memd.dream.consolidate import fixed
from memd.dream.lock import DreamLock
from memd.dream.pass_result import PassResult, ReadyPass, Work, find, orphans, size
from memd.dream.run import (
    DreamEndedError,
    DreamFailedError,
    DreamRun,
    DreamTimeoutError,
    LockLostError,
    ModelRun,
)
from memd.dream.values import DirectorySize, Question, Reasoned, Report, Wanted
from memd.model.errors import LEFT_ALONE, NO_USE_TODAY
from memd.model.port import Model, ModelSource
from memd.projects.project import is_of_agent
from memd.state.changes import UNUSED, Proposal, ProposalTable, ProposedEdit
from memd.state.database import StateUnusableError
from memd.state.tables import DreamTable, Runs
from memd.store.drafts import StoreDraft
from memd.store.history import Past
from memd.store.service import Store
from memd.watch import locks

__all__ = ["DirectorySize", "Dreams", "Question", "Reasoned", "Report"]

_CLEANUP_SECONDS = 5.0  # two renames and one durable transaction, on a slow disk
_MINUTE = 60.0

_LATELY_SECONDS = 30 * 24 * 60 * 60.0  # a third may not go bit by bit either
_REFUSALS = 20  # that a model is told, the newest
Note = Callable[..., None]


def _quiet(*_: object, **__: object) -> None:
    """Tell nobody."""


class Dreams:
    """Consolidation of memory directories.

    ``models`` gives the model that the settings name and ``runs`` keeps the records of its runs;
    ``work`` is the fixed pass. ``is_alive`` tells of a PID, ``note`` is told what belongs into the
    log. ``covered`` gives what tells which texts a project's instruction files say.
    """

    def __init__(
        self,
        store: Store,
        table: DreamTable,
        proposals: ProposalTable,
        clock: Clock,
        *,
        models: ModelSource,
        runs: Runs,
        work: Work | None = None,
        is_alive: locks.Alive = locks.alive,
        note: Note = _quiet,
        covered: CoveredIn = in_no_project,
    ) -> None:
        self._store = store
        self._table = table
        self._proposals = proposals
        self._clock = clock
        self._models = models
        self._runs = runs
        self._note = note
        self._covered = covered
        self._given = work
        self._lock = DreamLock(table, clock, is_alive)

    async def recover(self) -> tuple[str, ...]:
        """Put back what dreams left that a crash ended; call it before any dream.

        Returns sentences about it. Raises StateUnusableError.
        """
        return await to_thread.run_sync(self._lock.recover)

    async def run(
        self,
        project: Project,
        settings: Settings,
        *,
        job: str,
        client: str = "",
        session: str = "",
        progress: Progress = _quiet,
        allow_model: bool = True,
    ) -> Report:
        """Consolidate the memories of a project as the job says; the report tells what was done.

        Unless ``allow_model`` the fixed pass does it, although a model is configured. Raises
        LockUnusableError, LockLostError, DreamTimeoutError, DreamFailedError, and what
        ``Store.take_back`` raises. A failure or a cancellation leaves memories and the lock's time
        as they were.
        """
        gate = gates.switches(project, settings)
        if not gate.open:
            return Report(gate=gate.name)
        progress("starting")
        await self._store.ensure(project.memory_dir)
        held = await to_thread.run_sync(self._lock.take, project.memory_dir)
        if held is None:
            return Report(gate=gates.LOCK)
        began = self._clock.monotonic()
        dream = DreamRun(project, settings, held, progress, began, job, client, session)
        try:
            report = await self._within(dream, allow_model=allow_model)
        finally:
            await self._finish(dream)
        report = await self._complete(dream, report)
        if report.change is not None:
            progress("updating", files=list(report.changed), change=report.change)
        return report

    async def _within(self, dream: DreamRun, *, allow_model: bool) -> Report:
        """Dream, but no longer than the settings allow."""
        watching, minutes = anyio.CancelScope(), dream.settings.dream.max_minutes

        async def watch() -> None:
            with watching:
                try:
                    await self._clock.sleep(minutes * _MINUTE)
                finally:
                    dream.over = True
                group.cancel_scope.cancel()

        failure: MemdError = DreamTimeoutError(minutes)
        async with anyio.create_task_group() as group:
            group.start_soon(watch)
            try:
                await self._dream(dream, allow_model=allow_model)
            except DreamEndedError:
                pass  # late, or cancelled from outside: the checkpoint below tells
            except MemdError as error:  # out of the group as it is, not within an exception group
                failure = error
            watching.cancel()
        if dream.report is not None:
            return dream.report
        await anyio.lowlevel.checkpoint()
        raise failure

    async def _dream(self, dream: DreamRun, *, allow_model: bool) -> None:
        dream.covered = await self._covered(dream.project, dream.settings)
        early = await self._pass(dream, allow_model=allow_model)
        proposal = await self._proposed(dream, early)
        dream.question = await self._question(dream, early)
        result, change = await self._committed(dream, early, proposal)
        if result is not early:
            proposal = await self._proposed(dream, result)
        report = replace(result.report, change=change, unused=dream.question)
        dream.report = replace(report, proposal=proposal)

    async def _proposed(self, dream: DreamRun, result: PassResult) -> str | None:
        """Keep what may not be done as a proposal; returns its id, ``None`` where there is none."""
        proposal: str | None = None
        if result.report.problems:
            dream.check()
            wanted = result.proposal(dream.directory, dream.job, self._clock.now())
            propose = partial(self._proposals.propose, wanted, dream.by(result.done))
            with anyio.CancelScope(shield=True):  # one set
                proposal = await to_thread.run_sync(propose)
        return proposal

    async def _question(self, dream: DreamRun, result: PassResult) -> str | None:
        """Ask a person about memories that nobody used; returns the question's id, if any.

        It takes the place of the last question, and is no part of what the dream does.
        """
        directory, at = dream.directory, self._clock.now()

        def ask() -> str | None:
            wanted = dream.settings.dream.unused and not is_of_agent(directory)
            edits: tuple[ProposedEdit, ...] = ()
            if wanted and (candidates := self._proposals.unused(directory)):
                with checking(dream.check), self._store.reading.tree(directory) as tree:
                    edits = unused.question(candidates, tree, result.judged.members)
            question = Proposal("", directory, at, job=dream.job, edits=edits)
            by = Provenance(Actor.DREAM, dream.client, dream.session, reason=UNUSED)
            return self._proposals.ask(question, by)

        question: str | None = None
        with anyio.CancelScope(shield=True):  # one set
            question = await to_thread.run_sync(ask)
        return question  # noqa: RET504 - mypy takes the scope for one that may end early

    async def _surveyed(self, dream: DreamRun, done: ReadyPass) -> PassResult:
        """Have a pass judged on the directory as it is; no writer waits meanwhile."""

        def survey(past: Past) -> PassResult:
            with self._store.reading.tree(dream.directory) as tree:
                return self._results(dream, done, past, tree)

        return await self._store.consult(survey, dream.directory)

    async def _committed(
        self, dream: DreamRun, early: PassResult, proposal: str | None
    ) -> tuple[PassResult, str | None]:
        """Commit what may stand; judge again if a file is not as it was.

        Returns what came of it in the end, and the change's id if there is one.
        """
        result = early

        def plan(past: Past, tree: Tree) -> Draft:
            nonlocal result
            if not early.holds(tree):
                result = self._results(dream, early.done, past, tree)
            dream.check()
            if not dream.held.ours():
                raise LockLostError(dream.directory)
            if result.report.problems and not result.judged.edits:
                return Draft()
            facts = replace(result.report, proposal=proposal, unused=dream.question).facts()
            end = JobEnd(dream.job, "completed", json.dumps(facts))
            retained = LockTaken(dream.directory, dream.held.taken_ns)
            mend = all(left.path != INDEX for left in result.wanted.left)
            return StoreDraft(result.judged.edits, effects=(end, retained), mend_index=mend)

        committed = await self._store.take_back(
            dream.directory, lambda past: partial(plan, past), dream.by(early.done)
        )
        return result, committed.change

    def _results(self, dream: DreamRun, done: ReadyPass, past: Past, tree: Tree) -> PassResult:
        """Return what a pass comes to. Blocks; raises DreamEndedError once the dream is over."""
        with checking(dream.check):
            now = self._clock.now()
            lately = self._table.lately(dream.directory, now - _LATELY_SECONDS)
            return find(tree, done, past, now, lately, covered=dream.covered)

    async def _pass(self, dream: DreamRun, *, allow_model: bool) -> PassResult:
        """Return what a pass comes to: a model's where there is one, else the fixed one.

        Raises DreamFailedError and what reading the directory raises.
        """
        model = self._models.for_(dream.settings) if dream.settings.dream.use_model else None
        problem = LEFT_ALONE if model and not allow_model else ""
        task = None if model is None or problem else await self._request(dream, model)
        if model is None or task is None:
            return await self._surveyed(dream, self._fixed(dream, Report(model_problem=problem)))
        async with agent.opened(dream.workspace) as workspace:
            run = ModelRun(dream, task, model, workspace)
            try:
                return await self._by_model(run)
            finally:
                await self._save(dream.job, run.record)

    async def _by_model(self, run: ModelRun) -> PassResult:
        """Let an agent work, and tell it once what the judge has against that."""
        dream, task = run.dream, run.task
        ended = await self._agent(run, task)
        if not ended.finished:
            if not isinstance(ended.error, NO_USE_TODAY):
                raise DreamFailedError(ended)
            report = run.billed(Report(model_problem=ended.error.sentence))
            return await self._surveyed(dream, self._fixed(dream, report))
        done = await to_thread.run_sync(run.done, ended.text, self._clock.now())
        result = await self._surveyed(dream, done)
        if not result.report.problems or ended.turns >= task.budget.turns:
            return result
        again = briefing.mend(task, ended, result.report.problems)
        left = dream.began + task.seconds - self._clock.monotonic()
        more = await self._agent(run, replace(again, seconds=max(left, 0.0)))
        done = replace(done, report=run.billed(done.report))
        if more.finished:
            done = await to_thread.run_sync(run.done, more.text, self._clock.now())
        return await self._surveyed(dream, done)

    async def _agent(self, run: ModelRun, task: Task) -> RunEnd:
        """Run an agent once; whoever watches hears of it as of one dream."""
        ended = await agent.run(
            task, run.model, run.workspace, self._clock, run.progress, record=run.record
        )
        run.ran(ended)
        return ended

    async def _request(self, dream: DreamRun, model: Model) -> Task | None:
        """Return what a model is asked, ``None`` where there is nothing to look at."""
        seen = await self._store.snapshot(dream.directory)
        days: tuple[str, ...] = ()
        if model.calls_tools:
            days = await to_thread.run_sync(briefing.changed_logs, dream.directory, dream.last)
        if not (seen.headers or days):
            return None
        brief = briefing.Brief(
            dream.project,
            dream.settings.dream,
            seen,
            model=self._models.name(dream.settings, briefing.KIND),
            now=self._clock.now(),
            refusals=await to_thread.run_sync(self._proposals.refusals, dream.directory, _REFUSALS),
        )
        if model.calls_tools:
            return await to_thread.run_sync(briefing.task, brief, dream.last, days)
        newest = [header.path for header in seen.headers[: briefing.NEWEST]]
        return briefing.single(brief, await self._store.read_many(dream.directory, newest))

    def _fixed(self, dream: DreamRun, report: Report) -> ReadyPass:
        """Return the fixed pass, which leaves alone what a person took back."""

        def work(past: Past, tree: Tree) -> Wanted:
            refused = self._proposals.refused_edits(dream.directory)
            return fixed(tree, partial(past.repeats, dream.directory), refused)

        given = self._given
        return ReadyPass((lambda _, tree: given(tree)) if given else work, report)

    async def _save(self, job: str, record: RunRecord) -> None:
        """Keep the record of a dream's runs, whatever came of them, whatever is cancelled."""
        turns = [turn | {"turn": number} for number, turn in enumerate(record.turns, 1)]
        with anyio.move_on_after(_CLEANUP_SECONDS, shield=True):
            try:
                await to_thread.run_sync(self._runs.save, job, turns, self._clock.now())
            except StateUnusableError as error:  # the dream has an end of its own to tell
                self._note("record_lost", job=job, detail=error.sentence)

    async def _complete(self, dream: DreamRun, report: Report) -> Report:
        """Return a report with the size afterwards, unlisted memories and the duration."""
        after = None
        unlisted: tuple[str, ...] = ()
        with anyio.CancelScope(shield=True), suppress(MemdError):  # done is to be reported
            seen = await self._store.snapshot(dream.directory)
            after = size(seen.headers, seen.index)
            unlisted = orphans(seen.headers, seen.index)
        seconds = round(self._clock.monotonic() - dream.began, 3)
        return replace(report, after=after, orphans=unlisted, seconds=seconds)

    async def _finish(self, dream: DreamRun) -> None:
        """Settle the lock file and then its row, whatever is cancelled meanwhile."""
        with anyio.move_on_after(_CLEANUP_SECONDS, shield=True):
            finish = partial(self._lock.finish, dream.held, done=dream.report is not None)
            await to_thread.run_sync(finish, abandon_on_cancel=True)
