"""What a hook does at the end of a turn, before and after a compaction, and at a session's end."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

from memd.base.client_events import EventKind
from memd.base.clock import Clock
from memd.base.errors import MemdError, Refused
from memd.base.settings import Settings
from memd.base.values import Project
from memd.extract.starting import ExtractionStarter
from memd.hooks.event import HookEvent
from memd.notes.service import Notes, NotesRequest, about
from memd.projects.known import Visit
from memd.text import quoting

_GATE_SECONDS = 0.02  # for the gates of notes at a turn's end; the job checks them again
_SENTENCE_UNITS = 300  # UTF-16 units of the sentence before a compaction, at most


class TurnEnds:
    """Begins what is due when a turn or session ends; ``consider_dream`` begins a dream if due."""

    def __init__(
        self,
        extractions: ExtractionStarter,
        notes: Notes,
        consider_dream: Callable[[Project, Settings, Visit], Awaitable[object]],
        clock: Clock,
    ) -> None:
        self._extractions = extractions
        self._notes = notes
        self._consider_dream = consider_dream
        self._clock = clock

    async def after(self, event: HookEvent) -> str:
        """Submit extraction and notes, at a session's end a due dream; return the text to print."""
        path, project, settings = event.payload.transcript_path, event.project, event.settings
        sentence = ""
        if path and event.kind is EventKind.COMPACTING:
            sentence = await self._before_compaction(event)
        if path:
            cwd, session = event.payload.cwd, event.session
            submit = partial(self._extractions.submit, event.call, project, settings)
            ended = event.kind is EventKind.SESSION_END
            with suppress(Refused):  # a session that said nothing has none yet
                await submit(cwd=cwd, session=session, transcript_path=path, ended=ended)
        if path and event.kind is EventKind.TURN_END:
            with suppress(MemdError):
                due = _notes_request(event, turn_ended=True)
                await self._notes.submit(due, seconds=_GATE_SECONDS)
        if event.kind is EventKind.SESSION_END:
            visit = Visit.of(event.call.caller, project.cwd, event.session)
            await self._consider_dream(project, settings, visit)
        return sentence

    async def compacted_notes(self, event: HookEvent, room: int) -> str:
        """Return the notes of a compacted session, at most ``room`` UTF-16 units, else ""."""
        resumed = event.payload.source == "resume" and event.dialect.late_boundary
        if not resumed and event.payload.source != "compact":
            return ""
        seconds = (event.until - self._clock.monotonic()) / 2  # the rest is for the file
        with suppress(MemdError):
            return await self._notes.block(_notes_request(event), room, seconds, resumed=resumed)
        return ""

    async def _before_compaction(self, event: HookEvent) -> str:
        """Write the notes, or submit a job if that fails; return a sentence if wanted, else ""."""
        request = _notes_request(event, force=True)
        try:
            with self._clock.move_on_after(event.until - self._clock.monotonic()):
                path = (await self._notes.write_locally(request)).path
                sentence = (
                    f"The notes of this conversation are in {path}; they outlast the compaction."
                )
                is_wanted = path and event.settings.notes.precompact
                return sentence if is_wanted and quoting.units(sentence) <= _SENTENCE_UNITS else ""
        except MemdError:  # a job is repeated where that helps, and job.list shows its error
            with suppress(MemdError):
                await self._notes.submit(request)
        return ""


def _notes_request(event: HookEvent, **given: bool) -> NotesRequest:
    """Return a request about the notes of an event's session."""
    path, request = event.payload.transcript_path, partial(about, event.call, event.project)
    return request(event.settings, event.session, transcript_path=path, **given)
