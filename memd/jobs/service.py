"""Accept, run and cancel durable background jobs.

Rules of this file
- The rows of jobs are the queue. A row is on the disk before ``submit`` returns; the oldest one
  whose memory directory is free starts next, and at most ``at_once`` run in all.
- A failure that may be temporary is tried again after a pause, ``TRIES`` times in all. A job that
  waits for its next try blocks no other, and gives way to a newer request of its session.
- A job runs in a cancel scope of its own. If a caller cancels it, it ends as ``killed``; a pause or
  the end of the daemon puts it back into the queue, and the try does not count.
- What must be written about a job is written again until the state file accepts it. Until then its
  directory stays busy, and callers that wait for a job get the disk's error.
- Progress is bounded and only in memory: a fact stays until the job reports it again or ends, so a
  client that connects later sees all of them.
"""

import json
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Literal, TypeVar

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup, TaskStatus
from msgspec import Struct, field
from msgspec.structs import replace

from memd.base import limits
from memd.base.clock import Clock
from memd.base.errors import MemdError, NotFound, Refused
from memd.base.events import JOB_DONE, JOB_PROGRESS, Event, EventSink
from memd.base.text import cut_bytes
from memd.base.waiting import waits_outside
from memd.model import breaker
from memd.model.breaker import JOBS, Breaker
from memd.state import docs
from memd.state.database import StateUnusableError
from memd.state.jobs import TRIES, Job, JobState, JobTable
from memd.store.secret import scrub_error

_FACTS, _FACT_BYTES = 24, 4_000  # of one job's progress; of each as JSON
_REFUSED_SECONDS = 2.0  # a caller waits so long for a job that the disk holds up
_LONGEST_SAVE_PAUSE = 5.0  # seconds between tries to write about a job
_CLEANUP_SECONDS = 5.0  # for one durable transaction, on a slow disk
_ALL = ""  # in the place of a job: the state file holds up all of them

T = TypeVar("T")


class Pause(Struct, frozen=True):
    """A person paused background work at ``since``, in seconds since 1970."""

    since: float


class WorkState(Struct, frozen=True):
    """The state of background work.

    ``paused_since`` is in seconds since 1970, null if it is not paused. ``waiting`` counts the jobs
    that wait or run; ``breakers`` are the open ones, of jobs and of prompts.
    """

    paused_since: float | None
    waiting: int
    breakers: tuple[Breaker, ...]


class Submitted(Struct, frozen=True):
    """The reply to a request: the job's id, and ``accepted`` or ``coalesced``."""

    job: str
    status: Literal["accepted", "coalesced"]


class Running(Struct, frozen=True):
    """The argument of a runner: the job with its request, and a function to report progress.

    ``progress(phase, **facts)`` publishes at once and never fails; call it on the event loop.
    Without ``model_allowed`` no model may be used, as the directory's breaker is open.
    """

    job: Job
    progress: Callable[..., None]
    model_allowed: bool = True


# The result has ``turns`` above 0 if a model was used. A model's failure is an error whose class
# has ``of_model``. The directory's breaker depends on both.
Runner = Callable[[Running], Awaitable[dict[str, Any]]]


class _JobRun(Struct):
    """A job that runs: its lane and scope, its progress, and whether a pause puts it back."""

    lane: str
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    progress: dict[str, Any] = field(default_factory=dict)
    pausing: bool = False


class Jobs:
    """The jobs of one daemon. ``on_unexpected`` logs an exception and returns its error id."""

    def __init__(
        self,
        table: JobTable,
        clock: Clock,
        events: EventSink,
        *,
        on_unexpected: Callable[[BaseException], str],
        at_once: int = 2,
    ) -> None:
        self._table = table
        self._docs = table.docs  # the stored pause and breakers
        self._clock = clock
        self._events = events
        self._on_unexpected = on_unexpected
        self._at_once = at_once
        self._runs: dict[str, _JobRun] = {}  # by job
        self._retrying: set[str] = set()  # jobs that wait for their next try
        self._refusals: dict[str, MemdError] = {}  # by job or _ALL: the disk's error
        self._paused = False
        self._changed = anyio.Event()  # set when any of this or a row changes, and replaced

    async def submit(
        self, kind: str, directory: str, session: str, request: dict[str, Any]
    ) -> Submitted:
        """Save a request about a memory directory as a job, or in place of a waiting one.

        Jobs of one real directory never overlap. Raises StateUnusableError if it cannot be saved.
        """
        add = partial(self._table.add, kind, directory, session, request, self._clock.now())
        job, is_new = await to_thread.run_sync(add)
        self._notify()
        return Submitted(job, "accepted" if is_new else "coalesced")

    async def wait(self, job: str) -> Job:
        """Wait for the end of a job and return it.

        Raises NotFound, StateUnusableError, and the disk's error if that holds up the job.
        """
        until = math.inf
        while True:
            changed = self._changed  # before the row is read, so that no end is missed
            if job not in self._runs:  # else its row is read when it ends: it may be large
                row = await to_thread.run_sync(self.get, job)
                if row.over:
                    return row
            waits_outside()
            until = await self._wait_for(changed, job, until)

    async def cancel(self, job: str) -> bool:
        """Cancel a job, wait for its end, and return whether it ended as ``killed``.

        Raises what ``wait`` raises.
        """
        is_requested, until = False, math.inf
        while True:
            changed = self._changed
            kill = partial(self._table.kill_queued, job, self._clock.now())
            if await to_thread.run_sync(kill):
                self._publish_end(await to_thread.run_sync(self.get, job))
                return True
            row = await to_thread.run_sync(self.get, job)
            if row.over:
                return is_requested and row.state is JobState.KILLED
            is_requested = True
            if job in self._runs:
                self._runs[job].pausing = False
                self._runs[job].scope.cancel()
            until = await self._wait_for(changed, job, until)

    def get(self, job: str) -> Job:
        """Return the present state of a job. Blocks. Raises NotFound and StateUnusableError."""
        return self._with_phase(self._table.get(job))

    def list(
        self,
        directory: str = "",
        limit: int = 50,
        *,
        parked: bool = False,
        below: Sequence[str] = (),
    ) -> tuple[Job, ...]:
        """Return what the table's ``list`` returns. Blocks. Raises StateUnusableError."""
        rows = self._table.list(directory, limit, parked=parked, below=below)
        return tuple(map(self._with_phase, rows))

    def progress(self, job: str) -> dict[str, Any]:
        """Return ``phase`` and facts that a running job reported last, nothing for another one."""
        run = self._runs.get(job)
        return dict(run.progress) if run else {}

    async def newest(self, directory: str, kind: str) -> Job | None:
        """Return the newest ended job of a kind that has run. Raises StateUnusableError."""
        return await to_thread.run_sync(self._table.newest, directory, kind)

    async def counts(self) -> dict[str, int]:
        """Return how many jobs are in which state. Raises StateUnusableError."""
        return await to_thread.run_sync(self._table.counts)

    async def running(self) -> tuple[Job, ...]:
        """Return the jobs that run. Raises StateUnusableError."""
        rows = [await to_thread.run_sync(self.get, job) for job in tuple(self._runs)]
        return tuple(row for row in rows if row.state is JobState.RUNNING)

    async def under_way(self, kind: str, directory: str) -> str | None:
        """Return the id of the oldest waiting or running job of a kind in a memory directory.

        Raises StateUnusableError.
        """
        return await to_thread.run_sync(self._table.under_way, kind, directory)

    async def close_breaker(self, directory: str) -> None:
        """Allow a directory's jobs to use a model again. Raises StateUnusableError."""
        await to_thread.run_sync(breaker.model_worked, self._docs, directory, JOBS)

    async def pause(self, *, now: bool = False) -> WorkState:
        """Start no job until ``resume``, even after a restart; jobs are still accepted.

        With ``now`` running jobs go back into the queue before this returns. Raises
        StateUnusableError.
        """
        await to_thread.run_sync(self._store_pause)
        self._paused = True
        self._notify()
        if now:
            for run in self._runs.values():
                run.pausing = True
                run.scope.cancel()
            while self._paused and self._runs:
                await self._wait_for(self._changed, _ALL)
        return await self.state()

    async def resume(self) -> WorkState:
        """End a pause and close all breakers. Raises StateUnusableError."""
        await to_thread.run_sync(self._delete_pauses)
        self._paused = False
        self._notify()
        return await self.state()

    async def state(self) -> WorkState:
        """Return whether work is paused, and the open breakers. Raises StateUnusableError."""

        def read() -> WorkState:
            """Read the state. Blocks."""
            pause = self._docs.get(Pause)
            breakers = breaker.open_breakers(self._docs, self._clock.now())
            return WorkState(pause.since if pause else None, self._table.unfinished(), breakers)

        return await to_thread.run_sync(read)

    async def run(
        self,
        runners: Mapping[str, Runner],
        *,
        task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Run jobs until cancelled, first those of an earlier run; ``runners`` are by kind."""
        try:
            async with anyio.create_task_group() as group:
                try:
                    await to_thread.run_sync(self._take_up)
                except StateUnusableError:
                    task_status.started()
                    await self._save(self._take_up)
                else:
                    task_status.started()
                await self._start_jobs(runners, group)
        finally:  # the next run, if there is one, takes the jobs from the table
            self._runs.clear()
            self._retrying.clear()
            self._refusals.clear()
            self._notify()

    async def drain(self, seconds: float) -> int:
        """Wait up to ``seconds`` for the end of all jobs; return how many are unfinished."""
        try:
            with self._clock.move_on_after(seconds):
                while True:
                    changed = self._changed
                    if not self._runs and (self._paused or not await self._unfinished()):
                        break
                    await changed.wait()
            return await self._unfinished()
        except StateUnusableError:
            return len(self._runs)

    async def _unfinished(self) -> int:
        """Return how many jobs wait or run. Raises StateUnusableError."""
        return await to_thread.run_sync(self._table.unfinished)

    def _take_up(self) -> None:
        """Queue the jobs that a dead process ran, and read whether work is paused. Blocks."""
        self._table.take_up(self._clock.now())
        self._paused = self._docs.get(Pause) is not None

    def _store_pause(self) -> None:
        """Store that a person paused work; an earlier pause keeps its time. Blocks."""
        with self._docs.transaction() as cursor:
            if docs.get(cursor, Pause) is None:
                docs.put(cursor, Pause(self._clock.now()))

    def _delete_pauses(self) -> None:
        """Delete a person's pause and all breakers. Blocks."""
        with self._docs.transaction() as cursor:
            docs.delete(cursor, Pause)
            docs.delete_all(cursor, Breaker)

    async def _start_jobs(self, runners: Mapping[str, Runner], group: TaskGroup) -> None:
        """Start each job when it may run, until cancelled."""
        while True:
            changed = self._changed
            if len(self._runs) < self._at_once and not self._paused:
                lanes = {run.lane for run in self._runs.values()}
                following = partial(self._table.next, lanes, frozenset(self._retrying))
                oldest = await self._save(following)
                if oldest and not self._paused:
                    job, lane = oldest
                    self._runs[job] = _JobRun(lane)
                    group.start_soon(self._run_job, job, runners)
                    continue
            await changed.wait()

    async def _run_job(self, job: str, runners: Mapping[str, Runner]) -> None:
        """Run one job and free its lane; if it failed, let it start again after a pause."""
        pause = 0.0
        with suppress(NotFound):  # the state file was replaced meanwhile
            pause = await self._run_once(job, self._runs[job], runners)
        del self._runs[job]
        self._notify()
        if pause:
            await self._clock.sleep(pause)
            self._retrying.discard(job)
            self._refusals.pop(job, None)
            self._notify()

    async def _run_once(self, job: str, run: _JobRun, runners: Mapping[str, Runner]) -> float:
        """Run a job and save its end, or put it back; return the seconds until its next try.

        They are 0 if there is none.
        """
        row = end = None
        try:
            with run.scope:
                row = await self._save(partial(self._table.start, job, self._clock.now()))
                if row.over:  # it was cancelled before it started
                    return 0.0
                end = await self._call_runner(row, run, runners)
        except anyio.get_cancelled_exc_class():
            # If this fails, the next start of the daemon puts the job back.
            with anyio.move_on_after(_CLEANUP_SECONDS, shield=True), suppress(StateUnusableError):
                await to_thread.run_sync(self._table.put_back, job, abandon_on_cancel=True)
            raise
        if row is not None and end is not None:
            await self._count_use_of_model(row.directory, end)
        if isinstance(end, dict):  # also if it was cancelled a moment later
            await self._finish(job, JobState.COMPLETED, result=end)
        elif run.scope.cancel_called and run.pausing:
            await self._save(partial(self._table.put_back, job))
        elif row is None or end is None or run.scope.cancel_called:
            await self._finish(job, JobState.KILLED)
        else:
            return await self._fail(row, end)
        return 0.0

    async def _call_runner(
        self, row: Job, run: _JobRun, runners: Mapping[str, Runner]
    ) -> dict[str, Any] | MemdError:
        """Return the result of a job's runner, or its error."""
        if row.kind not in runners:  # a row of another version
            sentence = f"this memd does not run jobs of the kind {row.kind}"
            return Refused(sentence, job_kind=row.kind)
        try:
            is_allowed = partial(breaker.model_allowed, self._docs, row.directory, JOBS)
            allowed = await to_thread.run_sync(is_allowed, self._clock.now())
            running = Running(row, partial(self._report, row, run), model_allowed=allowed)
            return await runners[row.kind](running)
        except MemdError as failure:
            scrub_error(failure)
            return _without_frames(failure)
        except Exception as failure:  # noqa: BLE001 - the job edge: no bug of a runner may end the daemon or another job
            number = self._on_unexpected(failure)
            message = f"something unexpected went wrong; the log has it under {number}"
            return MemdError(message, kind="unexpected", id=number)

    async def _count_use_of_model(self, directory: str, end: dict[str, Any] | MemdError) -> None:
        """Open or close a directory's breaker if its job used a model."""
        if isinstance(end, MemdError):
            if end.of_model:
                failure = (directory, JOBS, end.sentence, self._clock.now())
                await self._save(partial(breaker.model_failed, self._docs, *failure))
        elif end.get("turns"):
            await self._save(partial(breaker.model_worked, self._docs, directory, JOBS))

    async def _fail(self, row: Job, failure: MemdError) -> float:
        """End a job that failed, or queue it again and return the seconds until its next try."""
        error = {"kind": failure.kind, "message": failure.sentence, **failure.facts}
        again = partial(self._table.retry, row.id, error)
        if failure.retryable and row.attempts < TRIES and await self._save(again):
            self._retrying.add(row.id)
            if failure.of_disk:
                self._refusals[row.id] = failure
            return limits.RETRY_SECONDS * limits.RETRY_GROWTH ** (row.attempts - 1)
        await self._finish(row.id, JobState.FAILED, error=error, park=failure.retryable)
        return 0.0

    async def _finish(self, job: str, state: JobState, **facts: Any) -> None:
        """Save the end of a job and publish it."""
        phase = self._runs[job].progress.get("phase", "")
        finish = partial(self._table.finish, job, state, self._clock.now(), phase=phase, **facts)
        self._publish_end(await self._save(finish))

    async def _save(self, write: Callable[[], T]) -> T:
        """Call a function that writes until the state file accepts it, and return its result."""
        pause = 1.0
        while True:
            try:
                result = await to_thread.run_sync(write)
            except StateUnusableError as error:
                self._on_unexpected(error)
                is_first = _ALL not in self._refusals
                self._refusals[_ALL] = _without_frames(error)
                if is_first:
                    self._notify()
            else:
                self._refusals.pop(_ALL, None)
                return result
            await self._clock.sleep(pause)
            pause = min(2 * pause, _LONGEST_SAVE_PAUSE)

    async def _wait_for(self, changed: anyio.Event, job: str, until: float = math.inf) -> float:
        """Wait for a change, two seconds at most if the disk holds up a job; then raise why.

        Return until when the next wait for the same job may last, in seconds of the event loop.
        """
        refusal = self._refusals.get(job) or self._refusals.get(_ALL)
        now = anyio.current_time()
        until = math.inf if refusal is None else min(until, now + _REFUSED_SECONDS)
        with anyio.move_on_after(until - now) as scope:
            await changed.wait()
        if refusal is not None and scope.cancelled_caught:
            raise refusal.with_traceback(None)
        return until

    def _report(self, row: Job, run: _JobRun, phase: str, **facts: Any) -> None:
        """Record a report of a job's runner and publish it."""
        run.progress["phase"] = phase
        for name, value in facts.items():
            if name in run.progress or len(run.progress) <= _FACTS:
                run.progress[name] = _bounded(value)
        params = {"job": row.id, "kind": row.kind, "phase": phase, **facts}
        self._events.publish(Event(JOB_PROGRESS, row.directory, params))

    def _publish_end(self, row: Job) -> None:
        """Publish the end of a job, and wake all who wait for one."""
        params = {"job": row.id, "kind": row.kind, "state": row.state.value, "result": row.result}
        if row.error is not None:
            params["error"] = row.error
        self._events.publish(Event(JOB_DONE, row.directory, params))
        self._notify()

    def _with_phase(self, row: Job) -> Job:
        """Return a job with the phase that it reported last if it runs."""
        phase = self.progress(row.id).get("phase")
        return replace(row, phase=phase) if phase and not row.over else row

    def _notify(self) -> None:
        """Wake everything that waits for a change."""
        self._changed.set()
        self._changed = anyio.Event()


def _without_frames(error: MemdError) -> MemdError:
    """Return an error without traceback and causes, whose frames would keep a file open."""
    error.__traceback__ = error.__cause__ = error.__context__ = None
    return error


def _bounded(value: Any) -> Any:
    """Return a JSON value cut to its limit: a text's start, a list's end, ``None`` for others."""
    if isinstance(value, str):
        return cut_bytes(value, _FACT_BYTES)
    while isinstance(value, list) and len(json.dumps(value, default=str)) > _FACT_BYTES:
        value = value[len(value) // 8 + 1 :]
    return value if len(json.dumps(value, default=str)) <= _FACT_BYTES else None
