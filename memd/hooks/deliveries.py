"""Messages in a client's hook: the session is registered as an agent and gets its unread messages.

- This happens only where the set-up was run with ``--messages``: the hook then says so.
- A session is an agent. A sub-agent is a child of its session and has a mailbox of its own.
- Messages that one event delivered count as read at the session's next event. The end of a turn is
  such an event and delivers none itself. When a session ends or begins anew, messages that do not
  yet count as read are delivered again.
- While the session's client runs, only processes above or below it get its messages, end its agents
  or register it again.
- A hook says when it has printed. Until then, while it is connected and for some seconds, no other
  hook of the same agent is given messages: clients run the hooks of parallel tool calls at the same
  time.
"""

import weakref
from collections.abc import Callable
from contextlib import suppress

from anyio import to_thread
from msgspec.structs import replace

from memd.base.agents import Agent, SystemProcess
from memd.base.client_events import EventKind
from memd.base.clock import Clock
from memd.base.errors import Conflict, MemdError
from memd.base.recent import Recent
from memd.hooks.event import HookEvent
from memd.messages.service import Messages, ShownBlock, name_from
from memd.messages.values import Registration
from memd.methods.method import Result
from memd.rpc.call import Connection

_AGENTS = 1024  # whose hooks that have not printed are remembered
_PRINTING_SECONDS = 10.0  # for a hook to print; one that hangs would block all later messages
_NAME_ATTEMPTS = 3  # another agent may take the free name meanwhile
_MAX_ANCESTORS = 16  # of a hook, among which its client is searched
# Programs that clients run their hooks with.
_SHELLS = frozenset(
    ("sh", "bash", "dash", "zsh", "fish", "ksh", "mksh", "ash", "busybox", "csh", "tcsh", "env")
)
AgentKey = tuple[str, str, str]  # client, session, sub-agent


class Printed(Result):
    """Whether the printed answer had messages in it."""

    messages: bool


class MessageDeliveries:
    """The messages that hooks were given and have not printed yet."""

    def __init__(self, messages: Messages, clock: Clock) -> None:
        self._messages = messages
        self._clock = clock
        # What each connected hook was given: the agent, and the block of its messages.
        self._given: weakref.WeakKeyDictionary[Connection, tuple[AgentKey, ShownBlock]]
        self._given = weakref.WeakKeyDictionary()
        # By agent the hook that has not printed yet, and until when other hooks wait for it.
        self._printing: Recent[AgentKey, tuple[weakref.ref[Connection], float]] = Recent(_AGENTS)

    async def note_event(self, event: HookEvent) -> None:
        """Register the agent of an event, and mark what its last event printed as read.

        An event that ends a session or a sub-agent ends its agent instead. Does nothing where
        messages are off, the event names no session, or an unrelated process sends its end.
        """
        kind, payload = event.kind, event.payload
        if not (event.settings.messages.enabled and payload.session_id):
            return
        messages, client = self._messages, event.client
        session, child = payload.session_id, payload.agent_id
        begins = kind is EventKind.SESSION_START and payload.source != "compact"
        ends = kind in (EventKind.SESSION_END, EventKind.SUBAGENT_END)
        if (begins or ends) and await self._is_unrelated(event):
            return
        with suppress(MemdError):  # too many agents, for example: the hook does its other work
            if kind is EventKind.SESSION_END:
                await messages.requeue_session(client, session)
            elif kind is EventKind.SUBAGENT_END:
                agent = messages.register.by_session(client, session, child)
                if child and agent is not None:
                    await messages.next_event(client, session, child)
                    await messages.end(agent)
            elif kind in (EventKind.TURN_END, EventKind.COMPACTING, EventKind.COMPACTED):
                await messages.next_event(client, session)
            else:
                if begins:
                    await messages.requeue_session(client, session)
                await self._register(event)
            if kind is EventKind.PROMPT:
                messages.prompted(client, session)

    async def block(self, event: HookEvent, room: int) -> str:
        """Return the unread messages of an event's agent as one text, "" where there are none.

        The text has at most ``room`` UTF-16 units. It is "" too for a process that is unrelated to
        the session's, and while another hook of the agent has messages that it has not printed.
        """
        connection, messages = event.call.connection, self._messages
        key = (event.client, event.session, event.payload.agent_id)
        if not messages.waiting(*key):
            return ""
        if await self._is_unrelated(event):
            return ""
        now = self._clock.monotonic()
        reference, until = self._printing.get(key, (None, 0.0))
        other_hook = reference() if reference else None
        is_connected = other_hook is not None and other_hook.is_open
        if is_connected and now < until:
            return ""
        claim = self._printing[key] = (weakref.ref(connection), now + _PRINTING_SECONDS)
        shown = None
        try:
            with suppress(MemdError):
                shown = await messages.deliver(*key, room=room)
            return shown.text if shown else ""
        finally:
            if shown:
                self._given[connection] = (key, shown)
            elif self._printing.get(key) is claim:
                self._printing.pop(key, None)

    def printed(self, connection: Connection) -> bool:
        """Note that the hook of a connection has printed; say whether it had messages to print."""
        given = self._given.pop(connection, None)
        if given is not None:
            key, shown = given
            self._printing.pop(key, None)
            shown.printed = True
        return given is not None

    async def _is_unrelated(self, event: HookEvent) -> bool:
        """Say whether a session's process runs and is neither above nor below the calling process.

        Any program may name a session, but its client's hooks are children of the client.
        """
        register = self._messages.register
        agent = register.by_session(event.client, event.session)
        if agent is None:
            return False
        return await to_thread.run_sync(register.is_anothers, agent, event.call.caller.pid)

    async def _register(self, event: HookEvent) -> None:
        """Register an event's session and its sub-agent, and note that they are active.

        A registered session is registered again when it begins anew. A sub-agent is registered only
        if the event names its type or a tool was used.
        """
        register, kind, payload = self._messages.register, event.kind, event.payload
        client, session, child = event.client, event.session, payload.agent_id
        agent = register.by_session(client, session)
        if agent is None or (kind is EventKind.SESSION_START and payload.source != "compact"):
            pid = await to_thread.run_sync(_client_of, register.find, event.call.caller.pid)
            registration = Registration(
                event.project.root,
                event.project.memory_dir,
                "" if agent else payload.session_title,
                client=client,
                kind="session",
                session=session,
                pid=pid,
                transcript=payload.transcript_path,
            )
            agent = await self._register_free_name(registration)
        if agent is None:
            return
        register.touch(agent.id, turn=True)
        if not child:
            return
        sub_agent = register.by_session(client, session, child)
        if sub_agent is None and (payload.agent_type or kind is EventKind.TOOL_USED):
            registration = Registration(
                event.project.root,
                event.project.memory_dir,
                payload.agent_type or "agent",
                client=client,
                kind="sub-agent",
                session=session,
                child=child,
                parent=agent.name,
            )
            sub_agent = await self._register_free_name(registration)
        if sub_agent is not None:
            register.touch(sub_agent.id, turn=True)

    async def _register_free_name(self, wanted: Registration) -> Agent | None:
        """Register an agent under the wanted name, or a similar one that is free.

        Return the agent, or ``None`` where every name that was tried had been taken.
        """
        default_name = f"{wanted.client}-{wanted.session[:4]}"
        name = name_from(wanted.name, default_name) if wanted.name else ""
        for _ in range(_NAME_ATTEMPTS):
            try:
                await self._messages.register_agent(replace(wanted, name=name))
            except Conflict as error:
                name = str(error.facts["free"])
            else:
                break
        register = self._messages.register
        return register.by_session(wanted.client, wanted.session, wanted.child)


def _client_of(find: Callable[[int], SystemProcess | None], pid: int) -> int:
    """Return the process for which a hook runs: its nearest ancestor that is no shell, or 0."""
    process = find(pid)
    for _ in range(_MAX_ANCESTORS):
        process = find(process.parent) if process else None
        if process is None or process.pid <= 1:  # 1 is the system's first process, no client
            return 0
        if process.name not in _SHELLS:
            return process.pid
    return 0
