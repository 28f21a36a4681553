"""What a job does: the glue between durable requests and the rooms that work on them."""

from typing import Any

from memd.core.events import MEMORY_SAVED, Event, EventSink
from memd.core.yielding import yielding
from memd.daemon.dreaming import DreamStarter
from memd.extract.service import Extractions, ExtractRequest
from memd.jobs.priority import RequestPriority
from memd.jobs.service import Runner, Running
from memd.state.tables import Visit
from memd.store.service import Store


class Runners:
    """The runners by kind."""

    def __init__(
        self,
        store: Store,
        extract: Extractions,
        starter: DreamStarter,
        events: EventSink,
        priority: RequestPriority,
    ) -> None:
        self._store = store
        self._extract = extract
        self._starter = starter
        self._events = events
        self._priority = priority

    def table(self) -> dict[str, Runner]:
        """Return the runner of each kind of job."""
        return {"extract": self._yielding(self.extract), "dream": self._yielding(self._starter.run)}

    def _yielding(self, runner: Runner) -> Runner:
        """Return a runner that lets prompts go first, and dies at the next piece of its work."""

        async def run(running: Running) -> dict[str, Any]:
            with yielding(self._priority.checkpoint):
                return await runner(running)

        return run

    async def extract(self, running: Running) -> dict[str, Any]:
        """Run one extraction and tell subscribers what it saved; a due dream may follow."""
        request = running.request
        project, settings, _ = await self._store.where(request["cwd"], request["environment"])
        running.progress("reading")
        extracted = await self._extract.run(
            project,
            settings,
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
        visit = Visit(*(request[name] for name in ("cwd", "client", "environment", "session")))
        if extracted.change:
            saved = facts | {"session": request["session"], "job": running.job.id}
            self._events.publish(Event(MEMORY_SAVED, project.memory_dir, saved))
            await self._starter.consider(visit)
        else:
            await self._starter.visited(project, visit)
        return facts
