"""What a job does: the glue between durable requests and the rooms that work on them."""

from typing import Any

from memd.core.courtesy import polite
from memd.core.events import MEMORY_SAVED, Event, EventSink
from memd.core.values import Project
from memd.daemon.dreaming import AUTOMATIC, Dreaming
from memd.dream.report import Report
from memd.dream.service import Dreams
from memd.extract.service import Extract, ExtractRequest
from memd.jobs.manners import Manners
from memd.jobs.service import Runner, Running
from memd.state.visits import Visit
from memd.store.service import Store


class Runners:
    """The runners by kind; ``dreaming`` is set before any job runs: dreams follow extractions."""

    dreaming: Dreaming

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
        changed = bool(extracted.change)
        if changed:
            saved = facts | {"session": request["session"], "job": running.job.id}
            self._events.publish(Event(MEMORY_SAVED, project.memory_dir, saved))
        await self._after_extraction(project, request, saved=changed)
        return facts

    async def dream(self, running: Running) -> dict[str, Any]:
        """Run one dream."""
        request = running.request
        project = await self._store.project(request["cwd"], request["environment"])
        settings, _ = await self._store.settings(project)
        session = request["session"]
        if request.get(AUTOMATIC):  # somebody may have dreamt while it waited for its turn
            gate = await self._dreams.gate(project, settings, force=False, session=session)
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

    async def _after_extraction(
        self, project: Project, request: dict[str, Any], *, saved: bool
    ) -> None:
        """Let a dream begin that is due where something was saved; remember who was here."""
        names = ("cwd", "client", "environment", "session")
        visit = Visit(*(request[name] for name in names))
        if saved:
            await self.dreaming.offer(visit)
        else:
            await self.dreaming.visited(project, visit)
