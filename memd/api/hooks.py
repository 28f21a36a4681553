"""hook: take a client's hook event unchanged, and return what that client's hook is to print.

All client logic lives here and in ``dialects``, none in the hook file, so an upgrade of memd needs
no new set-up.

- The start of a session adds the memory section where the client does not load it itself, and
  otherwise only the section about the team's directory, which no client loads.
- A prompt adds the relevant memories and open suggestions, at most 9,500 characters.
- A sub-agent's start adds its memory where the settings name a scope and its client loads none.
- The end of a turn, a compaction and the end of a session print nothing: anything else would loop
  the turn. The one exception is a sentence before a compaction, where the settings ask for it.
- A context that was compacted gets the session's notes. The texts added then and with the prompt
  that follows have at most 9,500 characters together: one request has both.
- What a session was given is in its context until the client says that it was compacted or
  cleared: a session that ended may be resumed, and a compaction that was announced may fail.
- A memory that the assistant writes with its own tools gets its index line at once.
- A large result of a search, the web or an MCP server is stored where the settings ask for it, but
  not that of a sub-agent, which may have no tool to read it.
- An event seen twice under one prompt id is answered once.
- Where memory is off for the client, an event does nothing and adds nothing.
- Messages of other agents come with a prompt and after a tool (``delivering``).
"""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Annotated, Any

import msgspec
from anyio import to_thread
from msgspec.structs import replace

from memd.api import delivering, dialects, ruling, subagents, tool_uses, turn_ends
from memd.api.delivering import Printed
from memd.api.dialects import DIALECTS, Event, Payload, answer
from memd.api.received import Received
from memd.api.services import Services
from memd.base import limits
from memd.base.errors import Invalid, MemdError
from memd.base.names import INDEX, TEAM_INDEX
from memd.base.recent import Recent
from memd.methods.method import forwarded, method
from memd.recall.service import Prompt
from memd.rpc.call import Call
from memd.state.ledger import Parents
from memd.text import quoting, tags
from memd.transcripts.sessions import parents

_REMEMBERED_EVENTS = 1024  # entries of each record by event, prompt or job
_SESSIONS = 64  # sessions whose memory section is held in memory, some 30 KB each
_DEADLINE_MS = 200  # how long a hook waits unless it names a time
_START_SECONDS = 0.2  # for suggestions at the start of a session
_SUGGESTED_SHARE = 0.2  # of a prompt's time for suggestions, if that much is left
_SAVED_SECONDS = 0.02  # to list saved memories; those missed are shown with the next prompt
_NEXT_PROMPT_UNITS = 2_500  # UTF-16 units that notes leave to the prompt after a compaction
_JOBS_SEARCHED = 20  # the newest jobs, which may have saved something
# Events that come several times under one prompt id, and that count for sub-agents too.
_REPEATABLE = (Event.TOOL_USED, Event.SUBAGENT_START, Event.SUBAGENT_END)
_SHARE = 0.75  # of a hook's time for memd; the rest is for its start and the connection


class Hooks:
    """Answers the events of hooks, a repeated one once, and remembers sessions."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._events: Recent[tuple[str, str, str], None] = Recent(_REMEMBERED_EVENTS)
        # The memories that a prompt of a session added.
        self._prompts: Recent[tuple[str, str], Sequence[str]] = Recent(_REMEMBERED_EVENTS)
        self._sections: Recent[str, str] = Recent(_SESSIONS)  # memory sections
        self._used_units: Recent[str, int] = Recent(_SESSIONS)  # of the next prompt's room
        self._reported: Recent[str, None] = Recent(_REMEMBERED_EVENTS)  # jobs shown to the person
        self._deliveries = delivering.MessageDeliveries()

    @method("hook", "write")
    async def answer(
        self,
        call: Call,
        *,
        client: str,
        event: str,
        payload: Any = None,
        environment: dict[str, str] | None = None,
        deadline_ms: Annotated[int, msgspec.Meta(ge=10, le=60_000)] = _DEADLINE_MS,
        messages: bool = False,
    ) -> dict[str, Any] | str | None:
        """A client's hook event, answered with what that client's hook is to print, or null.

        ``payload`` is the client's own JSON, as the hook got it; ``deadline_ms`` is how long the
        hook waits in all, its own start included. With ``messages`` the session is registered as an
        agent and gets its messages; the hook then calls ``hook.printed`` when it has printed them.
        """
        dialect = DIALECTS.get(client)
        if dialect is None:
            raise Invalid(
                f"memd knows no client {client}",
                hint=f"clients are {', '.join(DIALECTS)}",
                client=client,
            )
        known_event = dialects.read(dialect, event, payload)
        if known_event is None:
            return None
        programs = self._services.models.programs
        if programs and await programs.runs_below(call.caller.pid):
            return None  # memd itself runs the caller as its model: it gets no memories
        kind, facts = known_event
        until = self._services.clock.monotonic() + max(0.01, deadline_ms * _SHARE / 1000)
        caller = call.caller
        call.connection.caller = replace(caller, client=client, environment=forwarded(environment))
        if kind is Event.TOOL_ASKED:
            return await ruling.before_a_tool(
                self._services, call, dialect, event, facts, until=until
            )
        project, settings, _ = await self._services.callers.find(call, facts.cwd)
        if not project.enabled:
            return None
        received = Received(dialect, event, facts, project, settings, messages=messages)
        return await self._answer_event(call, kind, received, until)

    async def _answer_event(
        self, call: Call, kind: Event, received: Received, until: float
    ) -> dict[str, Any] | str | None:
        """Return what a hook prints for an event of a conversation, once for each prompt id."""
        facts, project = received.payload, received.project
        key = (received.name, facts.session_id, facts.prompt_id)
        if kind not in _REPEATABLE and (facts.agent_id or key in self._events):
            return None  # of a sub-agent, or answered before
        self._services.callers.visited(call, project, facts.session_id)
        if received.messages:
            about = (facts, project, received.settings)
            await self._deliveries.note_event(self._services, call, kind, *about)
        ends = kind in (Event.TURN_END, Event.COMPACTING, Event.SESSION_END)
        if ends:
            with (
                self._services.priority.uncounted()
            ):  # no prompt waits for this: a due dream may begin
                sentence = await turn_ends.after_turn(self._services, call, kind, received, until)
        if facts.prompt_id:  # only now: an end whose hook got no answer is sent once more
            self._events[key] = None
        if ends:
            return sentence or None
        return await self._output(call, kind, received, until)

    async def _output(
        self, call: Call, kind: Event, received: Received, until: float
    ) -> dict[str, Any] | None:
        """Return what a hook prints for an event that adds texts, or ``None`` for nothing."""
        notice, texts, response = "", tuple[str, ...](), None
        if kind is Event.COMPACTED:
            await self._reset(received.payload)
        elif kind is Event.SUBAGENT_START:
            about = (received.project, received.settings, received.payload.agent_type)
            environment = call.caller.environment
            texts = (await subagents.section(self._services, *about, environment),)
        elif kind is Event.TOOL_USED:
            messages = await self._deliver(call, received)
            texts = (messages, await tool_uses.take_in_written(self._services, call, received))
            response = await tool_uses.spill_result(self._services, received, until)
        elif kind is Event.SESSION_START:
            texts = await self._start_texts(call, received, until)
            notice = await self._saved_line(received)
        elif kind is Event.PROMPT:
            messages = await self._deliver(call, received)
            texts = (messages, *await self._prompt_texts(received, until))
            notice = await self._saved_line(received)
        return answer(received.dialect, received.name, *texts, notice=notice, response=response)

    async def _deliver(self, call: Call, received: Received) -> str:
        """Return the agent's unread messages; with a prompt, its memories get so much less room."""
        if not (received.messages and received.settings.messages.enabled):
            return ""
        used = 0 if received.payload.agent_id else self._used_units.get(received.session) or 0
        room = limits.BLOCK_CHARACTERS - used
        text = await self._deliveries.block(self._services, call, received.payload, room)
        if text and received.payload.prompt and not received.payload.tool_name:
            self._used_units[received.session] = used + quoting.units(text)
        return text

    async def _start_texts(self, call: Call, received: Received, until: float) -> tuple[str, ...]:
        """Return memory section (the team's part if the client loads it), notes and suggestions."""
        await self._update_ledger(received.payload)
        project, settings = received.project, received.settings
        suggested = await self._services.suggestions.surface(
            project, settings, received.session, _START_SECONDS
        )
        load = partial(
            self._services.prompts.load,
            project,
            settings,
            room=limits.BLOCK_CHARACTERS - subagents.TAGS,
            environment=call.caller.environment,
        )
        loaded = await to_thread.run_sync(load)
        shown = section = loaded.prompt or ""  # what is printed, and what the session then has
        client_loads = received.dialect.loads_memory and project.client_dir == project.memory_dir
        if client_loads:
            shown = await to_thread.run_sync(self._services.prompts.shared, project, settings)
        room = limits.BLOCK_CHARACTERS - _NEXT_PROMPT_UNITS
        notes_room = room // 2 if shown else room
        noted = await turn_ends.compacted_notes(self._services, call, received, notes_room, until)
        if shown:
            room = room - quoting.units(noted) if noted else limits.BLOCK_CHARACTERS
            index = TEAM_INDEX if client_loads else INDEX
            index_path = f"{loaded.memory_dir}/{index}"
            shown = subagents.fit(shown, room - subagents.TAGS, index_path)
            section = section if client_loads else shown
            shown = f"{tags.OPEN}\n{shown}\n{tags.CLOSE}"
        self._sections[received.session] = section
        brought = (shown, noted, suggested)
        self._used_units[received.session] = sum(map(quoting.units, brought)) if noted else 0
        return brought

    async def _prompt_texts(self, received: Received, until: float) -> tuple[str, str]:
        """Return the block of relevant memories, and the suggestions that fit into the time."""
        project, settings, payload = received.project, received.settings, received.payload
        seconds = max(0.0, until - self._services.clock.monotonic())
        prompt = Prompt(
            session=received.session,
            query=payload.prompt,
            seconds=seconds,
            parents=_parents(payload),
            index=self._sections.get(received.session, ""),
            room=limits.BLOCK_CHARACTERS - self._used_units.pop(received.session, 0),
        )
        prefetched = await self._services.recall.prefetch(lambda: (project, settings), prompt)
        if payload.prompt_id:
            brought = [memory.path for memory in prefetched.memories]
            self._prompts[received.session, payload.prompt_id] = brought
        seconds_left = min(until - self._services.clock.monotonic(), _SUGGESTED_SHARE * seconds)
        suggest = self._services.suggestions.surface
        return prefetched.block, await suggest(project, settings, received.session, seconds_left)

    async def _saved_line(self, received: Received) -> str:
        """Return one line on memories saved here and not shown yet; "" for none or if unwanted."""
        if not (received.dialect.notices and received.settings.extract.notify):
            return ""
        began = self._services.clock.now() - (
            self._services.clock.monotonic() - self._services.started
        )
        results = []
        with self._services.clock.move_on_after(_SAVED_SECONDS), suppress(MemdError):
            for job in await self._services.jobs.list(received.project.memory_dir, _JOBS_SEARCHED):
                has_ended = job.kind == "extract" and (job.ended or 0) >= began
                if has_ended and job.id not in self._reported:
                    self._reported[job.id] = None
                    results.append(job.result or {})
        return dialects.saved_line(results)

    async def _reset(self, payload: Payload) -> None:
        """Forget what a session was given, except with its last prompt: it may not be sent yet."""
        brought = self._prompts.get((payload.session_id, payload.prompt_id), ())
        self._sections.pop(payload.session_id, None)
        await self._services.recall.reset(payload.session_id, brought)

    async def _update_ledger(self, payload: Payload) -> None:
        """Update the ledger to what the session has in its context at its start."""
        if payload.source in {"compact", "clear"}:
            await self._reset(payload)
        elif payload.source in {"fork", "resume"}:
            since = payload.seconds_since_last_response
            last_reply = None if since is None else self._services.clock.now() - since
            await self._services.recall.begin(payload.session_id, _parents(payload, last_reply))

    @method("hook.printed", "write")
    async def printed(self, call: Call) -> Printed:
        """Note that a hook has printed the answer that came on this connection.

        Messages in it count as read at the session's next event; otherwise they come again.
        """
        return Printed(messages=self._deliveries.printed(call.connection))


def _parents(payload: Payload, last_reply: float | None = None) -> Parents:
    """Return a function that finds the sessions from which an event's session was forked."""
    return partial(parents, payload.transcript_path, payload.session_id, last_reply)
