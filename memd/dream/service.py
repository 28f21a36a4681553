"""Dreams: consolidation under the lock, judged at the door, one change set.

Rules of this file
- The lock is taken and settled by ``holding.py``; its time and the change become true in one
  transaction. ``recover`` settles what a crash left, before any dream begins.
- The pass runs inside the store's commit, on the live tree, so what somebody changed meanwhile is
  seen as it is. Cancelled or late, a dream commits nothing once its pass has ended; a commit that
  has begun is never cut in half: it ends, and then the lock is kept.
- Settling the lock is shielded from cancellation, and bounded.
- What the judge does not let through is kept as a proposal; nothing of it is done, and the dream
  counts as done: tomorrow's proposal would be the same.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import anyio
from anyio import to_thread

from memd.core import dates
from memd.core.clock import Clock
from memd.core.errors import MemdError
from memd.core.settings import Settings
from memd.core.values import Actor, Draft, JobEnd, LockKept, Project, Provenance, Tree
from memd.dream import gates
from memd.dream.consolidate import consolidate
from memd.dream.gatekeeper import Gatekeeper, Looks
from memd.dream.gates import Outlook
from memd.dream.holding import Holding
from memd.dream.judge import judge
from memd.dream.report import Report
from memd.dream.verdict import Verdict, Wanted
from memd.state.dreams import DreamTable
from memd.store import locks, machine
from memd.store.drafts import StoreDraft
from memd.store.locks import Held
from memd.store.names import INDEX
from memd.store.service import Store

_CLEANUP_SECONDS = 5.0  # two renames and one durable transaction, on a slow disk
_MINUTE = 60.0

Work = Callable[[Tree], Wanted]  # a pass: what it would change


class DreamTimeoutError(MemdError):
    """The dream took longer than the settings allow."""

    code = 1004
    kind = "dream_timeout"
    hint = "raise dream.max_minutes in the settings"

    def __init__(self, minutes: float) -> None:
        super().__init__(f"the dream took longer than {minutes:g} minutes", minutes=minutes)


class DreamEndedError(MemdError):
    """The dream was cancelled before it could commit."""

    code = -32800
    kind = "cancelled"

    def __init__(self) -> None:
        super().__init__("the dream was cancelled; nothing was written")


class LockLostError(MemdError):
    """Another program took the consolidation lock while memd held it."""

    code = 1004
    kind = "lock_lost"
    retryable = True

    def __init__(self, directory: str) -> None:
        super().__init__(
            f"another program began to consolidate {directory}; nothing was written",
            directory=directory,
        )


@dataclass(slots=True)
class _Dream:
    """One dream at work. ``over``: it was cancelled or took too long and may not commit."""

    held: Held
    job: str
    by: Provenance
    over: bool = False
    report: Report | None = None


class Dreams:
    """Consolidation of memory directories. ``work`` is the pass, ``is_alive`` tells of a PID."""

    def __init__(
        self,
        store: Store,
        table: DreamTable,
        clock: Clock,
        *,
        work: Work | None = None,
        is_alive: locks.Alive = machine.alive,
    ) -> None:
        self._store = store
        self._table = table
        self._clock = clock
        self._work = work or _deterministic
        self._holding = Holding(table, clock, is_alive)
        self._keeper = Gatekeeper(clock, Looks(is_alive=is_alive))
        self._asking: dict[str, anyio.Lock] = {}  # by directory, so that each is scanned once

    async def recover(self) -> tuple[str, ...]:
        """Put back what dreams left that a crash ended; call it before any dream.

        Returns sentences about it. Raises StateUnusableError.
        """
        return await to_thread.run_sync(self._holding.recover)

    async def gate(self, project: Project, settings: Settings, *, force: bool, session: str) -> str:
        """Return the first gate that is closed, "" when a dream may begin (spec 5.1).

        ``session`` is the session that asks. With ``force`` a lock that cannot be used is told:
        LockUnusableError; otherwise it is a closed gate.
        """
        ask = partial(self._keeper.closed, project, settings, force=force, session=session)
        async with self._asking.setdefault(project.memory_dir, anyio.Lock()):
            return await to_thread.run_sync(ask)

    async def outlook(self, project: Project, settings: Settings) -> Outlook:
        """Return all gates as they stand; costs what they cost and takes nothing."""
        async with self._asking.setdefault(project.memory_dir, anyio.Lock()):
            return await to_thread.run_sync(self._keeper.outlook, project, settings)

    async def open_proposals(self, directory: str) -> int:
        """Return how many proposals wait for a person. Raises StateUnusableError."""
        return len(await to_thread.run_sync(self._table.proposals, directory))

    async def run(
        self,
        project: Project,
        settings: Settings,
        *,
        job: str,
        client: str = "",
        session: str = "",
        progress: Callable[..., None] = lambda _phase, **_facts: None,
    ) -> Report:
        """Consolidate the memories of a project as the job says; the report tells what was done.

        Raises LockUnusableError, LockLostError, DreamTimeoutError, and what ``Store.commit``
        raises. A failure or a cancellation leaves memories and the lock's time as they were.
        """
        closed = gates.switches(project, settings)
        if closed:
            return Report(gate=closed)
        directory = project.memory_dir
        progress("starting")
        await self._store.ensure(directory)
        held = await to_thread.run_sync(self._holding.take, directory)
        if held is None:
            return Report(gate=gates.LOCK)
        dream = _Dream(held, job, Provenance(Actor.DREAM, client, session, reason="consolidation"))
        try:
            report = await self._within(settings.dream.max_minutes, dream)
        finally:
            await self._settle(held, done=dream.report is not None)
        if report.change is not None:
            progress("updating", files=list(report.changed), change=report.change)
        return report

    async def _within(self, minutes: float, dream: _Dream) -> Report:
        """Dream, but no longer than this."""
        watching = anyio.CancelScope()

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
                dream.report = await self._dream(dream)
            except DreamEndedError:
                pass  # late, or cancelled from outside: the checkpoint below tells
            except MemdError as error:  # out of the group as it is, not within an exception group
                failure = error
            watching.cancel()
        if dream.report is not None:
            return dream.report
        await anyio.lowlevel.checkpoint()
        raise failure

    async def _dream(self, dream: _Dream) -> Report:
        directory = dream.held.directory
        verdicts: list[tuple[Wanted, Verdict]] = []

        def plan(tree: Tree) -> Draft:
            wanted = self._work(tree)
            verdict = _judged(tree, wanted)
            verdicts.append((wanted, verdict))
            if dream.over:
                raise DreamEndedError
            if not dream.held.ours():
                raise LockLostError(directory)
            if verdict.problems:
                return Draft()
            end = JobEnd(dream.job, "completed", json.dumps(_report(verdict).facts()))
            kept = LockKept(directory, dream.held.taken_ns)
            return StoreDraft(wanted.edits, effects=(end, kept), mend_index=True)

        outcome = await self._store.commit(directory, plan, dream.by)
        wanted, verdict = verdicts[-1]
        if not verdict.problems:
            return replace(_report(verdict), change=outcome.change)
        with anyio.CancelScope(shield=True):  # one row; then the dream has its end
            kept = await to_thread.run_sync(self._propose, dream, wanted, verdict)
        return Report(proposal=kept, problems=verdict.problems)

    async def _settle(self, held: Held, *, done: bool) -> None:
        """Settle the lock file and then its row, whatever is cancelled meanwhile."""
        with anyio.move_on_after(_CLEANUP_SECONDS, shield=True):
            settle = partial(self._holding.settle, held, done=done)
            await to_thread.run_sync(settle, abandon_on_cancel=True)

    def _propose(self, dream: _Dream, wanted: Wanted, verdict: Verdict) -> str:
        edits = [
            {
                "path": edit.path,
                "content": None if edit.content is None else edit.content.decode(errors="replace"),
                "base": edit.base,
            }
            for edit in wanted.edits
        ]
        content = _report(verdict).facts() | {"edits": edits, "problems": list(verdict.problems)}
        now = self._clock.now()
        return self._table.propose(dream.held.directory, dream.job, now, content)


def _deterministic(tree: Tree) -> Wanted:
    return consolidate(tree, dates.resolve)


def _judged(tree: Tree, wanted: Wanted) -> Verdict:
    named = {edit.path for edit in wanted.edits} | {merge.into for merge in wanted.merges}
    files = [tree.read(path) for path in sorted(named - {INDEX})]
    before = {file.header.path: file.content for file in files if file is not None}
    headers = tree.headers()
    size = sum(header.size for header in headers)
    return judge(before, wanted, index=tree.index(), total_bytes=size, total=len(headers))


def _report(verdict: Verdict) -> Report:
    return Report(merged=verdict.merged, removed=verdict.removed, changed=verdict.changed)
