"""Run dreams: consolidate under the lock, judge the edits and commit them as one change set.

Rules of this file
- ``lock.py`` takes and releases the lock; the lock's time and the change are committed in one
  transaction. ``recover`` repairs locks after a crash, before any dream begins.
- Pass and judge run on the directory without blocking writers. The commit compares each file that
  they would change with what they saw; if one differs, both run again inside the commit, on the
  live tree. A dream that is cancelled or late does not begin a commit; a commit that has begun is
  completed, and then the lock's new time stays.
- A model works in a workspace. It is told the judge's problems once. A bound that it reaches is an
  end: what it did is judged. A model that fails changes nothing; one that cannot be used today is
  replaced by the fixed pass.
- Releasing the lock is shielded from cancellation, for a limited time.
- Edits that the judge keeps back are stored as a proposal (``state/proposals.py``). The rest is
  committed and the dream counts as done, as another dream would propose the same.
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
from memd.base.names import INDEX
from memd.base.settings import Settings
from memd.base.values import Draft, Project, Tree
from memd.base.yielding import checking
from memd.dream import briefing, gates
from memd.dream.consolidate import fixed_pass
from memd.dream.lock import DreamLock, time_kept
from memd.dream.pass_result import PassResult, ReadyPass, Work, judged_pass, orphans, size
from memd.dream.removals import removed_since
from memd.dream.run import MINUTES, DreamRun, ModelRun, dream_timeout, dream_unfinished
from memd.dream.values import DirectorySize, DreamReport, Reasoned, Wanted
from memd.model.errors import LEFT_ALONE, NO_USE_TODAY
from memd.model.port import LOCAL, Model, ModelSource
from memd.state.database import Database, StateUnusableError
from memd.state.docs import Docs
from memd.state.jobs import job_completed
from memd.state.proposals import ProposalTable
from memd.store.directory import ensure
from memd.store.lock import IsAlive, is_alive
from memd.store.past import Past
from memd.store.store import Store

__all__ = ["DirectorySize", "DreamReport", "Dreams", "Reasoned"]

_CLEANUP_SECONDS = 5.0  # two renames and one durable transaction, on a slow disk
_MINUTE = 60.0
_LOSS_WINDOW_SECONDS = 30 * 24 * 60 * 60.0  # dreams may remove a third of the memories in it
_REFUSALS = 20  # newest refused edits that a model is shown
Note = Callable[..., None]


def _ignore_report(*_: object, **__: object) -> None:
    """Ignore a report of progress or a log entry."""


class Dreams:
    """Consolidates memory directories: takes the lock, runs a pass, judges and commits it.

    ``models`` returns the model of the settings; ``runs`` stores the records of its runs. ``work``
    replaces the fixed pass. ``is_alive`` returns whether a PID lives, ``note`` writes to the log.
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
        self._replacement = work  # takes the place of the fixed pass, None for the fixed pass
        self._lock = DreamLock(Docs(database), clock, is_alive)

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
                await self._run_pass(dream, allow_model=allow_model)
            except Cancelled:
                pass  # timed out, or cancelled: then the checkpoint below raises
            except MemdError as error:  # raised below, outside the group, which would wrap it
                failure = error
            timer_scope.cancel()
        if dream.report is not None:
            return dream.report
        await anyio.lowlevel.checkpoint()  # raises if the dream was cancelled
        raise failure

    async def _run_pass(self, dream: DreamRun, *, allow_model: bool) -> None:
        """Run the pass, store its proposal and question, commit it and set the dream's report."""
        first_result = await self._run_first_pass(dream, allow_model=allow_model)
        proposal = await self._store_proposal(dream, first_result)
        result, change = await self._commit(dream, first_result, proposal)
        if result is not first_result:  # the commit judged the pass again
            proposal = await self._store_proposal(dream, result)
        dream.report = replace(result.report, change=change, proposal=proposal)

    async def _store_proposal(self, dream: DreamRun, result: PassResult) -> str | None:
        """Store the kept-back edits as a proposal; return its id, ``None`` if there are none."""
        proposal: str | None = None
        if result.report.problems:
            dream.check()
            new_proposal = result.proposal(dream.directory, dream.job, self._clock.now())
            engine = dream.provenance(result.ready).model
            propose = partial(self._proposals.propose, replace(new_proposal, engine=engine))
            with anyio.CancelScope(shield=True):  # the id must not be lost once it is stored
                proposal = await to_thread.run_sync(propose)
        return proposal

    async def _judge_directory(self, dream: DreamRun, ready: ReadyPass) -> PassResult:
        """Return the judged result of a pass on the directory without blocking writers."""

        def judge_now(past: Past, real: str) -> PassResult:  # noqa: ARG001 - the shape of a query
            with self._store.reading.tree(dream.directory) as tree:
                return self._judge_tree(dream, ready, past, tree)

        return await to_thread.run_sync(self._store.consult, judge_now, dream.directory)

    async def _commit(
        self, dream: DreamRun, first_result: PassResult, proposal: str | None
    ) -> tuple[PassResult, str | None]:
        """Commit the accepted edits, judging again if a file changed meanwhile.

        Returns the result that was committed, and the id of the change, ``None`` if there is none.
        """
        result = first_result

        def plan(past: Past, tree: Tree) -> Draft:
            """Return the accepted edits for the live tree, with what is committed with them."""
            nonlocal result
            # A file changed since the pass was judged: judge again, on the live tree.
            if not first_result.still_holds(tree):
                result = self._judge_tree(dream, first_result.ready, past, tree)
            dream.check()
            if not dream.lock.is_ours():
                raise Busy(
                    f"another program began to consolidate {dream.directory}; nothing was written",
                    directory=dream.directory,
                )
            # All edits are kept back in a proposal, so there is nothing to commit.
            if result.report.problems and not result.judged.edits:
                return Draft()
            facts = replace(result.report, proposal=proposal).facts()
            end = job_completed(dream.job, facts, self._clock.now())
            # From now on a release of the lock sets the dream's time, even after a crash.
            lock_time = time_kept(dream.lock)
            # The store does not mend an index whose earlier change a person took back.
            mend = all(left.path != INDEX for left in result.wanted.left)
            edits, effects = result.judged.edits, (end, lock_time)
            return Draft(edits, effects=effects, mend_index=mend, drop_dangling=mend)

        committed = await self._store.take_back(
            dream.directory,
            lambda past, _: partial(plan, past),
            dream.provenance(first_result.ready),
        )
        return result, committed.change

    def _judge_tree(self, dream: DreamRun, ready: ReadyPass, past: Past, tree: Tree) -> PassResult:
        """Return the judged result of a pass on a tree.

        Blocks. Raises Cancelled once the dream is over.
        """
        with checking(dream.check):
            now = self._clock.now()
            recent_losses = removed_since(
                self._database, dream.directory, now - _LOSS_WINDOW_SECONDS
            )
            return judged_pass(tree, ready, past, now, recent_losses)

    async def _run_first_pass(self, dream: DreamRun, *, allow_model: bool) -> PassResult:
        """Return the judged result of the model's pass, or of the fixed pass if there is no model.

        Raises Model and the errors of reading the directory.
        """
        model = self._models.for_(dream.settings) if dream.settings.dream.use_model else None
        problem = LEFT_ALONE if model and not allow_model else ""
        task = None
        if model is not None and allow_model:
            task = await self._make_task(dream, model)
        if model is None or task is None:
            return await self._judge_directory(
                dream, self._fixed_pass(dream, DreamReport(model_problem=problem))
            )
        async with agent.opened(dream.workspace) as workspace:
            run = ModelRun(dream, task, model, workspace)
            try:
                return await self._run_model(run)
            finally:
                await self._save_record(dream.job, run.record)

    async def _run_model(self, run: ModelRun) -> PassResult:
        """Return the judged result of a model's pass; the model may correct its work once.

        The fixed pass takes its place if it cannot be used today. Raises errors.Model.
        """
        dream, task = run.dream, run.task
        ended = await self._run_agent(run, task)
        if not ended.valid:
            if not isinstance(ended.error, NO_USE_TODAY):
                raise dream_unfinished(ended)
            report = run.with_cost(DreamReport(model_problem=ended.error.sentence))
            return await self._judge_directory(dream, self._fixed_pass(dream, report))
        ready = await to_thread.run_sync(run.make_pass, ended.text, self._clock.now())
        result = await self._judge_directory(dream, ready)
        is_over = not ended.finished or ended.turns >= task.budget.turns
        if not result.report.problems or is_over:
            return result
        correction = briefing.correction_task(task, ended, result.report.problems)
        seconds_left = max(dream.started_at + task.seconds - self._clock.monotonic(), 0.0)
        corrected = await self._run_agent(run, replace(correction, seconds=seconds_left))
        if corrected.valid:
            ready = await to_thread.run_sync(run.make_pass, corrected.text, self._clock.now())
        else:  # the first run's pass, with the cost of both runs
            ready = replace(ready, report=run.with_cost(ready.report))
        return await self._judge_directory(dream, ready)

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
        log_days: tuple[str, ...] = ()
        if model.calls_tools:  # only a tool can read the logs
            log_days = await to_thread.run_sync(
                briefing.changed_logs, dream.directory, dream.last_dream_at
            )
        if not (snapshot.headers or log_days):
            return None
        brief = briefing.Brief(
            dream.project,
            snapshot,
            model=self._models.name(dream.settings, briefing.KIND),
            now=self._clock.now(),
            refusals=await to_thread.run_sync(self._proposals.refusals, dream.directory, _REFUSALS),
        )
        if model.calls_tools:
            return await to_thread.run_sync(
                briefing.agent_task, brief, dream.last_dream_at, log_days
            )
        newest = [header.path for header in snapshot.headers[: briefing.MEMORIES_OF_ONE_REQUEST]]
        return briefing.single_request_task(
            brief, await to_thread.run_sync(self._store.reading.read_many, dream.directory, newest)
        )

    def _fixed_pass(self, dream: DreamRun, report: DreamReport) -> ReadyPass:
        """Return the fixed pass, or the constructor's ``work`` in its place."""
        replacement = self._replacement

        def work(past: Past, tree: Tree) -> Wanted:
            """Return the edits, without those that a person took back or refused."""
            if replacement is not None:
                return replacement(tree)
            refused = self._proposals.refused_edits(dream.directory)
            return fixed_pass(tree, partial(past.repeats, dream.directory), refused)

        return ReadyPass(work, report)

    async def _save_record(self, job: str, record: RunRecord) -> None:
        """Store the record of a dream's runs, even if the dream failed or is cancelled."""
        turns = [turn | {"turn": number} for number, turn in enumerate(record.turns, 1)]
        with anyio.move_on_after(_CLEANUP_SECONDS, shield=True):
            try:
                await to_thread.run_sync(self._runs.save, job, turns)
            except StateUnusableError as error:  # must not replace the dream's own error
                self._note("record_lost", job=job, detail=error.sentence)

    async def _complete_report(self, dream: DreamRun, report: DreamReport) -> DreamReport:
        """Return a report with the new size, memories missing in the index and the duration."""
        after = None
        unlisted: tuple[str, ...] = ()
        # A committed dream is reported even if it is cancelled now or the directory is unreadable.
        with anyio.CancelScope(shield=True), suppress(MemdError):
            snapshot = await to_thread.run_sync(self._store.reading.snapshot, dream.directory)
            after = size(snapshot.headers, snapshot.index)
            unlisted = orphans(snapshot.headers, snapshot.index)
        seconds = round(self._clock.monotonic() - dream.started_at, 3)
        return replace(report, after=after, orphans=unlisted, seconds=seconds)

    async def _release_lock(self, dream: DreamRun) -> None:
        """Release the lock, even if the dream is cancelled."""
        with anyio.move_on_after(_CLEANUP_SECONDS, shield=True):
            finish = partial(self._lock.finish, dream.lock, is_complete=dream.report is not None)
            await to_thread.run_sync(finish, abandon_on_cancel=True)
