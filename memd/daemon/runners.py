"""What a job does: the glue between durable requests and the rooms that work on them."""

import os
from typing import Any

from anyio import to_thread

from memd.core.courtesy import polite
from memd.core.events import MEMORY_SAVED, Event, EventSink
from memd.core.values import Project
from memd.dream.service import Dreams
from memd.extract.service import Extract, ExtractRequest
from memd.jobs.manners import Manners
from memd.jobs.service import Jobs, Runner, Running
from memd.store.service import Store


class Runners:
    """The runners by kind; ``jobs`` is set once the jobs exist, for dreams after extractions."""

    def __init__(
        self,
        store: Store,
        extract: Extract,
        dreams: Dreams,
        events: EventSink,
        manners: Manners,
    ) -> None:
        self._store = store
        self._extract = extract
        self._dreams = dreams
        self._events = events
        self._manners = manners
        self.jobs: Jobs | None = None

    def table(self) -> dict[str, Runner]:
        """Return the runner of each kind of job."""
        return {"extract": self._politely(self.extract), "dream": self._politely(self.dream)}

    def _politely(self, runner: Runner) -> Runner:
        """Return a runner that lets prompts go first, and dies at the next piece of its work."""

        async def run(running: Running) -> dict[str, Any]:
            with polite(self._manners.between_pieces):
                return await runner(running)

        return run

    async def extract(self, running: Running) -> dict[str, Any]:
        """Run one extraction and tell subscribers what it saved."""
        request = running.request
        project = await self._store.project(request["cwd"], request["environment"])
        running.progress("reading")
        extracted = await self._extract.run(
            project,
            ExtractRequest(
                session=request["session"],
                transcript_path=request["transcript_path"],
                messages=request["messages"],
                cache=request.get("cache"),
            ),
            job=running.job.id,
            client=request["client"],
            progress=running.progress,
            allow_model=running.model_allowed,
        )
        facts = extracted.facts()
        if extracted.change or extracted.earlier_changes:
            saved = facts | {"session": request["session"], "job": running.job.id}
            self._events.publish(Event(MEMORY_SAVED, project.memory_dir, saved))
            await self._dream_if_due(project, request)
        return facts

    async def dream(self, running: Running) -> dict[str, Any]:
        """Run one dream."""
        request = running.request
        project = await self._store.project(request["cwd"], request["environment"])
        settings, _ = await self._store.settings(project)
        report = await self._dreams.run(
            project,
            settings,
            job=running.job.id,
            client=request["client"],
            session=request["session"],
            progress=running.progress,
        )
        return report.facts()

    async def _dream_if_due(self, project: Project, request: dict[str, Any]) -> None:
        settings, _ = await self._store.settings(project)
        if self.jobs is None or not settings.dream.auto:
            return
        session = request["session"]
        if await self._dreams.gate(project, settings, force=False, session=session):
            return
        wanted = {key: request[key] for key in ("cwd", "client", "environment", "session")}
        lane = await to_thread.run_sync(os.path.realpath, project.memory_dir)
        await self.jobs.submit("dream", lane, "", wanted, lane_directory=project.memory_dir)
