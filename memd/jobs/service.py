"""Accept, run, cancel and retry durable background jobs.

Rules of this file
- A job's row is on the disk before ``submit`` returns. The table has all unfinished jobs, the lanes
  (``lanes.py``) decide which one starts; both change under one lock.
- A job runs in a cancel scope of its own. If a caller cancels it, it ends as ``killed``; a pause or
  the end of the daemon puts it back into the queue, and the attempt does not count.
- ``breaker.py`` decides what follows from a failure: a retry after a pause, the end or parking, and
  whether the next jobs of the directory may use a model.
- If the end of a job cannot be saved, saving is retried until it succeeds. Its lane stays busy, and
  callers that wait for it get the disk's error (``waiting.py``).
"""

import math
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup, TaskStatus

from memd.base.clock import Clock
from memd.base.errors import MemdError, Refused
from memd.base.events import EventSink
from memd.jobs import breaker
from memd.jobs.breaker import Breaker, Pause, WorkState
from memd.jobs.lanes import Lanes, Ticket
from memd.jobs.progress import Progress
from memd.jobs.running import Runner, Running, RunResult, Submitted
from memd.jobs.waiting import Waiting
from memd.state.database import StateUnusableError
from memd.state.jobs import Job, JobCounts, JobState, JobTable, NewJob

__all__ = ["Jobs", "Runner", "Running"]

_REFUSED_SECONDS = 2.0  # a caller waits so long for a job whose end the disk refuses
_LONGEST_SAVE_PAUSE = 5.0  # seconds between tries to save the end of a job
_CLEANUP_SECONDS = 5.0  # for one durable transaction, on a slow disk

T = TypeVar("T")


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
        self._clock = clock
        self._on_unexpected = on_unexpected
        self._at_once = at_once
        self._lanes = Lanes(at_once)  # all unfinished jobs
        self._docs = table.docs  # the stored pause and breakers
        self._pausing: set[str] = set()  # ids of cancelled jobs that go back into the queue
        self._lock = anyio.Lock()  # guards the lanes and the table, which change together
        self._has_loaded = False  # the unfinished jobs of an earlier daemon are in the lanes
        self._changed = anyio.Event()  # set at each change of the lanes, and replaced
        self._waiting = Waiting()  # the callers that wait for the end of a job
        self._scopes: dict[str, anyio.CancelScope] = {}  # of running jobs, by id
        self.progress = Progress(events)

    async def submit(
        self, kind: str, directory: str, session: str, request: dict[str, Any]
    ) -> Submitted:
        """Save a request about a memory directory as a job, or in place of a waiting one.

        Jobs of one real directory never overlap. Raises StateUnusableError if it cannot be saved.
        """
        lane = await to_thread.run_sync(os.path.realpath, directory)
        async with self._lock:
            await self._load_unfinished()
            waiting = self._lanes.waiting_job(kind, lane, session)
            if waiting is not None:
                await to_thread.run_sync(self._table.replace, waiting, request)
                return Submitted(job=waiting, status="coalesced")
            new = NewJob(kind, lane, directory, session, request)
            job = await to_thread.run_sync(self._table.add, new, self._clock.now())
            self._lanes.put(Ticket(job=job, kind=kind, lane=lane, session=session))
        self._notify()
        return Submitted(job=job, status="accepted")

    async def wait(self, job: str) -> Job:
        """Wait for the end of a job and return it.

        Raises NotFound, StateUnusableError, and the disk's error if its end is not saved.
        """
        current = await self.get(job)
        while not current.over:
            refusal = self._waiting.refusal(job)
            seconds = math.inf if refusal is None else _REFUSED_SECONDS
            # Nothing is awaited between reading the row and taking the event, so no end is missed.
            with anyio.move_on_after(seconds):
                await self._waiting.event(job).wait()
            if refusal is not None and self._waiting.refusal(job):
                raise refusal.with_traceback(None)
            current = await self.get(job)
        return current

    async def cancel(self, job: str) -> bool:
        """Cancel a job, wait for its end, and return whether it ended as ``killed``.

        Raises NotFound and StateUnusableError.
        """
        async with self._lock:
            await self._load_unfinished()
            await to_thread.run_sync(self._table.get, job)  # raises for an unknown id
            if job in self._lanes and job not in self._lanes.running:
                finish = partial(self._table.finish, job, JobState.KILLED, self._clock.now())
                self._remove(await to_thread.run_sync(finish))
                return True
        if job not in self._lanes:
            return False
        self._pausing.discard(job)
        self._scopes[job].cancel()
        current = await self.wait(job)
        return current.state is JobState.KILLED

    async def get(self, job: str) -> Job:
        """Return the present state of a job. Raises NotFound and StateUnusableError."""
        async with self._lock:
            await self._load_unfinished()
            current = await to_thread.run_sync(self._table.get, job)
        return self.progress.with_phase(current)

    async def list(
        self,
        directory: str = "",
        limit: int = 50,
        *,
        parked: bool = False,
        below: Sequence[str] = (),
    ) -> tuple[Job, ...]:
        """Return jobs, or only ``parked`` ones, the newest first.

        With a memory directory only its jobs, and those of folders ``below`` some others. Raises
        StateUnusableError.
        """
        rows = partial(self._table.list, directory, limit, parked=parked, below=below)
        async with self._lock:
            await self._load_unfinished()
            jobs = await to_thread.run_sync(rows)
        return tuple(self.progress.with_phase(job) for job in jobs)

    async def newest(self, directory: str, kind: str) -> Job | None:
        """Return the newest ended job of a kind that has run. Raises StateUnusableError."""
        return await to_thread.run_sync(self._table.newest, directory, kind)

    async def counts(self) -> JobCounts:
        """Return how many jobs are in which state. Raises StateUnusableError."""
        return await to_thread.run_sync(self._table.counts)

    async def close_breaker(self, directory: str) -> None:
        """Allow a directory's jobs to use a model again. Raises StateUnusableError."""
        await to_thread.run_sync(breaker.model_worked, self._docs, directory)

    async def pause(self, *, now: bool = False) -> WorkState:
        """Start no job until ``resume``, even after a restart; jobs are still accepted.

        With ``now`` running jobs go back into the queue before this returns. Raises
        StateUnusableError.
        """
        async with self._lock:
            await self._load_unfinished()
            await to_thread.run_sync(breaker.pause_work, self._docs, self._clock.now())
            self._lanes.paused = True
        self._notify()
        if now:
            self._pausing |= self._scopes.keys()
            for scope in self._scopes.values():
                scope.cancel()
            while self._lanes.paused and self._lanes.running:
                if self._waiting.save_error:
                    raise self._waiting.save_error.with_traceback(None)
                await self._changed.wait()
        return await self.state()

    async def resume(self) -> WorkState:
        """End a pause and close all breakers. Raises StateUnusableError."""
        async with self._lock:
            await self._load_unfinished()
            await to_thread.run_sync(breaker.resume_work, self._docs)
            self._lanes.paused = False
        self._notify()
        return await self.state()

    async def state(self) -> WorkState:
        """Return whether work is paused, and the open breakers. Raises StateUnusableError."""
        async with self._lock:
            await self._load_unfinished()
            now, waiting = self._clock.now(), len(self._lanes)
            return await to_thread.run_sync(breaker.work_state, self._docs, now, waiting)

    async def under_way(self, kind: str, directory: str) -> str | None:
        """Return the id of the oldest waiting or running job of a kind in a memory directory."""
        lane = await to_thread.run_sync(os.path.realpath, directory)
        for ticket in self._lanes:
            if (ticket.kind, ticket.lane) == (kind, lane):
                return ticket.job
        return None

    async def run(
        self,
        runners: Mapping[str, Runner],
        *,
        task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Run jobs until cancelled, first those of an earlier run; ``runners`` are by kind."""
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._run_until_saved, self._load_unfinished)
                while not (self._has_loaded or self._waiting.save_error):
                    await self._changed.wait()
                task_status.started()
                while True:
                    while (ticket := self._lanes.next_ticket()) is not None:
                        self._lanes.start(ticket.job)
                        self._scopes[ticket.job] = anyio.CancelScope()
                        group.start_soon(self._run_job, ticket, runners, group)
                    await self._changed.wait()
        finally:  # the next run, if there is one, takes the jobs from the table
            self._lanes, self._has_loaded = Lanes(self._at_once), False
            self._scopes.clear()
            self._pausing.clear()
            self._notify()

    async def drain(self, seconds: float) -> int:
        """Wait up to ``seconds`` for the end of all jobs; return how many are unfinished."""
        with self._clock.move_on_after(seconds):
            while not self._lanes.is_idle():
                await self._changed.wait()
        return len(self._lanes)

    async def _load_unfinished(self) -> None:
        """Load the unfinished jobs into the lanes, once; the caller holds the lock."""
        if self._has_loaded:
            return
        for job in await to_thread.run_sync(self._table.take_up, self._clock.now()):
            self._lanes.put(Ticket(job.id, job.kind, job.lane, job.session))
        self._lanes.paused = await to_thread.run_sync(self._docs.get, Pause) is not None
        self._has_loaded = True
        self._notify()

    async def _run_job(
        self, ticket: Ticket, runners: Mapping[str, Runner], group: TaskGroup
    ) -> None:
        """Run one job in its own scope, and save its end or put it back into the queue."""
        scope = self._scopes[ticket.job]
        run = RunResult()
        try:
            with scope:
                self._waiting.record_start(ticket.job)
                start = partial(self._table.start, ticket.job, self._clock.now())
                async with self._lock:
                    run.row = row = await to_thread.run_sync(start)
                if not row.over:
                    run.result = await self._call_runner(row, runners)
        except anyio.get_cancelled_exc_class():
            # If this fails, the next start of the daemon puts the job back.
            with anyio.move_on_after(_CLEANUP_SECONDS, shield=True), suppress(StateUnusableError):
                requeue = partial(self._table.requeue, ticket.job, None)
                await to_thread.run_sync(requeue, abandon_on_cancel=True)
            raise
        except MemdError as failure:
            run.record_failure(failure)
        except Exception as failure:  # noqa: BLE001 - the job edge: no bug of a runner may end the daemon or another job
            run.record_unexpected(self._on_unexpected(failure))
        if run.used_model():
            report = partial(run.report, self._docs, self._clock.now())
            await self._run_until_saved(partial(to_thread.run_sync, report))
        # A job with a result was finished before its cancellation arrived.
        if run.result is not None:
            await self._finish(ticket.job, JobState.COMPLETED, result=run.result)
            return
        setback = run.setback()
        if scope.cancel_called or setback.again:
            error = None if scope.cancel_called else setback.error
            if await self._put_back(ticket.job, error):
                self._waiting.hold(ticket.job, run.disk_error)
                group.start_soon(self._release, ticket.job, setback.pause)
                return
        if scope.cancel_called or run.error is None:
            await self._finish(ticket.job, JobState.KILLED)
        else:
            state = JobState.FAILED
            await self._finish(ticket.job, state, error=setback.error, parked=setback.parked)

    async def _finish(
        self,
        job: str,
        state: JobState,
        *,
        result: dict[str, Any] | None = None,
        error: dict[str, Any] | None = None,
        parked: bool = False,
    ) -> None:
        """Save the end of a job; it is not parked if its session has a newer request."""
        write = partial(self._table.finish, job, state, self._clock.now())
        write = partial(write, phase=self.progress.phase(job), result=result, error=error)

        async def finish() -> None:
            """Write the end of the job, and wake all who wait for it."""
            park = parked and not self._lanes.has_newer_request(job)
            self._remove(await to_thread.run_sync(partial(write, parked=park)))

        await self._run_until_saved(finish)

    async def _put_back(self, job: str, error: dict[str, Any] | None) -> bool:
        """Put a job back into the queue and free its lane; return whether that was done.

        It is held if it has an ``error``. It is not put back if a caller cancelled it, or if a
        newer request replaces the failed one.
        """

        async def put_back() -> bool:
            """Write the job as waiting and free its lane, unless it was cancelled or replaced."""
            if job not in self._pausing:
                was_cancelled = self._scopes[job].cancel_called or error is None  # by a caller
                if was_cancelled or self._lanes.has_newer_request(job):
                    return False
            await to_thread.run_sync(self._table.requeue, job, error)
            del self._scopes[job]
            self.progress.forget(job)
            self._pausing.discard(job)
            self._lanes.put_back(job, hold=error is not None)
            self._notify()
            return True

        return await self._run_until_saved(put_back)

    async def _run_until_saved(self, step: Callable[[], Awaitable[T]]) -> T:
        """Run a step under the lock until the state file accepts it, and return its result."""
        pause = 1.0
        while True:
            try:
                async with self._lock:
                    result = await step()
            except StateUnusableError as error:
                self._on_unexpected(error)
                self._waiting.record_save(error)
                self._notify()
            else:
                self._waiting.record_save(None)
                return result
            await self._clock.sleep(pause)
            pause = min(2 * pause, _LONGEST_SAVE_PAUSE)

    async def _release(self, job: str, seconds: float) -> None:
        """Allow a held job to start again after a pause."""
        await self._clock.sleep(seconds)
        self._lanes.release(job)
        self._notify()

    async def _call_runner(self, row: Job, runners: Mapping[str, Runner]) -> dict[str, Any]:
        """Run one job and return its result. Raises the errors of its runner."""
        if row.kind not in runners:  # a row of another version
            raise Refused(f"this memd does not run jobs of the kind {row.kind}", job_kind=row.kind)
        last = await to_thread.run_sync(self._docs.get, Breaker, row.directory)
        model_allowed = not breaker.is_open(last, self._clock.now())
        report = self.progress.reporter(row)
        running = Running(row, row.request, report, model_allowed=model_allowed)
        return await runners[row.kind](running)

    def _remove(self, job: Job) -> None:
        """Remove an ended job, wake its waiting callers, and publish its end."""
        self._lanes.remove(job.id)
        self._scopes.pop(job.id, None)
        self._pausing.discard(job.id)
        self._waiting.record_end(job.id)
        self.progress.end(job)
        self._notify()

    def _notify(self) -> None:
        """Wake everything that waits for a change of the lanes."""
        self._changed.set()
        self._changed = anyio.Event()
