"""notes.*: update session notes, with a model if one may be used, else locally, and serve them.

``keeping`` reads and writes files in worker threads with a limiter of their own.
"""

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, TypeVar

import anyio
import msgspec
from anyio import CapacityLimiter, to_thread
from msgspec.structs import asdict, replace

from memd.agent import service as agent
from memd.agent.runs import Runs
from memd.agent.service import RunEnd
from memd.base import errors
from memd.base.clock import Clock
from memd.base.settings import Settings
from memd.base.values import Project
from memd.conversation.history import CompactionPlan
from memd.jobs.methods import Ended, result_of
from memd.jobs.service import Jobs
from memd.methods.callers import Callers
from memd.methods.method import Limit, Result, SessionId, method
from memd.model.errors import NO_USE_TODAY
from memd.model.port import Model, ModelSource
from memd.notes import files, fork, gates, sections
from memd.notes.editing import NotesBench
from memd.notes.facts import FindStatements
from memd.notes.keeping import NotesKeeper, folder_of, key_of
from memd.notes.requests import ListedNotes as ListedNotes
from memd.notes.requests import NotesRequest as NotesRequest
from memd.notes.requests import NotesView as NotesView
from memd.notes.requests import UpdateResult, skipped
from memd.projects.project import transcript_folders
from memd.projects.projects import Projects
from memd.projects.switches import CLAUDE_NAMES
from memd.rpc.call import Call
from memd.transcripts import reading

KIND = fork.KIND
_THREADS = 4  # a slow disk must not occupy all threads of the daemon
_WAIT_SECONDS = 15.0  # that a reader waits for a running update
_LONG_UPDATE_SECONDS = 60.0  # readers do not wait for an update that runs longer
_UNCHANGED = "the model changed nothing, so the notes do not hold what is new"

T = TypeVar("T")
Progress = Callable[..., None]
Characters = Annotated[int, msgspec.Meta(ge=500, le=1_000_000)]


def _notes_unfinished(ended: RunEnd) -> errors.Model:
    sentence = _UNCHANGED if ended.finished else ended.unfinished
    return errors.Model(
        sentence,
        retryable=True,
        hint="memctl job show tells what the model did",
        reason=str(ended.reason),
        turns=ended.turns,
    )


class UpdatedNotes(Ended):
    """The result of an update; ``sections`` are those that changed, ``faults`` those not accepted.

    A ``skipped`` update has the ``gate`` that was closed; one that ended has the gate because of
    which no model was asked, if any. ``covers`` is the last message that the notes include.
    ``refused`` counts a model's tool calls that were not allowed.
    """

    gate: str | None = None
    sections: list[str] | None = None
    path: str | None = None
    covers: str | None = None
    tokens: int | None = None
    problem: str | None = None
    faults: list[str] | None = None
    refused: int | None = None


class NotesPage(Result):
    """Notes of sessions, those that changed last first."""

    notes: tuple[ListedNotes, ...]


class DeletedNotes(Result):
    """Whether there were notes to delete."""

    deleted: bool


class Notes:
    """The notes of all sessions of one daemon.

    ``find_statements`` finds what a person wants remembered or corrects; ``runs`` stores the
    records of a model's runs; ``config_dir`` is the folder of the clients' configuration;
    ``remember`` gets a session and its client's last request to a model. Functions raise the errors
    of ``files`` and Invalid.
    """

    def __init__(
        self,
        clock: Clock,
        models: ModelSource,
        runs: Runs,
        *,
        config_dir: str,
        find_statements: FindStatements,
        callers: Callers,
        projects: Projects,
        jobs: Jobs,
        remember: Callable[[str, Mapping[str, Any] | None], None],
    ) -> None:
        self._callers = callers
        self._projects = projects
        self._jobs = jobs
        self._remember = remember
        self._clock = clock
        self._models = models
        self._runs = runs
        self._keeper = NotesKeeper(clock, threading.Lock, config_dir, find_statements)
        # By ``key_of``, the running updates: when each began (monotonic), and its end.
        self._running: dict[tuple[str, str], tuple[float, anyio.Event]] = {}
        self._threads = CapacityLimiter(_THREADS)

    @method("notes.read", "read")
    async def notes_read(
        self, call: Call, *, cwd: str, session_id: SessionId, max_chars: Characters | None = None
    ) -> NotesView:
        """The notes of a session, cut to their maximum sizes or to ``max_chars``.

        An update that runs is waited for, up to 15 seconds. Where the conversation has grown by
        more than 5,000 tokens since, the notes are first brought up to date without a model.
        """
        request = await self._request(call, cwd, session_id)
        await to_thread.run_sync(self._callers.check_reader, call, request.project)
        await self._wait_for_update(key_of(request))
        stale = await self._in_thread(partial(self._keeper.refresh, request), abandon=True)
        return await self._in_thread(partial(self._keeper.view, request, max_chars, stale=stale))

    @method("notes.update", "write")
    async def notes_update(
        self,
        call: Call,
        *,
        cwd: str,
        session_id: SessionId,
        transcript_path: str | None = None,
        messages: list[Any] | None = None,
        cache: dict[str, Any] | None = None,
        force: bool = False,
        wait: bool = False,
    ) -> UpdatedNotes:
        """Start a job that updates a session's notes if an update is due; answers at once.

        With ``force`` it starts although the conversation is short, has hardly grown or is in the
        middle of a turn. ``cache`` is the request that the client itself sends to its model. With
        ``wait`` the answer comes once the job has ended.
        """
        reading.check_source(transcript_path, messages)
        if transcript_path is not None:
            await to_thread.run_sync(reading.check, transcript_path)
        given = {"messages": messages, "cache": cache, "force": force}
        request = await self._request(
            call, cwd, session_id, transcript_path=transcript_path or "", **given
        )
        self._remember(session_id, cache)
        result = await self.submit(request)
        if not (wait and result.job):
            return result
        return await result_of(self._jobs, result.job, UpdatedNotes)

    @method("notes.list", "read")
    async def notes_list(
        self, call: Call, *, cwd: str | None = None, limit: Limit = 50
    ) -> NotesPage:
        """The notes that changed last, of the project of ``cwd`` or of all projects."""
        keys = None
        if cwd is None:
            base = await to_thread.run_sync(self._projects.base, call.caller.environment)
        else:
            project = await to_thread.run_sync(self._callers.place, call, cwd)
            base = project.transcripts
            keys = [os.path.basename(folder) for folder in transcript_folders(project)]
        notes_files = await self._in_thread(partial(files.newest_notes, base, keys, limit))
        listed = [
            ListedNotes(
                session=file.session,
                title=file.notes.title,
                tokens=sum(map(sections.section_tokens, file.notes.sections)),
                at=file.mtime,
                path=file.path,
            )
            for file in notes_files
        ]
        return NotesPage(notes=tuple(listed))

    @method("notes.delete", "write")
    async def notes_delete(self, call: Call, *, cwd: str, session_id: SessionId) -> DeletedNotes:
        """Delete a session's notes; an update of them that waits or runs is cancelled."""
        request = await self._request(call, cwd, session_id)
        folder = await self._in_thread(partial(folder_of, request))
        # A loop, because another update may be submitted while one is being cancelled.
        while job := await self._jobs.under_way(KIND, folder):
            await self._jobs.cancel(job)
        return DeletedNotes(deleted=await self._in_thread(partial(self._keeper.delete, request)))

    async def _request(self, call: Call, cwd: str, session: str, **given: Any) -> NotesRequest:
        """Return a request about a session's notes, with the project and settings of ``cwd``."""
        project, settings, _ = await to_thread.run_sync(self._callers.where, call, cwd)
        return about(call, project, settings, session, **given)

    async def submit(self, request: NotesRequest, *, seconds: float = 1.0) -> UpdatedNotes:
        """Submit an update of notes, or return the gate that is closed. Raises Refused.

        If reading the transcript takes longer than ``seconds``, it is submitted too, as the update
        checks the gates again.
        """
        gate = gates.closed_gate(request.switches, force=True)
        if not gate:
            with self._clock.move_on_after(seconds):
                gate = await self._in_thread(partial(self._keeper.gate, request), abandon=True)
        if not gate and (await self._jobs.state()).paused_since is not None:
            gate = gates.PAUSED
        if gate:
            return UpdatedNotes(status="skipped", gate=gate)
        folder = await self._in_thread(partial(folder_of, request))
        submitted = await self._jobs.submit(KIND, folder, request.session, request.facts())
        return UpdatedNotes(status=submitted.status, job=submitted.job)

    async def run(
        self, request: NotesRequest, *, job: str, progress: Progress, allow_model: bool = True
    ) -> UpdateResult:
        """Update a session's notes if the gates are open, and return the result.

        Raises Refused and Model; the notes are unchanged then.
        """
        key = key_of(request)
        end = anyio.Event()
        self._running[key] = entry = (self._clock.monotonic(), end)
        try:
            return await self._update(request, job, progress, allow_model=allow_model)
        finally:
            end.set()
            if self._running.get(key) is entry:  # an update from another directory stays
                del self._running[key]

    async def write_locally(self, request: NotesRequest) -> UpdateResult:
        """Update the notes without a model at once; a cancelled caller does not stop it.

        Raises Refused.
        """
        # Without the limiter, whose threads may all be reading long transcripts.
        write = partial(self._keeper.write_locally, request)
        return await to_thread.run_sync(write, abandon_on_cancel=True)

    async def block(
        self, request: NotesRequest, units: int, seconds: float, *, resumed: bool = False
    ) -> str:
        """Return the notes of a compacted session as a block of at most ``units`` UTF-16 units.

        It does not wait for a running update, and not much longer than ``seconds``. The block is ""
        if notes are off; with ``resumed`` also if messages follow the last compaction, as the
        conversation may have the notes then.
        """
        if not request.switches.enabled:
            return ""
        lacks_notes = not resumed
        check = self._keeper.lacks_notes if resumed else self._keeper.refresh
        # Without ``resumed`` the block is returned even if refreshing takes too long or fails.
        with self._clock.move_on_after(seconds):
            lacks_notes = (
                await self._in_thread(partial(check, request), abandon=True) or not resumed
            )
        if not lacks_notes:
            return ""
        # Without the limiter, whose threads may all be reading long transcripts.
        return await to_thread.run_sync(partial(self._keeper.block, request, units))

    async def compaction(
        self,
        call: Call,
        project: Project,
        settings: Settings,
        session: str,
        *,
        messages: Sequence[Any],
        transcript: str,
        window: int,
        trigger: str,
        results: str = "",
    ) -> CompactionPlan | None:
        """Return a plan that compacts a session's ``messages`` with its notes.

        It is ``None`` if notes are off, if there are none, or if another way is better. The method
        waits for a running update. ``window`` is in tokens; ``results`` is the folder of stored
        tool results.
        """
        given = {"messages": messages, "transcript_path": transcript}
        request = about(call, project, settings, session, **given)
        if not request.switches.enabled:
            return None
        await self._wait_for_update(key_of(request))
        arguments = {"window": window, "trigger": trigger, "results": results}
        plan = partial(self._keeper.compaction, request, **arguments)
        return await self._in_thread(plan)

    async def lines(self, messages: Any) -> dict[str, list[str]]:
        """Return the local writer's lines about a list of messages, by section."""
        return await self._in_thread(partial(self._keeper.lines, messages))

    async def prune(self, base: str) -> int:
        """Remove all but the newest notes below a folder of projects; return how many."""
        return await self._in_thread(partial(files.prune, base))

    async def problems(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """Return sentences why a person's own template or prompt is not used."""
        template = partial(self._keeper.template, environment)
        return (await self._in_thread(template)).problems

    async def _in_thread(self, work: Callable[[], T], *, abandon: bool = False) -> T:
        """Return the result of ``work`` from a thread.

        With ``abandon`` a cancelled caller does not wait for the thread.
        """
        return await to_thread.run_sync(work, limiter=self._threads, abandon_on_cancel=abandon)

    async def _wait_for_update(self, key: tuple[str, str]) -> None:
        """Wait up to 15 seconds for a running update, not for one that began a minute ago."""
        if key not in self._running:
            return
        began, end = self._running[key]
        seconds = min(began + _LONG_UPDATE_SECONDS - self._clock.monotonic(), _WAIT_SECONDS)
        with self._clock.move_on_after(max(0.0, seconds)):
            await end.wait()

    async def _update(
        self, request: NotesRequest, job: str, progress: Progress, *, allow_model: bool
    ) -> UpdateResult:
        """Update the notes with a model if one may be used, else locally, if the gates are open."""
        gate = gates.closed_gate(request.switches, force=True)
        gate = gate or await self._in_thread(partial(self._keeper.gate, request))
        if gate:
            return skipped(gate)
        model = self._models.for_(request.settings) if request.settings.notes.use_model else None
        gate = problem = ""  # why no model is used, and the same as a sentence
        if model is not None and model.calls_tools:
            if not allow_model:
                gate = gates.BREAKER
            else:
                result = await self._update_by_model(request, model, job, progress)
                if isinstance(result, UpdateResult):
                    return result
                gate, problem = gates.CAP, result
        result = await self._in_thread(partial(self._keeper.write_locally, request))
        return replace(result, gate=gate or result.gate, problem=problem)

    async def _update_by_model(
        self, request: NotesRequest, model: Model, job: str, progress: Progress
    ) -> UpdateResult | str:
        """Have a model edit the notes; return the result, or why none can be used today.

        Raises errors.Model.
        """
        begun = await self._in_thread(partial(self._keeper.begin, request))
        name = self._models.name(request.settings, KIND)
        text = sections.rendered(begun.update.notes, cursor=False)
        make_tasks = partial(fork.tasks, begun.update, name, request.cache)
        for task in await self._in_thread(make_tasks):
            bench = NotesBench(begun.update.path, text)
            ended = await agent.run(task, model, bench, self._clock, progress)
            if not isinstance(ended.error, fork.NO_ROOM):
                break
        if job:
            await self._in_thread(partial(self._runs.save, job, ended.record))
        if ended.valid and (bench.touched or not ended.finished):
            result = await self._in_thread(partial(self._keeper.end, request, begun, bench.text))
            return replace(
                result,
                engine=task.model,
                turns=ended.turns,
                refused=ended.denied,
                usage=asdict(ended.usage),
            )
        if isinstance(ended.error, NO_USE_TODAY):
            return ended.error.sentence
        raise _notes_unfinished(ended)


def about(
    call: Call, project: Project, settings: Settings, session: str, **given: Any
) -> NotesRequest:
    """Return a caller's request about a session's notes, with other members that are ``given``."""
    caller = call.caller
    return NotesRequest(
        project,
        settings,
        session,
        client=caller.client,
        compacts=project.compacts or caller.client not in CLAUDE_NAMES,
        environment=dict(caller.environment),
        **given,
    )
