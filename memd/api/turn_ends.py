"""What a hook does at the end of a turn, before and after a compaction, and at a session's end."""

from contextlib import suppress

from memd.api import notes, work
from memd.api.dialects import Event
from memd.api.received import Received
from memd.api.services import Services
from memd.base.errors import MemdError, Refused
from memd.notes.service import NotesRequest
from memd.rpc.call import Call
from memd.text import quoting

_GATE_SECONDS = 0.02  # for the gates of notes at a turn's end; the job checks them again
_SENTENCE_UNITS = 300  # UTF-16 units of the sentence before a compaction, at most


async def after_turn(
    services: Services, call: Call, kind: Event, received: Received, until: float
) -> str:
    """Submit extraction and notes, at a session's end a due dream; return the text to print."""
    project, settings, cwd = received.project, received.settings, received.payload.cwd
    path, session, sentence = received.payload.transcript_path, received.session, ""
    if path and kind is Event.COMPACTING:
        sentence = await _before_compaction(services, call, received, until)
    if path:
        about = {"cwd": cwd, "session": session, "transcript_path": path}
        with suppress(Refused):  # a session that said nothing has none yet
            await work.submit(services, call, project, settings, about)
    if path and kind is Event.TURN_END:
        request = _notes_request(call, received, turn_ended=True)
        with suppress(MemdError):
            await notes.submit(services, request, seconds=_GATE_SECONDS)
    if kind is Event.SESSION_END:
        visit = work.visit_of(call, project.cwd, session)
        await services.starter.consider(project, settings, visit)
    return sentence


async def _before_compaction(
    services: Services, call: Call, received: Received, until: float
) -> str:
    """Write the notes, or submit a job if that fails; return a sentence if wanted, else ""."""
    request = _notes_request(call, received, force=True)
    try:
        with services.clock.move_on_after(until - services.clock.monotonic()):
            path = (await services.session_notes.write_locally(request)).path
            sentence = f"The notes of this conversation are in {path}; they outlast the compaction."
            is_wanted = path and request.settings.notes.precompact
            return sentence if is_wanted and quoting.units(sentence) <= _SENTENCE_UNITS else ""
    except MemdError:  # a job is repeated where that helps, and job.list shows its error
        with suppress(MemdError):
            await notes.submit(services, request)
    return ""


async def compacted_notes(
    services: Services, call: Call, received: Received, room: int, until: float
) -> str:
    """Return the notes of a compacted session, at most ``room`` UTF-16 units, else ""."""
    resumed = received.payload.source == "resume" and received.dialect.late_boundary
    if not resumed and received.payload.source != "compact":
        return ""
    request = _notes_request(call, received)
    seconds = (until - services.clock.monotonic()) / 2  # the rest is for the file
    with suppress(MemdError):
        return await services.session_notes.block(request, room, seconds, resumed=resumed)
    return ""


def _notes_request(call: Call, received: Received, **given: bool) -> NotesRequest:
    """Return a request about the notes of an event's session."""
    path, session = received.payload.transcript_path, received.session
    return notes.about(
        call, received.project, received.settings, session, transcript_path=path, **given
    )
