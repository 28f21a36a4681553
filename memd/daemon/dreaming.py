"""Begin dreams on request, after a session or an extraction, or by the timer.

Rules of this file
- Each trigger checks the gates first, cheapest first, and then whether it has to wait; a
  dream that has to wait is considered again by the timer. A person's request checks only the gates.
- An automatic dream waits while background work is paused, prompts are answered or the machine runs
  on battery. Two of a directory begin at least an hour apart on the monotonic clock, or
  ``dream.min_hours`` if that is less. So neither a jump of the wall clock nor a dream that always
  fails starts many dreams.
- A memory directory has at most one queued or running dream that no person requested. Such a dream
  checks its gates again when its job starts: another program may have consolidated meanwhile.
- The timer takes the directories from their last visits (``projects/known.py``); one whose working
  directory is gone is skipped.
"""

from collections.abc import Callable, Mapping
from functools import partial
from math import inf
from typing import Any

import anyio
from anyio import to_thread

from memd.base.clock import Clock
from memd.base.errors import Invalid, MemdError
from memd.base.recent import Recent
from memd.base.settings import Settings
from memd.base.values import Project
from memd.daemon.log import Log
from memd.dream.gates import Gatekeeper
from memd.dream.report_page import markdown
from memd.dream.results import Dreamed, DreamStatus
from memd.dream.service import Dreams
from memd.dream.values import DreamReport
from memd.jobs.methods import ended_as, result_of
from memd.jobs.priority import RequestPriority
from memd.jobs.service import Jobs, Running
from memd.methods.callers import Callers
from memd.methods.method import method
from memd.projects.known import Visit, last_visits, remember_visit
from memd.projects.projects import Projects
from memd.rpc.call import Call
from memd.state.docs import Docs

# Members of a job's request: no person requested it; no caller's variables switch memory on or off.
AUTOMATIC, _BY_FILES = "automatic", "by_files"
_CHECK_SECONDS = 1_800.0  # between two looks at all projects
_HOUR = 3_600.0
_APART_SECONDS = _HOUR  # between the beginnings of two automatic dreams of a directory


class DreamStarter:
    """Begins dreams and runs their jobs; ``on_battery`` says how the machine runs, and blocks."""

    def __init__(
        self,
        callers: Callers,
        projects: Projects,
        dreams: Dreams,
        jobs: Jobs,
        docs: Docs,
        *,
        clock: Clock,
        priority: RequestPriority,
        on_battery: Callable[[], bool],
        log: Log,
    ) -> None:
        self._callers = callers
        self._projects = projects
        self._dreams = dreams
        self._jobs = jobs
        self._docs = docs
        self._clock = clock
        self._priority = priority
        self._on_battery = on_battery
        self._log = log
        self._gatekeeper = Gatekeeper(clock)
        # By directory, so that its gates are checked by one task at a time.
        self._gate_locks: Recent[str, anyio.Lock] = Recent(in_use=lambda lock: lock.locked())
        # By directory, when its last automatic dream began, in monotonic seconds.
        self._last_begun: Recent[str, float] = Recent()
        self._submitting = anyio.Lock()  # held from the check that no dream is queued until one is

    @method("dream", "write")
    async def dream(
        self, call: Call, *, cwd: str, force: bool = False, wait: bool = False
    ) -> Dreamed:
        """Consolidate the memories of a project when the gates are open.

        With ``force`` only another dream that runs prevents it. With ``wait`` the answer comes once
        the dream has ended.
        """
        project, settings, _ = await to_thread.run_sync(self._callers.where, call, cwd)
        gate = await self._closed_gate(project, settings, force=force)
        if gate:
            return Dreamed(status="skipped", gate=gate)
        job = await self._submit(project, Visit.of(call.caller, cwd, ""))
        if not wait:
            return Dreamed(status="started", job=job)
        return await result_of(self._jobs, job, Dreamed)

    @method("dream.status", "read")
    async def status(self, call: Call, *, cwd: str) -> DreamStatus:
        """When the next dream of a project may begin, what prevents it, and what the last one did.

        The gates are checked as for a dream, but none is started.
        """
        project, settings, _ = await to_thread.run_sync(self._callers.where, call, cwd)
        directory = project.memory_dir
        async with self._gate_locks.setdefault(directory, anyio.Lock()):
            outlook = await to_thread.run_sync(self._gatekeeper.outlook, project, settings)
        return DreamStatus(
            enabled=outlook.gates[0].open,  # the first gate is the switch
            auto=settings.dream.auto,
            engine=self._dreams.engine(settings),
            last=outlook.last,
            due=outlook.due,
            sessions=outlook.sessions,
            min_sessions=settings.dream.min_sessions,
            gate=outlook.gate,
            waits=await self._reason_to_wait(project, settings),
            gates=outlook.gates,
            running=await self._jobs.under_way("dream", directory),
            proposals=await self._dreams.proposals_in(directory),
            **await self._newest(directory),
        )

    async def _newest(self, directory: str) -> dict[str, Any]:
        """Return what ``dream.status`` says of the newest dream that ran in a directory."""
        job = await self._jobs.newest(directory, "dream")
        if job is None:
            return {}
        page = markdown(ended_as(Dreamed, job), job.ended or job.created)
        error = (job.error or {}).get("message") or None
        return {"report": job.result, "error": error, "markdown": page}

    async def consider(self, project: Project, settings: Settings, visit: Visit) -> str:
        """Submit an automatic dream if it is due and need not wait; return its job, or "".

        ``visit.session`` does not count among the sessions since the last dream. Raises
        StateUnusableError.
        """
        if not project.enabled:
            return ""
        await self.visited(project, visit)
        return await self._begin_if_due(project, settings, visit, {AUTOMATIC: True})

    async def visited(self, project: Project, visit: Visit) -> None:
        """Store that a project's memory directory was visited now. Raises StateUnusableError."""
        now = self._clock.now()
        directory = project.memory_dir
        await to_thread.run_sync(remember_visit, self._docs, directory, visit, now)

    async def watch(self) -> None:
        """Begin dreams that are due, every 30 minutes, until cancelled."""
        while True:
            await self._clock.sleep(_CHECK_SECONDS)
            await self._check_all()

    async def run(self, running: Running) -> dict[str, Any]:
        """Run a dream's job and return its report; an automatic one checks its gates first."""
        request = running.job.request
        caller = (request["cwd"], request["environment"], request["client"])
        by_files = bool(request.get(_BY_FILES))
        project, settings, _ = await self._projects.find(*caller, by_files=by_files)
        session = request["session"]
        if request.get(AUTOMATIC):
            gate = await self._closed_gate(project, settings, session=session)
            if gate:
                return DreamReport(gate=gate).facts()
        report = await self._dreams.run(
            project,
            settings,
            job=running.job.id,
            client=request["client"],
            session=session,
            progress=running.progress,
            allow_model=running.model_allowed,
        )
        return report.facts()

    async def _check_all(self) -> None:
        """Begin a dream in each visited directory where one is due; log what fails."""
        try:
            visits = await to_thread.run_sync(last_visits, self._docs)
        except MemdError as error:
            self._log.warning("no dreams looked for", detail=error.sentence)
            return
        for visit in visits:
            try:
                where = self._projects.find
                project, settings, _ = await where(*visit.caller, by_files=True)
                by_timer = {AUTOMATIC: True, _BY_FILES: True}
                await self._begin_if_due(project, settings, visit, by_timer)
            except Invalid:
                continue  # moved or removed; the next visit stores the new path
            except MemdError as error:
                self._log.warning("no dream begun", cwd=visit.cwd, detail=error.sentence)

    async def _begin_if_due(
        self, project: Project, settings: Settings, visit: Visit, members: Mapping[str, bool]
    ) -> str:
        """Submit an automatic dream if all conditions hold; return its job, else ""."""
        if not settings.dream.auto:
            return ""
        if await self._closed_gate(project, settings, session=visit.session):
            return ""
        async with self._submitting:
            if await self._jobs.under_way("dream", project.memory_dir):
                return ""
            if await self._reason_to_wait(project, settings):
                return ""
            job = await self._submit(project, visit, members)
            self._last_begun[project.memory_dir] = self._clock.monotonic()
            return job

    async def _closed_gate(
        self, project: Project, settings: Settings, *, force: bool = False, session: str = ""
    ) -> str:
        """Return the first gate that is closed, "" if a dream may begin."""
        check = partial(
            self._gatekeeper.first_closed_gate, project, settings, force=force, session=session
        )
        async with self._gate_locks.setdefault(project.memory_dir, anyio.Lock()):
            return await to_thread.run_sync(check)

    async def _reason_to_wait(self, project: Project, settings: Settings) -> str:
        """Return why an automatic dream would have to wait now, "" if it would not."""
        if (await self._jobs.state()).paused_since is not None:
            return "background work is paused"
        if self._priority.in_flight > 0:
            return "a prompt is being answered"
        if await to_thread.run_sync(self._on_battery):
            return "the machine runs on battery"
        seconds_apart = min(_APART_SECONDS, settings.dream.min_hours * _HOUR)
        last_begun = self._last_begun.get(project.memory_dir, -inf)
        if self._clock.monotonic() - last_begun < seconds_apart:
            return "the last automatic dream began less than an hour ago"
        return ""

    async def _submit(
        self, project: Project, visit: Visit, members: Mapping[str, bool] | None = None
    ) -> str:
        """Queue a dream, with more ``members`` of its request, and return the id of its job."""
        request: dict[str, Any] = {
            "cwd": visit.cwd,
            "client": visit.client,
            "environment": dict(visit.environment),
            "session": visit.session,
            **(members or {}),
        }
        return (await self._jobs.submit("dream", project.memory_dir, "", request)).job
