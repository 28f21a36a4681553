"""Read and write the notes of sessions, each under its session's lock. Blocks.

Rules of this file
- Reading a conversation and replacing its notes is one step under the session's lock. A model's run
  takes the lock only before and after, so the local writer never waits for a model.
- One writer at a time has the notes: a model takes over local ones, never the reverse. Notes that a
  person changed are read and not written.
- The cursor is written together with the notes that it describes, in one replacement.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from memd.base.clock import Clock
from memd.base.errors import Conflict, MemdError, NotFound
from memd.base.recent import Recent
from memd.base.text import iso_time
from memd.conversation.history import CompactionPlan
from memd.notes import block, compaction, files, gates, local, sections
from memd.notes.conversations import SessionReader
from memd.notes.facts import FindStatements
from memd.notes.files import NotesFile, NotesPlace
from memd.notes.fork import NotesUpdate
from memd.notes.requests import NotesRequest, NotesView, SectionSize, UpdateResult, skipped
from memd.notes.sections import NotesCursor, SessionNotes
from memd.notes.templates import NotesTemplate, chosen_template
from memd.projects.project import transcript_folders
from memd.transcripts.stream import message_pieces

LOCAL, MODEL = "local", "model"
_MOST_SESSIONS = 64  # whose facts stay in memory


class SessionLock(AbstractContextManager[Any], Protocol):
    """A lock between threads, as ``threading.Lock`` makes them."""

    def locked(self) -> bool:
        """Return whether it is held."""
        ...


class _Session(Struct):
    """A session's lock, and the reader of its conversation once it was read."""

    lock: SessionLock  # held while the conversation is read and the notes are written
    reader: SessionReader | None = None
    root: str = ""  # of the project whose client named the transcript


class _OpenSession(Struct, frozen=True):
    """A session's notes and conversation while its lock is held."""

    place: NotesPlace
    file: NotesFile | None
    reader: SessionReader

    def cursor(self, engine: str, now: float) -> NotesCursor:
        """Return a cursor that covers all messages read; its time is that of the last one."""
        covers, tokens = self.reader.facts.last_id, self.reader.meter.tokens
        at = iso_time(self.reader.last_at or now)
        return NotesCursor(self.place.session, covers, tokens, engine, at)


class BegunUpdate(Struct, frozen=True):
    """The start of a model's run: the notes that it edits and the cursor they will have."""

    update: NotesUpdate
    cursor: NotesCursor


class NotesKeeper:
    """The notes of all sessions. Methods are thread-safe and raise the errors of ``files``.

    ``lock`` makes a lock between threads. ``config_dir`` is the default folder of a client's
    configuration.
    """

    def __init__(
        self,
        clock: Clock,
        lock: Callable[[], SessionLock],
        config_dir: str,
        find_statements: FindStatements,
    ) -> None:
        self._clock = clock
        self._make_lock = lock
        self._config_dir = config_dir
        self._find_statements = find_statements
        # By ``key_of``; a session whose lock is held is not removed.
        self._sessions: Recent[tuple[str, str], _Session] = Recent(
            _MOST_SESSIONS, in_use=lambda session: session.lock.locked()
        )

    def gate(self, request: NotesRequest) -> str:
        """Return the name of the first closed gate, "" for none. Raises Refused."""
        with self._open_session(request) as opened:
            return gates.closed_gate(_gate_facts(request, opened), force=request.force)

    def write_locally(self, request: NotesRequest) -> UpdateResult:
        """Update the notes without a model, whatever their age, and return the result.

        Skipped if a gate is closed, there is no message or a model wrote the notes. Raises
        Refused.
        """
        with self._open_session(request) as opened:
            reader = opened.reader
            # The caller may be compacting now, even if the client does not do so by itself.
            facts = replace(_gate_facts(request, opened), compacts=True)
            gate = gates.closed_gate(facts, force=True)
            if not gate and not reader.facts.last_id:  # there is no message
                gate = gates.YOUNG
            if gate:
                return skipped(gate)
            if (
                opened.file
                and opened.file.notes.cursor
                and opened.file.notes.cursor.engine == MODEL
            ):
                return replace(skipped(gates.FOREIGN), path=opened.file.path)
            cursor = opened.cursor(LOCAL, self._clock.now())
            before = self._notes(request, opened)
            after = local.with_new_lines(before, local.lines(reader.facts))
            return self._write(opened, before, after, cursor)

    def begin(self, request: NotesRequest) -> BegunUpdate:
        """Return the notes, the new messages and the next cursor, at the start of a model's run."""
        with self._open_session(request) as opened:
            path = opened.file.path if opened.file else opened.place.path
            update = NotesUpdate(
                self._notes(request, opened),
                path,
                self._template(request),
                opened.reader.news.messages,
                request.project.memory_dir,
            )
            return BegunUpdate(update, opened.cursor(MODEL, self._clock.now()))

    def end(self, request: NotesRequest, begun: BegunUpdate, text: str) -> UpdateResult:
        """Write the notes' ``text`` after a model's run; refused changes are ``faults``.

        Skipped if somebody changed the notes meanwhile.
        """
        before = begun.update.notes
        after, faults = sections.checked_edit(before, text)
        with self._open_session(request) as opened:
            if opened.file and opened.file.foreign:
                return skipped(gates.FOREIGN)
            result = self._write(opened, before, after, begun.cursor)
            return replace(result, faults=faults)

    def refresh(self, request: NotesRequest) -> bool:
        """Update stale notes without a model; return whether they remain stale.

        Errors of the transcript or of the disk are ignored.
        """
        stale = False
        with suppress(MemdError):
            with self._open_session(request) as opened:
                stale = _is_stale(opened)
            stale = stale and bool(self.write_locally(request).gate)
        return stale

    def view(self, request: NotesRequest, characters: int | None, *, stale: bool) -> NotesView:
        """Return the notes for a reader, cut to ``characters``. Raises NotFound."""
        file = files.read(_place(request))
        if file is None:
            raise NotFound(
                f"the session {request.session} has no notes",
                hint="memctl notes list shows the sessions that have notes",
                session=request.session,
            )
        return _view(file, characters, stale=stale, empty=self._is_empty(request, file))

    def block(self, request: NotesRequest, units: int) -> str:
        """Return the notes as a block of at most ``units`` UTF-16 units, "" if there are none."""
        file = self._read_filled(request)
        return block.render(file.notes, file.path, units) if file else ""

    def compaction(self, request: NotesRequest, **arguments: Any) -> CompactionPlan | None:
        """Return a plan that compacts ``request.messages`` with the notes, ``None`` for none.

        ``arguments`` are further ones of ``compaction.plan``.
        """
        file = self._read_filled(request)
        if file is None:
            return None
        covers = file.notes.cursor.covers if file.notes.cursor else ""
        arguments |= {"path": file.path, "transcript": request.transcript_path}
        return compaction.plan(request.messages, file.text, covers, **arguments)

    def lines(self, messages: Any) -> dict[str, list[str]]:
        """Return the lines that the local writer makes from a list of messages, by section."""
        reader = SessionReader("", None, self._find_statements)
        reader.add(message_pieces(messages))
        return local.lines(reader.facts)

    def lacks_notes(self, request: NotesRequest) -> bool:
        """Return whether the conversation ends with a compaction, so that it has no notes yet."""
        with suppress(MemdError), self._open_session(request) as opened:
            return opened.reader.ends_at_boundary
        return False

    def delete(self, request: NotesRequest) -> bool:
        """Remove the notes and return whether there were any."""
        with self._locked_session(request) as (session, place):
            session.reader = None
            return files.remove(place)

    def template(self, environment: Mapping[str, str]) -> NotesTemplate:
        """Return the template and the prompt for a client with this environment."""
        return chosen_template(environment.get("CLAUDE_CONFIG_DIR") or self._config_dir)

    def _template(self, request: NotesRequest) -> NotesTemplate:
        """Return the template and the prompt for the client of a request."""
        return self.template(request.environment)

    def _read_filled(self, request: NotesRequest) -> NotesFile | None:
        """Return a session's notes, ``None`` if there are none or all sections are empty."""
        file = files.read(_place(request))
        return None if file is None or self._is_empty(request, file) else file

    def _is_empty(self, request: NotesRequest, file: NotesFile) -> bool:
        """Return whether notes say nothing that their template does not say."""
        return sections.is_empty(file.notes, self._template(request).text)

    @contextmanager
    def _locked_session(self, request: NotesRequest) -> Iterator[tuple[_Session, NotesPlace]]:
        """Hold a session's lock; yield the session and the place of its notes."""
        place = _place(request)
        session = self._sessions.setdefault(key_of(request), _Session(self._make_lock()))
        with session.lock:
            yield session, place

    @contextmanager
    def _open_session(self, request: NotesRequest) -> Iterator[_OpenSession]:
        """Hold a session's lock; yield its notes and its conversation, read to the end."""
        with self._locked_session(request) as (session, place):
            file = files.read(place)
            cursor = file.notes.cursor if file else None
            if request.messages is not None:
                reader = SessionReader("", cursor, self._find_statements)
                reader.add(message_pieces(request.messages))
            else:
                reader = self._reader(session, request, cursor)
                reader.read()
            yield _OpenSession(place, file, reader)

    def _reader(
        self, session: _Session, request: NotesRequest, cursor: NotesCursor | None
    ) -> SessionReader:
        """Return the session's reader; make a new one if the transcript or the cursor changed."""
        reader, root = session.reader, request.project.root
        path = request.transcript_path
        # The path named before is used again, but another project may have a session of this name.
        if not path and reader and session.root == root:
            path = reader.path
        elif not path:
            path = _transcript_path(request)
        if reader is None or (reader.path, reader.cursor) != (path, cursor):
            reader = session.reader = SessionReader(path, cursor, self._find_statements)
        session.root = root
        return reader

    def _notes(self, request: NotesRequest, opened: _OpenSession) -> SessionNotes:
        """Return a session's notes, those of the template if there are none."""
        return opened.file.notes if opened.file else sections.parse(self._template(request).text)

    def _write(
        self, opened: _OpenSession, before: SessionNotes, after: SessionNotes, cursor: NotesCursor
    ) -> UpdateResult:
        """Write notes that were changed from ``before`` to ``after``, with their new cursor.

        Skipped if somebody changes the file in this moment.
        """
        file, reader = opened.file, opened.reader
        text = sections.rendered(replace(after, cursor=cursor))
        try:
            if file is None or text != file.text:
                files.replace(opened.place, text, file.hash if file else "")
        except Conflict:
            return skipped(gates.FOREIGN)
        if reader.facts.last_id == cursor.covers:
            reader.count_from_here(cursor)  # else the next update reads on from the new cursor
        pairs = zip(before.sections, after.sections, strict=True)
        return UpdateResult(
            engine=cursor.engine,
            sections=tuple(new.title for old, new in pairs if old != new),
            path=file.path if file else opened.place.path,
            covers=cursor.covers,
            tokens=cursor.tokens,
        )


def key_of(request: NotesRequest) -> tuple[str, str]:
    """Return the key of a session's notes: its transcripts' folder and its name."""
    return request.project.transcripts, request.session


def folder_of(request: NotesRequest) -> str:
    """Return the folder of new notes. Raises Invalid."""
    return _place(request).path.rpartition("/")[0]


def _transcript_path(request: NotesRequest) -> str:
    """Return the path of Claude Code's transcript of a session, "" if there is none."""
    for folder in transcript_folders(request.project):
        path = f"{folder}/{request.session}.jsonl"
        if os.path.exists(path):
            return path
    return ""


def _place(request: NotesRequest) -> NotesPlace:
    """Return the place of a session's notes. Raises Invalid."""
    return files.place(request.project, request.session, request.transcript_path)


def _gate_facts(request: NotesRequest, opened: _OpenSession) -> gates.GateFacts:
    """Return what the gates need to know of an open session."""
    reader = opened.reader
    return replace(
        request.switches,
        sub_agent=reader.sub_agent,
        foreign=opened.file is not None and opened.file.foreign,
        tokens=reader.meter.tokens,
        since=reader.growth_start,
        calls=reader.facts.calls_since,
        mid_turn=reader.facts.mid_turn and not request.turn_ended,
    )


def _is_stale(opened: _OpenSession) -> bool:
    """Return whether the conversation grew by over 5,000 tokens since memd's notes were written."""
    start = opened.reader.growth_start
    if start is None or opened.file is None or opened.file.foreign:
        return False
    return opened.reader.meter.tokens - start > gates.GROWTH_TOKENS


def _view(file: NotesFile, characters: int | None, *, stale: bool, empty: bool) -> NotesView:
    """Return notes for a reader, cut to ``characters``, with the sizes of all sections."""
    content = sections.shortened(file.notes, file.path, characters=characters)
    shown = {part.title: part.content for part in sections.parse(content).sections}
    sizes = []
    for part in file.notes.sections:
        title = part.title.strip()
        # The last section shown also ends with the note on what was cut.
        is_cut = not shown.get(title, "").startswith(part.content)
        sizes.append(SectionSize(title, sections.section_tokens(part), is_cut))
    cursor = None if file.foreign else file.notes.cursor
    return NotesView(
        content=content,
        path=file.path,
        sections=tuple(sizes),
        tokens=sum(size.tokens for size in sizes),
        covers=cursor.covers if cursor else "",
        stale=stale,
        engine=cursor.engine if cursor else "",
        empty=empty,
        hash=file.hash,
    )
