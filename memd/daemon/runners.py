"""Run each kind of job by passing its request to the service that does the work."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from memd.base.events import MEMORY_SAVED, Event, EventSink
from memd.base.yielding import yielding
from memd.context import summary
from memd.context.errors import breaker_open
from memd.context.service import Summaries, failed_result
from memd.daemon.dreaming import DreamStarter
from memd.extract.requests import ExtractRequest
from memd.extract.service import Extractions
from memd.jobs.priority import RequestPriority
from memd.jobs.service import Runner, Running
from memd.notes.service import KIND as NOTES
from memd.notes.service import Notes, NotesRequest
from memd.projects.known import Visit
from memd.projects.projects import Projects


def runners(
    projects: Projects,
    extractions: Extractions,
    starter: DreamStarter,
    events: EventSink,
    priority: RequestPriority,
    *,
    notes: Notes,
    summaries: Summaries,
) -> dict[str, Runner]:
    """Return the runner of each kind of job; each yields to requests while it computes."""

    async def extract(running: Running) -> dict[str, Any]:
        """Run an extraction and publish what it saved; then begin a dream if one is due."""
        request = running.job.request
        project, settings, _ = await projects.find(*_caller(request))
        running.progress("reading")
        about = ExtractRequest(
            session=request["session"],
            transcript_path=request["transcript_path"],
            messages=request["messages"],
            cache=request.get("cache"),
            ended=request.get("ended", False),
        )
        extracted = await extractions.run(
            project,
            settings,
            about,
            job=running.job.id,
            client=request["client"],
            progress=running.progress,
            allow_model=running.model_allowed,
        )
        facts = extracted.facts()
        client, session = request["client"], request["session"]
        visit = Visit(request["cwd"], client, request["environment"], session)
        if extracted.change:
            saved = facts | {"session": session, "job": running.job.id}
            events.publish(Event(MEMORY_SAVED, project.memory_dir, saved))
            await starter.consider(project, settings, visit)
        elif project.enabled:
            await starter.visited(project, visit)
        return facts

    by_kind: dict[str, Runner] = {
        "extract": extract,
        "dream": starter.run,
        NOTES: partial(_update_notes, projects, notes),
        summary.KIND: partial(_summarise, projects, summaries),
    }
    return {kind: _with_yielding(runner, priority) for kind, runner in by_kind.items()}


def _caller(request: Mapping[str, Any]) -> tuple[str, Mapping[str, str], str]:
    """Return the working directory, variables and name of the caller that submitted a job."""
    return request["cwd"], request["environment"], request.get("client", "")


def _with_yielding(runner: Runner, priority: RequestPriority) -> Runner:
    """Return a runner that yields to requests while it computes."""

    async def run(running: Running) -> dict[str, Any]:
        with yielding(priority.checkpoint):
            return await runner(running)

    return run


async def _update_notes(projects: Projects, notes: Notes, running: Running) -> dict[str, Any]:
    """Update the notes of one session and return the result's facts."""
    request = running.job.request
    project, settings, _ = await projects.find(*_caller(request))
    running.progress("reading")
    result = await notes.run(
        NotesRequest.of(project, settings, request),
        job=running.job.id,
        progress=running.progress,
        allow_model=running.model_allowed,
    )
    return result.facts()


async def _summarise(projects: Projects, summaries: Summaries, running: Running) -> dict[str, Any]:
    """Summarise a conversation and return the result's facts.

    If no model is allowed, these are the facts of a failure.
    """
    request = running.job.request
    if not running.model_allowed:
        return failed_result(breaker_open())
    project, settings, _ = await projects.find(*_caller(request))
    return await summaries.run(
        settings,
        request["rounds"],
        request["instructions"],
        project=project.memory_dir,
        job=running.job.id,
        digest=request["digest"],
        progress=running.progress,
    )
