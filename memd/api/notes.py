"""notes.*: read, update and delete the notes of a session, which outlast its compactions."""

import os
from typing import Annotated, Any

import msgspec
from anyio import to_thread

from memd.api.services import Services
from memd.api.work import Ended, ended, nothing_to_read
from memd.base.errors import Invalid, Refused, Storage, TooLarge
from memd.base.settings import Settings
from memd.base.values import Project
from memd.methods.method import Limit, Result, SessionId, method
from memd.notes.service import KIND, PAUSED, ListedNotes, NotesRequest, NotesView
from memd.projects.project import transcript_folders
from memd.projects.switches import CLAUDE_NAMES
from memd.rpc.call import Call
from memd.transcripts import reading

Characters = Annotated[int, msgspec.Meta(ge=500, le=1_000_000)]


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


_READ = (
    Invalid,
    Invalid,
    Refused,
    TooLarge,
    Storage,
    Storage,
)


@method("notes.read", "read")
async def notes_read(
    services: Services,
    call: Call,
    *,
    cwd: str,
    session_id: SessionId,
    max_chars: Characters | None = None,
) -> NotesView:
    """The notes of a session, cut to their maximum sizes or to ``max_chars``.

    An update that runs is waited for, up to 15 seconds. Where the conversation has grown by more
    than 5,000 tokens since, the notes are first brought up to date without a model.
    """
    request = await notes_request(services, call, cwd, session_id)
    await services.callers.check_reader(call, request.project)
    return await services.session_notes.read(request, characters=max_chars)


@method("notes.update", "write")
async def notes_update(
    services: Services,
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
    if (transcript_path is None) == (messages is None):  # both or neither
        raise nothing_to_read()
    if transcript_path is not None:
        await to_thread.run_sync(reading.check, transcript_path)
    request = await notes_request(
        services,
        call,
        cwd,
        session_id,
        transcript_path=transcript_path or "",
        messages=messages,
        cache=cache,
        force=force,
    )
    services.progress.remember(session_id, cache)
    result = await submit(services, request)
    if not (wait and result.job):
        return result
    return await ended(services.jobs, result.job, UpdatedNotes)


@method("notes.list", "read")
async def notes_list(
    services: Services, call: Call, *, cwd: str | None = None, limit: Limit = 50
) -> NotesPage:
    """The notes that changed last, of the project of ``cwd`` or of all projects."""
    keys = None
    if cwd is None:
        base = await to_thread.run_sync(services.projects.base, call.caller.environment)
    else:
        project = await services.callers.project(call, cwd)
        base = project.transcripts
        keys = [os.path.basename(folder) for folder in transcript_folders(project)]
    return NotesPage(notes=await services.session_notes.list(base, keys, limit))


@method("notes.delete", "write")
async def notes_delete(
    services: Services, call: Call, *, cwd: str, session_id: SessionId
) -> DeletedNotes:
    """Delete a session's notes; an update of them that waits or runs is cancelled."""
    request = await notes_request(services, call, cwd, session_id)
    return DeletedNotes(deleted=await delete(services, request))


async def notes_request(
    services: Services, call: Call, cwd: str, session: str, **members: Any
) -> NotesRequest:
    """Return a request about a session's notes, with the project and settings of ``cwd``."""
    project, settings, _ = await services.callers.find(call, cwd)
    return about(call, project, settings, session, **members)


def about(
    call: Call, project: Project, settings: Settings, session: str, **members: Any
) -> NotesRequest:
    """Return a caller's request about a session's notes, with other ``members`` of it."""
    caller = call.caller
    return NotesRequest(
        project,
        settings,
        session,
        client=caller.client,
        compacts=project.compacts or caller.client not in CLAUDE_NAMES,
        environment=dict(caller.environment),
        **members,
    )


async def submit(
    services: Services, request: NotesRequest, *, seconds: float = 1.0
) -> UpdatedNotes:
    """Submit an update of notes, or return the gate that is closed.

    The gates are checked for at most ``seconds``.
    """
    gate = await services.session_notes.gate(request, seconds=seconds)
    if not gate and (await services.jobs.state()).paused_since is not None:
        gate = PAUSED
    if gate:
        return UpdatedNotes(status="skipped", gate=gate)
    folder = await services.session_notes.folder(request)
    submitted = await services.jobs.submit(KIND, folder, request.session, request.facts())
    return UpdatedNotes(status=submitted.status, job=submitted.job)


async def delete(services: Services, request: NotesRequest) -> bool:
    """Cancel all updates of a session's notes and delete them; say whether there were any."""
    folder = await services.session_notes.folder(request)
    # A loop, because another update may be submitted while one is being cancelled.
    while True:
        job = await services.jobs.under_way(KIND, folder)
        if job is None:
            break
        await services.jobs.cancel(job)
    return await services.session_notes.delete(request)
