"""What a client's hook does for messages: its session is registered and gets what waits for it.

- It happens only where the set-up was run with ``--messages``: the hook says so.
- A session is the agent; a sub-agent is a child of its session and has a mailbox of its own.
- What an event was given is read with the session's next one. The end of a turn is such an event
  and brings nothing itself. A session that ends or begins anew has the rest delivered again.
- Where the session's client runs, its events come from processes of its family: nobody else gets
  its messages, ends its agents or registers it anew.
- A hook says when it has printed. Until then, while it is connected and for some seconds, no other
  hook of the same agent is given anything: clients run the hooks of parallel tool calls at the same
  time.
"""

import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from anyio import to_thread

from memd.api.dialects import Event, Payload
from memd.api.method import Method, Result, method
from memd.api.services import Services
from memd.core import limits
from memd.core.agents import Agent, SystemProcess
from memd.core.errors import MemdError
from memd.core.recent import Recent
from memd.core.settings import Settings
from memd.core.values import Project
from memd.messages.errors import AgentNameTakenError
from memd.messages.service import name_from
from memd.messages.values import Registration
from memd.rpc.connection import Call, Connection

_AGENTS = 1024
_PRINTING_SECONDS = 10.0  # for a hook to print; one that hangs would hold up all that comes
_NAMES = 3  # attempts: somebody else may take the free name meanwhile
_ANCESTORS = 16
# What clients run their hooks with.
_SHELLS = (
    "sh",
    "bash",
    "dash",
    "zsh",
    "fish",
    "ksh",
    "mksh",
    "ash",
    "busybox",
    "csh",
    "tcsh",
    "env",
)
AgentKey = tuple[str, str, str]  # client, session, sub-agent


class Printed(Result):
    """Whether messages were in what the hook printed."""

    messages: bool


class MessageDeliveries:
    """What hooks were given and have not printed yet."""

    def __init__(self) -> None:
        self._receipts: weakref.WeakKeyDictionary[Connection, tuple[AgentKey, int]]
        self._receipts = weakref.WeakKeyDictionary()
        self._open: Recent[AgentKey, tuple[weakref.ref[Connection], float]] = Recent(_AGENTS)

    async def heard(  # noqa: PLR0917 - an event, and where it happens
        self,
        services: Services,
        call: Call,
        kind: Event,
        payload: Payload,
        project: Project,
        settings: Settings,
    ) -> None:
        """Register who an event is of, and take what was printed before as read."""
        if not (settings.messages.enabled and payload.session_id):
            return
        messages, client = services.messages, call.caller.client
        session, child = payload.session_id, payload.agent_id
        begins = kind is Event.SESSION_START and payload.source != "compact"
        ends = kind in (Event.SESSION_END, Event.SUBAGENT_END)
        if (begins or ends) and await _is_strangers(services, call, session):
            return
        with suppress(MemdError):  # 500 agents, say: the hook does the rest of its work
            if kind is Event.SESSION_END:
                await messages.over(client, session)
            elif kind is Event.SUBAGENT_END:
                agent = messages.register.by_session(client, session, child)
                if child and agent is not None:
                    await messages.next_event(client, session, child)
                    await messages.end(agent)
            elif kind in (Event.TURN_END, Event.COMPACTING, Event.COMPACTED):
                await messages.next_event(client, session)
            else:
                if begins:
                    await messages.over(client, session)
                await _register(services, call, kind, payload, project)
            if kind is Event.PROMPT:
                messages.prompted(client, session)

    async def block(
        self, services: Services, call: Call, payload: Payload, room: int = limits.BLOCK_CHARACTERS
    ) -> str:
        """Return what waits for an event's agent, within so many UTF-16 units; "" for nothing."""
        connection, messages = call.connection, services.messages
        key = (connection.caller.client, payload.session_id, payload.agent_id)
        if not messages.waiting(*key):
            return ""
        if await _is_strangers(services, call, payload.session_id):
            return ""
        now = services.clock.monotonic()
        reference, until = self._open.get(key, (None, 0.0))
        other = reference() if reference else None
        if other is not None and not other.outbox.dropped and now < until:
            return ""
        mine = self._open[key] = (weakref.ref(connection), now + _PRINTING_SECONDS)
        receipt = 0
        try:
            with suppress(MemdError):
                text, receipt = await messages.deliver(*key, room=room)
                return text
            return ""
        finally:
            if receipt:
                self._receipts[connection] = (key, receipt)
            elif self._open.get(key) is mine:
                self._open.pop(key, None)

    def printed(self, services: Services, connection: Connection) -> bool:
        """Note that the hook at a connection has printed; say whether messages were in it."""
        key, receipt = self._receipts.pop(connection, (("", "", ""), 0))
        if receipt:
            self._open.pop(key, None)
            services.messages.printed(receipt)
        return bool(receipt)


async def _is_strangers(services: Services, call: Call, session: str) -> bool:
    """Say whether a session's process runs and has nothing to do with the one that asks.

    Any program may name a session; who runs beside its client is not its hook.
    """
    register, caller = services.messages.register, call.caller
    agent = register.by_session(caller.client, session)
    if agent is None:
        return False
    return await to_thread.run_sync(register.is_anothers, agent, caller.pid)


async def _register(
    services: Services, call: Call, kind: Event, payload: Payload, project: Project
) -> None:
    """Register an event's session, and the sub-agent in it, unless they are known."""
    register, client = services.messages.register, call.caller.client
    session, child = payload.session_id, payload.agent_id
    agent = register.by_session(client, session)
    if agent is None or (kind is Event.SESSION_START and payload.source != "compact"):
        pid = await to_thread.run_sync(_client_of, register.find, call.caller.pid)
        name = "" if agent else payload.session_title
        wanted = Registration(
            project.root,
            project.memory_dir,
            name,
            client=client,
            kind="session",
            session=session,
            pid=pid,
            transcript=payload.transcript_path,
        )
        agent = await _named(services, wanted)
    if agent is None:
        return
    register.touch(agent.id, turn=True)
    if not child:
        return
    known = register.by_session(client, session, child)
    if known is None and (payload.agent_type or kind is Event.TOOL_USED):
        wanted = Registration(
            project.root,
            project.memory_dir,
            payload.agent_type or "agent",
            client=client,
            kind="sub-agent",
            session=session,
            child=child,
            parent=agent.name,
        )
        known = await _named(services, wanted)
    if known is not None:
        register.touch(known.id, turn=True)


async def _named(services: Services, wanted: Registration) -> Agent | None:
    """Register an agent under the name that it would have, or a free one like it."""
    name = name_from(wanted.name, f"{wanted.client}-{wanted.session[:4]}") if wanted.name else ""
    for _ in range(_NAMES):
        try:
            await services.messages.registered(replace(wanted, name=name))
        except AgentNameTakenError as error:
            name = str(error.facts["free"])
        else:
            break
    register = services.messages.register
    return register.by_session(wanted.client, wanted.session, wanted.child)


def _client_of(find: Callable[[int], SystemProcess | None], pid: int) -> int:
    """Return the process for which a hook runs: the nearest above it that is no shell, or 0."""
    process = find(pid)
    for _ in range(_ANCESTORS):
        process = find(process.parent) if process else None
        if process is None or process.pid <= 1 or process.name not in _SHELLS:
            break
    return process.pid if process and process.pid > 1 and process.name not in _SHELLS else 0


def printed_row(deliveries: MessageDeliveries) -> Method[..., Printed]:
    """Return the row of ``hook.printed``."""

    async def printed(services: Services, call: Call) -> Printed:
        """Tell that a hook has printed the answer that came on this connection.

        Messages in it are read once the session goes on; without this they are delivered again.
        """
        return Printed(messages=deliveries.printed(services, call.connection))

    return method("hook.printed", "write")(printed)
