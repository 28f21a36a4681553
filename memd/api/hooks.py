"""hook: what a client's hook sends as it got it, answered as that client wants it printed.

All client logic lives here and in ``dialects``, none in the hook file, so an upgrade of memd needs
no new set-up.

- The start of a session brings the memory section only where the client does not load it itself,
  and otherwise what there is to say of a team's directory, of which no client knows.
- A prompt brings the memories that matter, and what was said and is not remembered, at most 9,500
  characters.
- A sub-agent's start brings its memory where the settings name a scope and its client loads none.
- The end of a turn, a compaction and the end of a session print nothing: anything else would loop
  the turn. The one exception is a sentence before a compaction, for who wants it.
- A context that was compacted gets the session's notes. All that is brought then, and with the
  prompt that follows, is within 9,500 characters: one request has both.
- What a session was given is in its context until the client says that it was compacted or
  cleared: a session that ended is resumed with it, and a compaction that was announced may fail.
- A memory that the assistant writes with its own tools gets its index line at once.
- A large result of a search, the web or an MCP server is stored where that is wanted. Nothing is
  known of the tools of sub-agents, which may have none to read it with: theirs stay.
- An event seen twice under one prompt id is answered once.
- Messages of other agents come with a prompt and after a tool (``delivering``).
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

import msgspec

from memd.api import delivering, dialects, notes, opened, prompting, ruling, subagents, work
from memd.api.dialects import DIALECTS, Dialect, Event, Payload, answer
from memd.api.method import Method, forwarded, method
from memd.api.services import Services
from memd.context.service import ContextRequest
from memd.conversation.history import tool_kind
from memd.core import limits
from memd.core.errors import MemdError, WrongParameterError
from memd.core.names import INDEX, INDEXES, TEAM
from memd.core.recent import Recent
from memd.core.settings import Settings
from memd.core.values import Actor, Project, Provenance
from memd.notes.service import NotesRequest
from memd.recall.service import Prompt
from memd.rpc.connection import Call
from memd.state.tables import Parents
from memd.text import quoting, tags
from memd.transcripts.reading import TranscriptRefusedError
from memd.transcripts.sessions import parents

_REMEMBERED_EVENTS = 1024
_SESSIONS = 64  # whose memory section is in memory, some 30 KB each
_PROMPT_MS = 200  # what the hook gives a prompt unless it says more
_START_SECONDS = 0.2  # of a session's start for what may be worth remembering
_SUGGESTED_SHARE = 0.2  # of a prompt's time for the same, if it is left
_LINE_MADE = "memd has added the line of this memory to MEMORY.md; nothing is left to do there."
_SAVED_SECONDS = 0.02  # for what was saved; what is late is told with the next prompt
_GATE_SECONDS = 0.02  # of a turn's end for the gates of its notes; the job asks them again
_NEXT = 2_500  # UTF-16 units of what notes may have, left to the prompt behind a compaction
_SENTENCE = 300  # UTF-16 units, printed before a compaction
_JOBS = 20  # the newest, which may have saved something
_SPILLED = ("search", "web")  # kinds of tools; Claude Code stores what the shell prints itself
_READER = "Read"
_WRITERS = ("", "Write", "Edit", "MultiEdit", "apply_patch", "write_file", "replace")
# Several of them under one prompt id, and sub-agents' too; other events of sub-agents do not count.
_OFTEN = (Event.TOOL_USED, Event.SUBAGENT_START, Event.SUBAGENT_END)
_SHARE = 0.75  # of a hook's time: the rest is its start, the way here and back


class UnknownClientError(WrongParameterError):
    """The hook was set up for a client that memd does not know."""

    hint = f"clients are {', '.join(DIALECTS)}"

    def __init__(self, client: str) -> None:
        super().__init__(f"memd knows no client {client}", client=client)


@dataclass(frozen=True, slots=True)
class _Received:
    """An event of a conversation, and where that takes place."""

    dialect: Dialect
    name: str
    payload: Payload
    project: Project
    settings: Settings
    messages: bool = False

    @property
    def session(self) -> str:
        """The client's own name for the conversation."""
        return self.payload.session_id


class HookMethod:
    """The handler of ``hook``, which answers a repeated event once.

    It remembers the last events by session and prompt id, with each prompt the paths of the
    memories that it brought, the memory section that each session has, how much was brought with
    notes and waits for the next prompt, and the jobs of which the person was told what they saved.
    """

    def __init__(self) -> None:
        self._events: Recent[tuple[str, str, str], None] = Recent(_REMEMBERED_EVENTS)
        self._prompts: Recent[tuple[str, str], Sequence[str]] = Recent(_REMEMBERED_EVENTS)
        self._sections: Recent[str, str] = Recent(_SESSIONS)
        self._waiting: Recent[str, int] = Recent(_SESSIONS)
        self._reported: Recent[str, None] = Recent(_REMEMBERED_EVENTS)  # jobs
        self.deliveries = delivering.MessageDeliveries()

    async def answer(
        self,
        services: Services,
        call: Call,
        *,
        client: str,
        event: str,
        payload: Any = None,
        environment: dict[str, str] | None = None,
        deadline_ms: Annotated[int, msgspec.Meta(ge=10, le=60_000)] = _PROMPT_MS,
        messages: bool = False,
    ) -> dict[str, Any] | str | None:
        """A client's hook event, answered with what that client's hook is to print.

        ``payload`` is the client's own JSON, as the hook got it; ``deadline_ms`` is how long the
        hook waits in all, its own start included. ``messages`` brings those of other agents, and
        has the session registered; the hook then tells with ``hook.printed`` what it printed.
        """
        dialect = DIALECTS.get(client)
        if dialect is None:
            raise UnknownClientError(client)
        programs, read = services.models.programs, dialects.read(dialect, event, payload)
        # Where memd asks a program as its model nothing is said: it does not learn from itself.
        if read is None or (programs and await programs.runs_below(call.caller.pid)):
            return None
        kind, facts = read
        until = services.clock.monotonic() + max(0.01, deadline_ms * _SHARE / 1000)
        caller = call.caller
        call.connection.caller = replace(caller, client=client, environment=forwarded(environment))
        if kind is Event.TOOL_ASKED:
            return await ruling.before_a_tool(services, call, dialect, event, facts, until=until)
        key = (event, facts.session_id, facts.prompt_id)
        if kind not in _OFTEN and (facts.agent_id or key in self._events):
            return None
        place = await services.store.where(facts.cwd, call.caller.environment)
        received = _Received(dialect, event, facts, *place[:2], messages=messages)
        services.visited(call, place[0], facts.session_id)
        if messages:
            await self.deliveries.heard(services, call, kind, facts, *place[:2])
        ends = kind in (Event.TURN_END, Event.COMPACTING, Event.SESSION_END)
        if ends:
            with services.priority.uncounted():  # no prompt waits for this: a due dream may begin
                sentence = await _after_turn(services, call, kind, received, until)
        if facts.prompt_id:  # an end counts once it is done: a hook that heard nothing spools it
            self._events[key] = None
        if ends:
            return sentence or None
        return await self._on(services, call, kind, received, until)

    async def _on(
        self, services: Services, call: Call, kind: Event, received: _Received, until: float
    ) -> dict[str, Any] | None:
        notice, texts, response = "", tuple[str, ...](), None
        if kind is Event.COMPACTED:
            await self._reset(services, received.payload)
        elif kind is Event.SUBAGENT_START:
            about = (received.project, received.settings, received.payload.agent_type)
            environment = call.caller.environment
            texts = (await subagents.section(services, *about, environment),)
        elif kind is Event.TOOL_USED:
            waiting = await self._delivered(services, call, received)
            texts = (waiting, await _written(services, call, received))
            await opened.by_tool(services, call, received.project, received.payload)
            response = await _spilled(services, received, until)
        elif kind is Event.SESSION_START:
            texts = await self._start(services, call, received, until)
            notice = await self._notice(services, call, received)
        elif kind is Event.PROMPT:
            waiting = await self._delivered(services, call, received)
            texts = (waiting, *await self._prompt(services, call, received, until))
            notice = await self._notice(services, call, received)
        return answer(received.dialect, received.name, *texts, notice=notice, response=response)

    async def _delivered(self, services: Services, call: Call, received: _Received) -> str:
        """Return messages for an event's agent; what they take is not left to the memories."""
        if not (received.messages and received.settings.messages.enabled):
            return ""
        used = 0 if received.payload.agent_id else self._waiting.get(received.session) or 0
        room = limits.BLOCK_CHARACTERS - used
        text = await self.deliveries.block(services, call, received.payload, room)
        if text and received.payload.prompt and not received.payload.tool_name:
            self._waiting[received.session] = used + quoting.units(text)
        return text

    async def _notice(self, services: Services, call: Call, received: _Received) -> str:
        """Return one line for the person: what was learnt, and messages that wait for them."""
        saved = await self._saved(services, received)
        wanted, client = received.messages, call.caller.client
        waiting = services.messages.notices(client, received.session) if wanted else ""
        return "; ".join(filter(None, (saved, waiting)))

    async def _start(
        self, services: Services, call: Call, received: _Received, until: float
    ) -> tuple[str, ...]:
        """Return the memory section as far as the client lacks it, notes, and what waits."""
        await self._bring_ledger_in_line(services, received.payload)
        project, settings = received.project, received.settings
        services.recall.prepare(project, settings)
        suggested = await services.suggestions.surface(
            project, settings, received.session, _START_SECONDS
        )
        environment = call.caller.environment
        loaded = await services.prompts.load(
            project,
            settings,
            room=limits.BLOCK_CHARACTERS - subagents.TAGS,
            environment=environment,
        )
        shown = section = loaded.prompt or ""
        own = received.dialect.loads_memory and project.client_dir == project.memory_dir
        if own:
            shown = await services.prompts.shared(project, settings)
        room = limits.BLOCK_CHARACTERS - _NEXT
        noted = await _noted(services, call, received, room // 2 if shown else room, until)
        if shown:
            room = room - quoting.units(noted) if noted else limits.BLOCK_CHARACTERS
            index = f"{loaded.memory_dir}/{TEAM if own else ''}{INDEX}"
            shown = subagents.fit(shown, room - subagents.TAGS, index)
            section = section if own else shown
            shown = f"{tags.OPEN}\n{shown}\n{tags.CLOSE}"
        self._sections[received.session] = section
        brought = (shown, noted, suggested)
        self._waiting[received.session] = sum(map(quoting.units, brought)) if noted else 0
        return brought

    async def _prompt(
        self, services: Services, _call: Call, received: _Received, until: float
    ) -> tuple[str, str]:
        """Return the memories that matter, and what may be worth remembering if there is time."""
        project, settings, payload = received.project, received.settings, received.payload
        seconds = max(0.0, until - services.clock.monotonic())
        prompt = Prompt(
            session=received.session,
            query=payload.prompt,
            seconds=seconds,
            parents=_parents(payload),
            index=self._sections.get(received.session, ""),
            room=limits.BLOCK_CHARACTERS - self._waiting.pop(received.session, 0),
        )
        prefetched = await services.recall.prefetch(project, settings, prompt)
        if payload.prompt_id:
            brought = [memory.path for memory in prefetched.memories]
            self._prompts[received.session, payload.prompt_id] = brought
        left = min(until - services.clock.monotonic(), _SUGGESTED_SHARE * seconds)
        suggested = await services.suggestions.surface(project, settings, received.session, left)
        return prefetched.block, suggested

    async def _saved(self, services: Services, received: _Received) -> str:
        """Return what was learnt here since the last time, in one line for the person."""
        if not (received.dialect.notices and received.settings.extract.notify):
            return ""
        began = services.clock.now() - (services.clock.monotonic() - services.started)
        results = []
        with services.clock.move_on_after(_SAVED_SECONDS), suppress(MemdError):
            for job in await services.jobs.list(received.project.memory_dir, _JOBS):
                ended = job.kind == "extract" and (job.ended or 0) >= began
                if ended and job.id not in self._reported:
                    self._reported[job.id] = None
                    results.append(job.result or {})
        return dialects.saved_line(results)

    async def _reset(self, services: Services, payload: Payload) -> None:
        # A prompt that is too long for the context is compacted before it is sent: what came
        # with that very prompt is not part of what was summed up.
        brought = self._prompts.get((payload.session_id, payload.prompt_id), ())
        self._sections.pop(payload.session_id, None)
        await services.recall.reset(payload.session_id, brought)

    async def _bring_ledger_in_line(self, services: Services, payload: Payload) -> None:
        """Let the ledger say what the session has in its context now."""
        if payload.source in {"compact", "clear"}:
            await self._reset(services, payload)
        elif payload.source in {"fork", "resume"}:
            since = payload.seconds_since_last_response
            answered = None if since is None else services.clock.now() - since
            await services.recall.begin(payload.session_id, _parents(payload, answered))


def _parents(payload: Payload, answered: float | None = None) -> Parents:
    return partial(parents, payload.transcript_path, payload.session_id, answered)


async def _after_turn(
    services: Services, call: Call, kind: Event, received: _Received, until: float
) -> str:
    """See to what was said, and return what is printed."""
    project, settings, cwd = received.project, received.settings, received.payload.cwd
    path, session, sentence = received.payload.transcript_path, received.session, ""
    if path and kind is Event.COMPACTING:
        sentence = await _before_compaction(services, call, received, until)
    if path:
        about = {"cwd": cwd, "session": session, "transcript_path": path}
        with suppress(TranscriptRefusedError):  # a session that said nothing has none yet
            await work.submit(services, call, project, settings, about)
    if path and kind is Event.TURN_END:
        request = _about(call, received, turn_ended=True)
        with suppress(MemdError):
            await notes.submit(services, request, seconds=_GATE_SECONDS)
    if kind is Event.SESSION_END:
        await prompting.over(services, call, _about(call, received))
    return sentence


async def _before_compaction(
    services: Services, call: Call, received: _Received, until: float
) -> str:
    """Have the notes written from the transcript, and return a sentence for who wants one."""
    request = _about(call, received, force=True)
    try:
        with services.clock.move_on_after(until - services.clock.monotonic()):
            path = (await services.session_notes.write_locally(request)).path
            sentence = f"The notes of this conversation are in {path}; they outlast the compaction."
            wanted = path and request.settings.notes.precompact
            return sentence if wanted and quoting.units(sentence) <= _SENTENCE else ""
    except MemdError:  # a job is tried again where that helps, and its row says what is wrong
        with suppress(MemdError):
            await notes.submit(services, request)
    return ""


async def _noted(
    services: Services, call: Call, received: _Received, room: int, until: float
) -> str:
    """Return the session's notes if its context was compacted, within so many UTF-16 units."""
    resumed = received.payload.source == "resume" and received.dialect.late_boundary
    if not resumed and received.payload.source != "compact":
        return ""
    request = _about(call, received)
    seconds = (until - services.clock.monotonic()) / 2  # the rest is for the file
    with suppress(MemdError):
        return await services.session_notes.block(request, room, seconds, resumed=resumed)
    return ""


def _about(call: Call, received: _Received, **given: bool) -> NotesRequest:
    """Return a request about the notes of an event's session."""
    path, session = received.payload.transcript_path, received.session
    return notes.about(
        call, received.project, received.settings, session, transcript_path=path, **given
    )


async def _written(services: Services, call: Call, received: _Received) -> str:
    """Take in the memories that a tool has written, and return what the assistant is told.

    They are in its context now, so no prompt brings them to it again.
    """
    project, session = received.project, received.session
    directory = project.memory_dir
    writes = received.payload.tool_name in _WRITERS
    paths = dialects.named_memories(received.payload, directory) if writes else frozenset[str]()
    if not (paths and project.enabled and received.settings.enabled):
        return ""
    reason = "written by the assistant itself"
    client = call.caller.client
    by = Provenance(Actor.ASSISTANT, client, session, "", reason, "assistant")
    with suppress(MemdError):  # a secret in a description, say: then it has no line
        made = await services.store.attribute(directory, paths, by)
        await services.recall.given(session, directory, paths)
        if made.change and not paths <= {*INDEXES}:
            return f"{tags.OPEN}\n{_LINE_MADE}\n{tags.CLOSE}"
    return ""


async def _spilled(services: Services, received: _Received, until: float) -> Any:
    """Return what a tool gave with its longest text stored, ``None`` where it stays as it is."""
    payload, settings, name = received.payload, received.settings, received.payload.tool_name
    wanted = settings.context.hook_spill and received.dialect.replaces_results
    known = tool_kind(name) in _SPILLED or name.startswith("mcp__")
    if not (wanted and known and received.project.enabled) or payload.agent_id:
        return None
    text = dialects.longest_text(payload.tool_response)
    request = ContextRequest(received.project, settings, received.session, reader=_READER)
    in_time = services.clock.move_on_after(until - services.clock.monotonic())
    with suppress(MemdError), in_time:
        result = await services.contexts.spill(
            request, tool=name, tool_use_id=payload.tool_use_id, content=text
        )
        if result.content is not None:
            return dialects.with_text(payload.tool_response, text, result.content)
    return None


def rows() -> tuple[Method[..., Any], ...]:
    """Return the rows of ``hook`` and ``hook.printed`` with a memory of their own."""
    hook = HookMethod()
    answered = method("hook", "write", UnknownClientError)(hook.answer)
    return answered, delivering.printed_row(hook.deliveries)
