"""Durable background jobs: accepted means it will happen.

Rules of this file
- The row is on disk before ``submit`` returns. The table is the truth for what must happen, the
  lanes (``lanes.py``) for whose turn it is; both change under one lock, so they never disagree.
- A job runs in a cancel scope of its own. Cancelled by a caller it is ``killed``; cancelled from
  outside (the daemon stops) it goes back into the queue and its attempt does not count.
- A failure that says it is worth another try is tried ``ATTEMPTS`` times with growing pauses in
  which the lane is free, unless its session has asked anew; every other failure is the job's end.
- An end that cannot be written down is tried again until it can; the lane stays taken meanwhile.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup, TaskStatus

from memd.core.clock import Clock
from memd.core.errors import MemdError
from memd.core.events import JOB_DONE, JOB_PROGRESS, Event, EventSink
from memd.jobs.lanes import Lanes, Ticket
from memd.state.database import StateUnusableError
from memd.state.jobs import ATTEMPTS, Job, JobState, JobTable, NewJob
from memd.store.secrets import scrub_error

ACCEPTED = "accepted"
COALESCED = "coalesced"
RETRY_SECONDS = 5.0  # before the second attempt; each further one waits four times as long
_RETRY_GROWTH = 4.0
_SETTLE_SECONDS = 60.0  # the longest pause between tries to write an end down
_CLEANUP_SECONDS = 5.0  # one durable transaction, on a slow disk

T = TypeVar("T")


class UnknownJobKindError(MemdError):
    """There is no runner for jobs of this kind."""

    code = 1012
    kind = "unknown_job_kind"

    def __init__(self, kind: str) -> None:
        super().__init__(f"this memd does not run jobs of the kind {kind}", job_kind=kind)


@dataclass(frozen=True, slots=True)
class Submitted:
    """The answer to a request: the job's id, and ``accepted`` or ``coalesced``."""

    job: str
    status: str


@dataclass(frozen=True, slots=True)
class Running:
    """What a runner gets: the job, what was asked, and how to tell where it is.

    ``progress(phase, **facts)`` publishes at once and never fails; call it on the loop.
    """

    job: Job
    request: dict[str, Any]
    progress: Callable[..., None]


Runner = Callable[[Running], Awaitable[dict[str, Any]]]


class Jobs:
    """The jobs of one daemon. ``on_unexpected`` logs an exception and returns its error id."""

    def __init__(
        self,
        table: JobTable,
        clock: Clock,
        events: EventSink,
        runners: Mapping[str, Runner],
        *,
        on_unexpected: Callable[[BaseException], str],
        at_once: int = 2,
    ) -> None:
        self._table = table
        self._clock = clock
        self._events = events
        self._runners = runners
        self._on_unexpected = on_unexpected
        self._lanes = Lanes(at_once)
        self._lock = anyio.Lock()
        self._taken_up = False
        self._changed = anyio.Event()
        self._ends: dict[str, anyio.Event] = {}
        self._scopes: dict[str, anyio.CancelScope] = {}
        self._phases: dict[str, str] = {}

    async def submit(
        self,
        kind: str,
        lane: str,
        session: str,
        request: dict[str, Any],
        *,
        lane_directory: str = "",
    ) -> Submitted:
        """Accept a request durably; ``lane_directory`` is the memory directory if not the lane.

        Raises UnknownJobKindError, and StateUnusableError where it cannot be written down.
        """
        self._runner(kind)
        directory = lane_directory or lane
        async with self._lock:
            await self._take_up()
            waiting = self._lanes.waiting(kind, lane, session)
            if waiting is not None:
                await to_thread.run_sync(self._table.replace, waiting, request)
                return Submitted(job=waiting, status=COALESCED)
            now = self._clock.now()
            new = NewJob(kind, lane, directory, session, request)
            job = await to_thread.run_sync(self._table.add, new, now)
            self._lanes.put(Ticket(job=job, kind=kind, lane=lane, session=session))
        self._notify()
        return Submitted(job=job, status=ACCEPTED)

    async def wait(self, job: str) -> Job:
        """Return a job once it has ended. Raises JobNotFoundError and StateUnusableError."""
        found = await self.get(job)
        if found.over:
            return found
        # Nothing is awaited between the look at the row and this line: the end cannot slip by.
        await self._ends.setdefault(job, anyio.Event()).wait()
        return await self.get(job)

    async def cancel(self, job: str) -> bool:
        """Kill a job that has not ended; return whether there was anything to kill.

        Returns once the job has ended. Raises JobNotFoundError and StateUnusableError.
        """
        async with self._lock:
            await self._take_up()
            await to_thread.run_sync(self._table.get, job)  # an unknown id is told as such
            if job in self._lanes and not self._lanes.running(job):
                now = self._clock.now()
                self._ended(await to_thread.run_sync(self._table.finish, job, JobState.KILLED, now))
                return True
        if job not in self._lanes:
            return False
        self._scopes[job].cancel()
        found = await self.wait(job)
        return found.state is JobState.KILLED

    async def get(self, job: str) -> Job:
        """Return one job as it stands. Raises JobNotFoundError and StateUnusableError."""
        async with self._lock:
            await self._take_up()
            found = await to_thread.run_sync(self._table.get, job)
        return self._live(found)

    async def list(self, directory: str = "", limit: int = 50) -> tuple[Job, ...]:
        """Return jobs, the newest first. Raises StateUnusableError."""
        async with self._lock:
            await self._take_up()
            found = await to_thread.run_sync(self._table.list, directory, limit)
        return tuple(self._live(job) for job in found)

    def unfinished(self) -> int:
        """Return how many jobs wait or run."""
        return len(self._lanes)

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Work until cancelled, first on what an earlier daemon left.

        Raises StateUnusableError where the table cannot be read at the start.
        """
        async with self._lock:
            await self._take_up()
        async with anyio.create_task_group() as group:
            task_status.started()
            while True:
                while (ticket := self._lanes.next()) is not None:
                    self._lanes.start(ticket.job)
                    self._scopes[ticket.job] = anyio.CancelScope()
                    group.start_soon(self._work, ticket, group)
                await self._changed.wait()

    async def drain(self, seconds: float) -> int:
        """Wait up to so long for all jobs to end; return how many the next start must do."""
        async with anyio.create_task_group() as group:

            async def out_of_time() -> None:
                await self._clock.sleep(seconds)
                group.cancel_scope.cancel()

            group.start_soon(out_of_time)
            while self._lanes:
                await self._changed.wait()
            group.cancel_scope.cancel()
        return len(self._lanes)

    async def _take_up(self) -> None:
        """Fill the lanes once from the table; the caller holds the lock."""
        if self._taken_up:
            return
        for job in await to_thread.run_sync(self._table.take_up, self._clock.now()):
            self._lanes.put(Ticket(job.id, job.kind, job.lane, job.session))
        self._taken_up = True

    async def _work(self, ticket: Ticket, group: TaskGroup) -> None:
        """Run one job in its own scope and see it to its end."""
        scope = self._scopes[ticket.job]
        result: dict[str, Any] | None = None
        error: dict[str, Any] | None = None
        attempts = 0
        try:
            with scope:
                async with self._lock:
                    now = self._clock.now()
                    row = await to_thread.run_sync(self._table.start, ticket.job, now)
                attempts = row.attempts
                result = await self._runner(row.kind)(self._running(row))
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(_CLEANUP_SECONDS, shield=True):
                await to_thread.run_sync(
                    self._table.requeue, ticket.job, None, abandon_on_cancel=True
                )
            raise
        except MemdError as failure:
            scrub_error(failure)
            error = {"kind": failure.kind, "message": failure.sentence, **failure.facts}
            again = failure.retryable and attempts < ATTEMPTS and not scope.cancel_called
            if again and await self._put_back(ticket.job, error):
                pause = RETRY_SECONDS * _RETRY_GROWTH ** (attempts - 1)
                group.start_soon(self._release, ticket.job, pause)
                return
        except Exception as failure:  # noqa: BLE001 - the job edge: no bug of a runner may end the daemon or another job
            number = self._on_unexpected(failure)
            message = f"something unexpected went wrong; the log has it under {number}"
            error = {"kind": "unexpected", "message": message, "id": number}
        # A job that answered before its cancellation reached it has done its work.
        state = JobState.COMPLETED if result is not None else JobState.FAILED
        if result is None and scope.cancel_called:
            state, error = JobState.KILLED, None
        await self._finish(ticket.job, state, result, error)

    async def _finish(
        self,
        job: str,
        state: JobState,
        result: dict[str, Any] | None,
        error: dict[str, Any] | None,
    ) -> None:
        phase, now = self._phases.get(job, ""), self._clock.now()
        write = partial(
            self._table.finish, job, state, now, phase=phase, result=result, error=error
        )

        async def finish() -> None:
            self._ended(await to_thread.run_sync(write))

        await self._durably(finish)

    async def _put_back(self, job: str, error: dict[str, Any]) -> bool:
        """Free the lane and keep the job for another attempt, unless it is superseded."""

        async def put_back() -> bool:
            if self._lanes.superseded(job):
                return False
            await to_thread.run_sync(self._table.requeue, job, error)
            del self._scopes[job]
            self._phases.pop(job, None)
            self._lanes.hold(job)
            self._notify()
            return True

        return await self._durably(put_back)

    async def _durably(self, step: Callable[[], Awaitable[T]]) -> T:
        """Take a step under the lock, again and again until the state file takes it."""
        pause = 1.0
        while True:
            try:
                async with self._lock:
                    return await step()
            except StateUnusableError as error:
                self._on_unexpected(error)
            await self._clock.sleep(pause)
            pause = min(2 * pause, _SETTLE_SECONDS)

    async def _release(self, job: str, seconds: float) -> None:
        await self._clock.sleep(seconds)
        self._lanes.release(job)
        self._notify()

    def _runner(self, kind: str) -> Runner:
        """Return the runner of a kind; a row may come from another version of memd."""
        runner = self._runners.get(kind)
        if runner is None:
            raise UnknownJobKindError(kind)
        return runner

    def _running(self, row: Job) -> Running:
        def progress(phase: str, **facts: Any) -> None:
            self._phases[row.id] = phase
            params = {"job": row.id, "kind": row.kind, "phase": phase, **facts}
            self._events.publish(Event(JOB_PROGRESS, row.directory, params))

        return Running(row, row.request, progress)

    def _live(self, job: Job) -> Job:
        """Return a job with the phase that its runner last told."""
        return job if job.over else replace(job, phase=self._phases.get(job.id, job.phase))

    def _ended(self, job: Job) -> None:
        """Forget an ended job, wake who waits for it, and tell everyone."""
        self._lanes.remove(job.id)
        self._scopes.pop(job.id, None)
        self._phases.pop(job.id, None)
        waiting = self._ends.pop(job.id, None)
        if waiting is not None:
            waiting.set()
        params = {"job": job.id, "kind": job.kind, "state": job.state.value, "result": job.result}
        if job.error is not None:
            params["error"] = job.error
        self._events.publish(Event(JOB_DONE, job.directory, params))
        self._notify()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()
