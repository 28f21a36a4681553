"""Dreams that begin by themselves: the one home of "due and quiet, so submit", and the timer.

Rules of this file
- Triggers are the end of a session, an extraction that saved something, and the timer. Each asks
  the gates first, cheapest first, and then whether it is quiet; what waits at one trigger is
  looked at again by the timer.
- A memory directory has at most one dream that waits or runs and was not asked for by a person.
  Such a dream asks its gates again when its turn comes: somebody may have dreamt meanwhile.
- The timer knows the directories by their last visits (``state/visits.py``); one whose working
  directory is gone is passed over.
- What a person asks for is submitted at once, however busy the machine is.
"""

import os
from collections.abc import Callable
from typing import Any

import anyio
from anyio import to_thread

from memd.core.clock import Clock
from memd.core.errors import MemdError
from memd.core.recent import Recent
from memd.core.settings import Settings
from memd.core.values import Project
from memd.daemon.log import Log
from memd.dream.quiet import Pressure, Standing, waits
from memd.dream.service import Dreams
from memd.jobs.manners import Manners
from memd.jobs.service import Jobs
from memd.projects.project import NoProjectError
from memd.state.visits import Visit, Visits
from memd.store.service import Store

AUTOMATIC = "automatic"  # the member of a job's request that says that no person asked
_MINUTE = 60.0


class Dreaming:
    """Begins dreams (``services.due``). ``pressure`` tells how busy the machine is; it blocks."""

    def __init__(
        self,
        store: Store,
        dreams: Dreams,
        jobs: Jobs,
        visits: Visits,
        *,
        clock: Clock,
        manners: Manners,
        pressure: Callable[[], Pressure],
        log: Log,
    ) -> None:
        self._store = store
        self._dreams = dreams
        self._jobs = jobs
        self._visits = visits
        self._clock = clock
        self._manners = manners
        self._pressure = pressure
        self._log = log
        self._began: Recent[str, float] = Recent()  # directory: its last automatic dream, monotonic
        self._lock = anyio.Lock()  # from "nobody is at it" to the submission

    async def visited(self, project: Project, visit: Visit) -> None:
        """Remember who was last in a memory directory. Raises StateUnusableError."""
        now = self._clock.now()
        await to_thread.run_sync(self._visits.remember, project.memory_dir, visit, now)

    async def offer(self, visit: Visit) -> str:
        """Let an automatic dream begin if it is due and quiet; return its job, "" for none.

        ``visit.session`` does not count among the sessions since the last dream. Raises
        NoProjectError and StateUnusableError.
        """
        project, settings, _ = await self._store.where(visit.cwd, visit.environment)
        await self.visited(project, visit)
        return await self._begin_if_due(project, settings, visit)

    async def start(self, project: Project, visit: Visit) -> str:
        """Submit a dream that a person asked for and return its job. Raises StateUnusableError."""
        return await self._submit(project, visit, automatic=False)

    async def waits(self, project: Project, settings: Settings) -> str:
        """Return why an automatic dream would wait now, "" when it would not.

        Raises StateUnusableError.
        """
        paused = (await self._jobs.standing()).paused_since is not None
        pressure = await to_thread.run_sync(self._pressure)
        began = self._began.get(project.memory_dir)
        ago = None if began is None else self._clock.monotonic() - began
        return waits(Standing(paused, self._manners.in_flight, pressure, ago), settings)

    async def under_way(self, project: Project) -> str | None:
        """Return the dream of a project's directory that waits or runs."""
        return self._jobs.under_way("dream", await _lane(project))

    async def watch(self) -> None:
        """Look for dreams that are due every ``dream.check_minutes``; runs until cancelled."""
        while True:
            settings, _ = await self._store.settings()
            await self._clock.sleep(settings.dream.check_minutes * _MINUTE)
            await self._look()

    async def _look(self) -> None:
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
        if await self._dreams.gate(project, settings, force=False, session=visit.session):
            return ""
        async with self._lock:
            if await self.under_way(project) or await self.waits(project, settings):
                return ""
            job = await self._submit(project, visit, automatic=True)
            self._began[project.memory_dir] = self._clock.monotonic()
            return job

    async def _submit(self, project: Project, visit: Visit, *, automatic: bool) -> str:
        request: dict[str, Any] = {
            "cwd": visit.cwd,
            "client": visit.client,
            "environment": dict(visit.environment),
            "session": visit.session,
            AUTOMATIC: automatic,
        }
        directory = project.memory_dir
        submitted = await self._jobs.submit(
            "dream", await _lane(project), "", request, lane_directory=directory
        )
        return submitted.job


async def _lane(project: Project) -> str:
    """Return what jobs of a directory must not overlap in: its real path."""
    return await to_thread.run_sync(os.path.realpath, project.memory_dir)
