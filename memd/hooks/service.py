"""hook: take a client's hook event unchanged, and return what that client's hook is to print.

All client logic lives here and in ``dialects``, none in the hook file, so an upgrade of memd needs
no new set-up.

- The start of a session adds the memory section where the client does not load it itself, and
  otherwise only the section about the team's directory, which no client loads; and the person's own
  rules, which count as given. A session that goes on, resumed or forked, has them in its context.
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
- Messages of other agents come with a prompt and after a tool (``deliveries``).
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Annotated, Any

import msgspec
from anyio import to_thread
from msgspec.structs import replace

from memd.base import limits
from memd.base.client_events import EventKind
from memd.base.clock import Clock
from memd.base.errors import Invalid
from memd.base.recent import Recent
from memd.hooks import dialects
from memd.hooks.deliveries import MessageDeliveries, Printed
from memd.hooks.dialects import DIALECTS, Payload, answer
from memd.hooks.ends import TurnEnds
from memd.hooks.event import HookEvent
from memd.hooks.notices import Notices
from memd.hooks.sections import Sections, fit, tagged
from memd.hooks.tools import ToolUses
from memd.jobs.priority import RequestPriority
from memd.methods.callers import Callers
from memd.methods.method import forwarded, method
from memd.recall.service import Prompt, Recall
from memd.review.block import SuggestionBlocks
from memd.rpc.call import Call
from memd.state.ledger import Parents
from memd.text import quoting
from memd.transcripts.sessions import parents

_REMEMBERED_EVENTS = 1024  # entries of each record by event or prompt
_SESSIONS = 64  # sessions whose memory section is held in memory, some 30 KB each
_DEADLINE_MS = 200  # how long a hook waits unless it names a time
_START_SECONDS = 0.2  # for suggestions at the start of a session
_SUGGESTED_SHARE = 0.2  # of a prompt's time for suggestions, if that much is left
_NEXT_PROMPT_UNITS = 2_500  # UTF-16 units that notes leave to the prompt after a compaction
# Events that come several times under one prompt id, and that count for sub-agents too.
_REPEATABLE = (EventKind.TOOL_USED, EventKind.SUBAGENT_START, EventKind.SUBAGENT_END)
_SHARE = 0.75  # of a hook's time for memd; the rest is for its start and the connection


class HookAnswers:
    """Answers the events of hooks, a repeated one once, and remembers sessions.

    ``is_model`` returns whether memd itself runs a process as its model.
    """

    def __init__(
        self,
        callers: Callers,
        clock: Clock,
        priority: RequestPriority,
        *,
        recall: Recall,
        suggestions: SuggestionBlocks,
        sections: Sections,
        tools: ToolUses,
        ends: TurnEnds,
        deliveries: MessageDeliveries,
        notices: Notices,
        is_model: Callable[[int], Awaitable[bool]],
    ) -> None:
        self._callers = callers
        self._clock = clock
        self._priority = priority
        self._recall = recall
        self._suggestions = suggestions
        self._sections = sections
        self._tools = tools
        self._turn_ends = ends
        self._deliveries = deliveries
        self._notices = notices
        self._is_model = is_model
        self._events: Recent[tuple[str, str, str], None] = Recent(_REMEMBERED_EVENTS)
        # The memories that a prompt of a session added.
        self._prompts: Recent[tuple[str, str], Sequence[str]] = Recent(_REMEMBERED_EVENTS)
        self._texts: Recent[str, str] = Recent(_SESSIONS)  # memory sections
        self._used_units: Recent[str, int] = Recent(_SESSIONS)  # of the next prompt's room

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
        if await self._is_model(call.caller.pid):
            return None  # memd itself runs the caller as its model: it gets no memories
        kind, facts = known_event
        until = self._clock.monotonic() + max(0.01, deadline_ms * _SHARE / 1000)
        caller = call.caller
        call.connection.caller = replace(caller, client=client, environment=forwarded(environment))
        if kind is EventKind.TOOL_ASKED:
            return await self._tools.before(call, dialect, event, facts, until=until)
        project, settings, _ = await to_thread.run_sync(self._callers.where, call, facts.cwd)
        if not project.enabled:
            return None
        return await self._answer_event(
            HookEvent(
                call=call,
                dialect=dialect,
                kind=kind,
                name=event,
                payload=facts,
                project=project,
                settings=settings,
                until=until,
                messages=messages,
            )
        )

    async def _answer_event(self, event: HookEvent) -> dict[str, Any] | str | None:
        """Return what a hook prints for an event of a conversation, once for each prompt id."""
        kind, facts = event.kind, event.payload
        key = (event.name, facts.session_id, facts.prompt_id)
        if kind not in _REPEATABLE and (facts.agent_id or key in self._events):
            return None  # of a sub-agent, or answered before
        self._callers.visited(event.call, event.project, event.session)
        if event.messages:
            await self._deliveries.note_event(event)
        ends = kind in (EventKind.TURN_END, EventKind.COMPACTING, EventKind.SESSION_END)
        if ends:
            with self._priority.uncounted():  # no prompt waits for this: a due dream may begin
                sentence = await self._turn_ends.after(event)
        if facts.prompt_id:  # only now: an end whose hook got no answer is sent once more
            self._events[key] = None
        return sentence or None if ends else await self._output(event)

    async def _output(self, event: HookEvent) -> dict[str, Any] | None:
        """Return what a hook prints for an event that adds texts, or ``None`` for nothing."""
        kind, notice, texts, response = event.kind, "", tuple[str, ...](), None
        if kind is EventKind.COMPACTED:
            await self._reset(event.payload)
        elif kind is EventKind.SUBAGENT_START:
            texts = (await to_thread.run_sync(self._sections.of_sub_agent, event),)
        elif kind is EventKind.TOOL_USED:
            texts = (await self._deliver(event), await self._tools.take_in_written(event))
            response = await self._tools.spill_result(event)
        elif kind is EventKind.SESSION_START:
            texts = await self._start_texts(event)
            notice = await self._notices.line(event)
        elif kind is EventKind.PROMPT:
            texts = (await self._deliver(event), *await self._prompt_texts(event))
            notice = await self._notices.line(event)
        return answer(event.dialect, event.name, *texts, notice=notice, response=response)

    async def _deliver(self, event: HookEvent) -> str:
        """Return the agent's unread messages; with a prompt, its memories get so much less room."""
        if not (event.messages and event.settings.messages.enabled):
            return ""
        used = 0 if event.payload.agent_id else self._used_units.get(event.session) or 0
        text = await self._deliveries.block(event, limits.BLOCK_CHARACTERS - used)
        if text and event.payload.prompt and not event.payload.tool_name:
            self._used_units[event.session] = used + quoting.units(text)
        return text

    async def _start_texts(self, event: HookEvent) -> tuple[str, ...]:
        """Return memory section (the team's part if the client loads it), notes and suggestions."""
        await self._update_ledger(event.payload)
        suggested = await self._suggestions.surface(
            event.project, event.settings, event.session, _START_SECONDS
        )
        room = limits.BLOCK_CHARACTERS - _NEXT_PROMPT_UNITS
        is_compacted = event.payload.source == "compact"  # then the notes need room as well
        rules_room = room // 3 if is_compacted else room
        section = await to_thread.run_sync(self._sections.of_session, event, rules_room)
        rules = section.rules
        room -= quoting.units(rules.text)
        notes_room = room // 2 if section.text else room
        noted = await self._turn_ends.compacted_notes(event, notes_room)
        if noted:
            room -= quoting.units(noted)
        else:
            room = limits.BLOCK_CHARACTERS - quoting.units(rules.text)
        shown = fit(section.text, section.index, room)
        self._texts[event.session] = shown if section.whole is None else section.whole
        texts = "\n\n".join(filter(None, (shown, rules.text)))
        brought = (tagged(texts) if texts else "", noted, suggested)
        self._used_units[event.session] = sum(map(quoting.units, brought)) if noted else 0
        return brought

    async def _prompt_texts(self, event: HookEvent) -> tuple[str, str]:
        """Return the block of relevant memories, and the suggestions that fit into the time."""
        project, settings, payload = event.project, event.settings, event.payload
        seconds = max(0.0, event.until - self._clock.monotonic())
        prompt = Prompt(
            session=event.session,
            query=payload.prompt,
            seconds=seconds,
            parents=_parents(payload),
            index=self._texts.get(event.session, ""),
            room=limits.BLOCK_CHARACTERS - self._used_units.pop(event.session, 0),
        )
        prefetched = await self._recall.prefetch(lambda: (project, settings, ()), prompt)
        if payload.prompt_id:
            brought = [memory.path for memory in prefetched.memories]
            self._prompts[event.session, payload.prompt_id] = brought
        seconds_left = min(event.until - self._clock.monotonic(), _SUGGESTED_SHARE * seconds)
        suggest = self._suggestions.surface
        return prefetched.block, await suggest(project, settings, event.session, seconds_left)

    async def _reset(self, payload: Payload) -> None:
        """Forget what a session was given, except with its last prompt: it may not be sent yet."""
        brought = self._prompts.get((payload.session_id, payload.prompt_id), ())
        self._texts.pop(payload.session_id, None)
        await self._recall.reset(payload.session_id, brought)

    async def _update_ledger(self, payload: Payload) -> None:
        """Update the ledger to what the session has in its context at its start."""
        if payload.source in {"compact", "clear"}:
            await self._reset(payload)
        elif payload.source in {"fork", "resume"}:
            since = payload.seconds_since_last_response
            last_reply = None if since is None else self._clock.now() - since
            await self._recall.begin(payload.session_id, _parents(payload, last_reply))

    @method("hook.printed", "write")
    async def printed(self, call: Call) -> Printed:
        """Note that a hook has printed the answer that came on this connection.

        Messages in it count as read at the session's next event; otherwise they come again.
        """
        return Printed(messages=self._deliveries.printed(call.connection))


def _parents(payload: Payload, last_reply: float | None = None) -> Parents:
    """Return a function that finds the sessions from which an event's session was forked."""
    return partial(parents, payload.transcript_path, payload.session_id, last_reply)
