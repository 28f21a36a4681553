"""The one place where dreams begin: on request, after a session or an extraction, by the timer.

Rules of this file
- Each trigger asks the gates first, cheapest first, and then whether the machine is quiet; what
  waits at one trigger is looked at again by the timer. A person's request asks the gates alone.
- A memory directory has at most one dream that waits or runs and was not asked for by a person.
  Such a dream asks its gates again when its turn comes: another program may have dreamt meanwhile.
- The timer knows the directories by their last visits (``state/visits.py``); one whose working
  directory is gone is passed over.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
from anyio import to_thread

from memd.api.services import Prospect, Requested
from memd.core.clock import Clock
from memd.core.errors import MemdError
from memd.core.recent import Recent
from memd.core.settings import Settings
from memd.core.values import Project
from memd.daemon.log import Log
from memd.dream.gates import Conditions, Gatekeeper, Pressure, waits
from memd.dream.service import Dreams, Report
from memd.jobs.priority import RequestPriority
from memd.jobs.service import Jobs, Running
from memd.projects.project import NoProjectError
from memd.state.tables import Visit, Visits
from memd.store.service import Store

AUTOMATIC = "automatic"  # the member of a job's request that says that no person asked
_MINUTE = 60.0


class DreamStarter:
    """Begins dreams and runs their jobs; ``pressure`` tells how busy the machine is and blocks."""

    def __init__(
        self,
        store: Store,
        dreams: Dreams,
        jobs: Jobs,
        visits: Visits,
        *,
        clock: Clock,
        priority: RequestPriority,
        pressure: Callable[[], Pressure],
        log: Log,
    ) -> None:
        self._store = store
        self._dreams = dreams
        self._jobs = jobs
        self._visits = visits
        self._clock = clock
        self._priority = priority
        self._pressure = pressure
        self._log = log
        self._gatekeeper = Gatekeeper(clock)
        # By directory, so that each is scanned once.
        self._asking: Recent[str, anyio.Lock] = Recent(in_use=lambda lock: lock.locked())
        self._began: Recent[str, float] = Recent()  # directory: its last automatic dream, monotonic
        self._submitting = anyio.Lock()  # from "no dream waits or runs" to the submission

    async def request(self, visit: Visit, *, force: bool) -> Requested:
        """Submit a dream that a person asks for, unless a gate is closed.

        Raises NoProjectError, StateUnusableError, and with ``force`` LockUnusableError.
        """
        project, settings, _ = await self._store.where(visit.cwd, visit.environment)
        gate = await self._closed(project, settings, force=force)
        if gate:
            return Requested(gate=gate)
        return Requested(job=await self._submit(project, visit, automatic=False))

    async def consider(self, visit: Visit) -> str:
        """Let an automatic dream begin if it is due and quiet; return its job, "" for none.

        ``visit.session`` does not count among the sessions since the last dream. Raises
        NoProjectError and StateUnusableError.
        """
        project, settings, _ = await self._store.where(visit.cwd, visit.environment)
        await self.visited(project, visit)
        return await self._begin_if_due(project, settings, visit)

    async def visited(self, project: Project, visit: Visit) -> None:
        """Remember who was last in a memory directory. Raises StateUnusableError."""
        now = self._clock.now()
        await to_thread.run_sync(self._visits.remember, project.memory_dir, visit, now)

    async def watch(self) -> None:
        """Look for dreams that are due every ``dream.check_minutes``; runs until cancelled."""
        while True:
            settings, _ = await self._store.settings()
            await self._clock.sleep(settings.dream.check_minutes * _MINUTE)
            await self._check_all()

    async def prospect(self, project: Project, settings: Settings) -> Prospect:
        """Return when the next dream may begin and what keeps it; takes nothing.

        Raises StateUnusableError.
        """
        async with self._asking.setdefault(project.memory_dir, anyio.Lock()):
            outlook = await to_thread.run_sync(self._gatekeeper.outlook, project, settings)
        running = await self._jobs.under_way("dream", project.memory_dir)
        return Prospect(outlook, await self._waits(project, settings), running)

    async def run(self, running: Running) -> dict[str, Any]:
        """Run the job of a dream."""
        request = running.request
        project, settings, _ = await self._store.where(request["cwd"], request["environment"])
        session = request["session"]
        if request.get(AUTOMATIC):
            gate = await self._closed(project, settings, session=session)
            if gate:
                return Report(gate=gate).facts()
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
        """Offer a dream to each directory that is known; what keeps one from it is logged."""
        try:
            known = await to_thread.run_sync(self._visits.all)
        except MemdError as error:
            self._log.warning("no dreams looked for", detail=error.sentence)
            return
        for visit in known:
            try:
                project, settings, _ = await self._store.where(visit.cwd, visit.environment)
                await self._begin_if_due(project, settings, visit)
            except NoProjectError:
                continue  # moved or removed; whoever comes back brings the new place
            except MemdError as error:
                self._log.warning("no dream begun", cwd=visit.cwd, detail=error.sentence)

    async def _begin_if_due(self, project: Project, settings: Settings, visit: Visit) -> str:
        if not settings.dream.auto:
            return ""
        if await self._closed(project, settings, session=visit.session):
            return ""
        async with self._submitting:
            if await self._jobs.under_way("dream", project.memory_dir):
                return ""
            if await self._waits(project, settings):
                return ""
            job = await self._submit(project, visit, automatic=True)
            self._began[project.memory_dir] = self._clock.monotonic()
            return job

    async def _closed(
        self, project: Project, settings: Settings, *, force: bool = False, session: str = ""
    ) -> str:
        """Return the first gate that is closed, "" when a dream may begin."""
        ask = partial(self._gatekeeper.closed, project, settings, force=force, session=session)
        async with self._asking.setdefault(project.memory_dir, anyio.Lock()):
            return await to_thread.run_sync(ask)

    async def _waits(self, project: Project, settings: Settings) -> str:
        """Return why an automatic dream would wait now, "" when it would not."""
        paused = (await self._jobs.state()).paused_since is not None
        pressure = await to_thread.run_sync(self._pressure)
        began = self._began.get(project.memory_dir)
        ago = None if began is None else self._clock.monotonic() - began
        return waits(Conditions(paused, self._priority.in_flight, pressure, ago), settings)

    async def _submit(self, project: Project, visit: Visit, *, automatic: bool) -> str:
        request: dict[str, Any] = {
            "cwd": visit.cwd,
            "client": visit.client,
            "environment": dict(visit.environment),
            "session": visit.session,
            AUTOMATIC: automatic,
        }
        return (await self._jobs.submit("dream", project.memory_dir, "", request)).job
