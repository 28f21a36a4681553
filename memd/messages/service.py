"""Register agents and send, receive and end their messages, for the rooms above. Async.

Each change is a step: a function that runs in a worker thread under one lock. Calls that wait for a
message wait on the event loop. One timer waits until the next message, answer or lease is due.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from math import inf
from typing import Annotated, Any, TypeVar

import anyio
import msgspec
from anyio import to_thread
from anyio.abc import TaskStatus

from memd.base.agents import (
    HOOK_MESSAGE_CHARACTERS,
    HOOK_MESSAGES,
    LEASE_SECONDS,
    LEASED_MESSAGES,
    WAIT_SECONDS,
    Agent,
    MessageKind,
    MessageState,
)
from memd.base.clock import Clock
from memd.base.errors import Refused
from memd.base.events import AGENT_CHANGED, MESSAGE_ENDED, MESSAGE_PENDING, Event, EventSink
from memd.base.inbox import Answer, Decided, InboxItem, ItemDecision, PlacedItem
from memd.base.settings import Settings
from memd.base.values import Project
from memd.base.waiting import waits_outside
from memd.messages import block
from memd.messages.ending import StepEffects
from memd.messages.errors import message_not_found
from memd.messages.hooking import HookLeases
from memd.messages.hooking import ShownBlock as ShownBlock
from memd.messages.mailboxes import LeaseHolder as LeaseHolder
from memd.messages.mailboxes import Mailboxes, NextMessages, number_of
from memd.messages.names import name_from as name_from
from memd.messages.register import Register as Register
from memd.messages.sending import PostOffice
from memd.messages.values import (
    Acknowledged,
    AgentEnded,
    Key,
    Logged,
    LoggedMessage,
    MessageId,
    Name,
    Received,
    Registered,
    Registration,
    SendRequest,
    Sent,
    row_of,
    speaker_of,
)
from memd.messages.values import Speaker as Speaker
from memd.methods.callers import Callers
from memd.methods.method import Limit, method
from memd.rpc.call import Call
from memd.state.database import StateUnusableError
from memd.state.messages import MessageTable

T = TypeVar("T")
_RETRY_SECONDS = 60.0


class Messages:
    """The agents and mailboxes of this user. One per process; call it on the event loop.

    ``settings`` returns the settings of a project's root and blocks. ``socket`` is the path of this
    daemon's. Methods raise Off
    if messages are disabled, and StateUnusableError.
    """

    def __init__(
        self,
        register: Register,
        table: MessageTable,
        clock: Clock,
        events: EventSink,
        *,
        settings: Callable[[str], Settings],
        callers: Callers,
        socket: str = "",
    ) -> None:
        self.register = register
        self._callers = callers
        self._clock = clock
        self._events = events
        self._mailboxes = Mailboxes(table, clock.now, clock.monotonic)
        self._office = PostOffice(
            register,
            self._mailboxes,
            lambda root: settings(root).messages,
            clock.now,
            clock.monotonic,
            socket=socket,
        )
        self._hooks = HookLeases(self._mailboxes)
        self._lock = anyio.Lock()  # held by the step that runs
        self._arrivals: dict[int, anyio.Event] = {}  # by the agent that waits for a message
        self._timer_wakeup = anyio.Event()
        # The times for which the timer is set: in seconds since 1970, and in monotonic seconds.
        self._next_due = self._next_lease = inf

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """End overdue messages, answers and leases when they are due, until cancelled."""
        with suppress(StateUnusableError):  # each call raises it until the file is usable
            await self._run_step(self._load)
        task_status.started()
        while True:
            self._timer_wakeup = anyio.Event()
            # If the state file is unusable, it is tried again later.
            next_time: float | None = self._clock.monotonic() + _RETRY_SECONDS
            with suppress(StateUnusableError):
                next_time = await self._find_next_time()
            is_woken = await self._wait_until(next_time, self._timer_wakeup)
            if is_woken and (next_time is None or next_time > self._clock.monotonic()):
                continue  # woken before the time: compute the next time again
            with suppress(StateUnusableError):
                await self._run_step(self._load)

    async def _find_next_time(self) -> float | None:
        """Return the monotonic time when the next message, answer or lease is due, or ``None``."""
        self._next_due = inf  # so that a message that arrives meanwhile wakes the timer
        due = await to_thread.run_sync(self._mailboxes.table.next_due)
        self._next_due = inf if due is None else due
        lease = self._mailboxes.next_lease_end()
        self._next_lease = inf if lease is None else lease
        if due is not None:
            due += self._clock.monotonic() - self._mailboxes.steady_now()
        return min((at for at in (due, lease) if at is not None), default=None)

    async def held_count(self) -> int:
        """Return the number of messages that are held back until a person decides."""
        return await to_thread.run_sync(self._mailboxes.table.held_count)

    async def register_agent(self, registration: Registration) -> Registered:
        """Register an agent and publish that. Raises the errors of ``Register.register``."""

        def register(effects: StepEffects) -> Registered:
            self._office.settings(registration.root)
            registered, ended = self.register.register(registration)
            self._office.refuse_unread(ended, effects)
            return registered

        result = await self._run_step(register)
        self.changed(registration.directory, result.address, "registered")
        return result

    async def end(self, agent: Agent) -> AgentEnded:
        """End an agent and its sub-agents; their unread messages are refused."""
        returned = await self._run_step(
            lambda effects: self._office.refuse_unread(self.register.end(agent.id), effects)
        )
        self.changed(agent.directory, agent.name, "ended")
        return AgentEnded(ended=True, returned=returned)

    async def find_speaker(self, speaker: Speaker) -> Agent:
        """Return the agent of a speaker. Raises Refused."""
        return await self._run_step(lambda _: self._find_speaker(speaker))

    def _find_speaker(self, speaker: Speaker) -> Agent:
        """Return the agent with a speaker's key or above its process; blocks."""
        if speaker.key:
            agent: Agent | None = self.register.by_key(speaker.key)
        else:
            agent = self.register.by_process(speaker.pid) if speaker.pid else None
        if agent is None:
            raise Refused(
                "no key was given, and no agent started this program",
                kind="key_refused",
                hint="memctl agent register gives a key, for --key or MEMD_AGENT_KEY; "
                "an assistant's own shell needs none after memctl setup CLIENT --messages",
            )
        self._office.settings(agent.root)
        return agent

    @method("message.send", "write")
    async def send(
        self,
        call: Call,
        *,
        to: Name,
        body: str = "",
        summary: str = "",
        cwd: str = "",
        key: Key = "",
        as_parent: bool = False,
        kind: MessageKind = MessageKind.TEXT,
        reply_to: MessageId = "",
        request: MessageId = "",
        approve: bool | None = None,
        reason: str = "",
        feedback: str = "",
        ttl: float | None = None,
        request_id: Name = "",
    ) -> Sent:
        """Send a message to an agent, or with ``*`` to all of the project; it is stored on disk
        then.

        The sender is the agent with this ``key`` or, with ``as_parent``, the agent whose process
        started the caller. Otherwise it is an unregistered caller in the project of ``cwd``. A
        response names its ``request``.
        """
        speaker = speaker_of(call, key, as_parent=as_parent) if key or as_parent else None
        root = "" if speaker else (await to_thread.run_sync(self._callers.where, call, cwd))[0].root
        message = SendRequest(
            to=to,
            body=body,
            summary=summary,
            kind=kind.value,
            reply_to=reply_to,
            ttl=ttl,
            request=request,
            approve=approve,
            reason=reason,
            feedback=feedback,
            request_id=request_id,
            root=root,
            client=call.caller.client,
        )

        def store(effects: StepEffects) -> Sent:
            agent = self._find_speaker(speaker) if speaker else None
            return self._office.send(message, agent, effects)

        return await self._run_step(store)

    @method("message.receive", "read")
    async def receive(
        self,
        call: Call,
        *,
        key: Key = "",
        as_parent: bool = False,
        limit: Annotated[int, msgspec.Meta(ge=1, le=LEASED_MESSAGES)] = LEASED_MESSAGES,
        wait: Annotated[float, msgspec.Meta(ge=0, le=WAIT_SECONDS)] = 0.0,
    ) -> Received:
        """The next messages of an agent, leased for 30 s: they come again unless acknowledged.

        Where there is none, the call waits up to ``wait`` seconds for one.
        """
        holder = LeaseHolder(call.connection, lambda: call.connection.is_open)
        speaker = speaker_of(call, key, as_parent=as_parent)
        until = self._clock.monotonic() + wait
        while True:
            agent, delivered, text = await self._lease(speaker, holder, limit)
            # No other task ran since the step, so a message that arrives later sets the event.
            arrival = self._arrivals.setdefault(agent.id, anyio.Event())
            seconds_left = until - self._clock.monotonic()
            if delivered.messages or seconds_left <= 0:
                break
            # A lease that ends may release a message for this agent.
            lease_end = self._mailboxes.next_lease_end(agent.id)
            wait_until = until if lease_end is None else min(until, lease_end)
            waits_outside()
            await self._wait_until(wait_until, arrival)
        if delivered.messages and self._next_lease == inf:
            self._timer_wakeup.set()  # the timer knows of no lease yet
        return Received(tuple(map(row_of, delivered.messages)), delivered.more, text)

    @method("message.ack", "write")
    async def acknowledge(
        self,
        call: Call,
        *,
        ids: Annotated[list[MessageId], msgspec.Meta(max_length=1000)],
        key: Key = "",
        as_parent: bool = False,
    ) -> Acknowledged:
        """Mark messages as read, so that they are not delivered again."""
        speaker = speaker_of(call, key, as_parent=as_parent)
        numbers = [number_of(each) for each in ids]

        def read(effects: StepEffects) -> int:
            agent = self._find_speaker(speaker)
            if 0 in numbers:
                raise message_not_found(ids[numbers.index(0)])
            return self._office.mark_read(agent.id, numbers, effects)

        return Acknowledged(acked=await self._run_step(read))

    @method("message.log", "read")
    async def log(
        self,
        call: Call,
        *,
        cwd: str,
        id_: MessageId = "",
        agent: Name = "",
        state: MessageState | None = None,
        before: MessageId = "",
        limit: Limit = 50,
    ) -> Logged:
        """The messages of a project, or of one agent, newest first and without bodies.

        ``id`` selects one of any project.
        """
        project, *_ = await to_thread.run_sync(self._callers.where, call, cwd)
        find = partial(self._office.log, root=project.root, state=state or "", before=before)

        def shown(_: StepEffects) -> tuple[LoggedMessage, ...]:
            if id_:
                return (self._office.entry(id_),)
            agent_id = self.register.resolve(agent, project.root).id if agent else 0
            return find(agent=agent_id, limit=limit)

        return Logged(messages=await self._run_step(shown, sweep=True))

    async def items(self, project: Project | None, id_: str = "") -> Sequence[PlacedItem]:
        """Return the messages that are held for the person, newest first, of a project or of all.

        Each comes with the memory directory of its receiver. ``id_`` selects one of any project.
        Raises NotFound and Conflict for that.
        """
        find = partial(self._office.held, project.root if project else "", id_)
        return await self._run_step(lambda _: find(), sweep=True)

    async def decide(self, _: str, item: InboxItem, decision: ItemDecision) -> Decided:
        """Accept or refuse a message that is held. Raises Conflict if it is not any more."""
        is_accepted = decision.answer is Answer.ACCEPT
        decide = partial(self._office.decide, item.id, accept=is_accepted)
        return Decided(item.id, (await self._run_step(decide)).state)

    async def forget(self) -> None:
        """Keep the newest 10,000 of the messages that have ended."""
        await self._run_step(lambda _: self._mailboxes.table.forget(), sweep=True)

    def changed(self, directory: str, address: str, what: str) -> None:
        """Publish a change of an agent; ``what`` is "registered" or "ended"."""
        params = {"address": address, "change": what}
        self._events.publish(Event(AGENT_CHANGED, directory, params))

    def unread(self, agent: int) -> int:
        """Return how many messages wait for an agent, from memory."""
        return self._mailboxes.unread(agent)

    def waiting(self, client: str, session: str, child: str = "") -> bool:
        """Return, from memory, whether a hook of a session has messages to show or acknowledge."""
        agent = self.register.by_session(client, session, child)
        return agent is not None and bool(
            self._mailboxes.unread(agent.id) or self._hooks.has_messages(agent.id)
        )

    async def deliver(
        self, client: str, session: str, child: str = "", room: int = HOOK_MESSAGE_CHARACTERS
    ) -> ShownBlock | None:
        """Return a block of messages for an event of a session, ``None`` if none waits.

        The messages of the event before are first acknowledged or queued again (``next_event``).
        The block has at most ``room`` UTF-16 units; the caller sets its ``printed``.
        """
        agent = self.register.by_session(client, session, child)
        if agent is None or not self.waiting(client, session, child):
            return None
        await self.next_event(client, session, child)
        room = min(room, HOOK_MESSAGE_CHARACTERS)

        def lease(effects: StepEffects) -> ShownBlock | None:
            self._office.sweep(effects)
            return self._hooks.lease(agent.id, HOOK_MESSAGES, room)

        return await self._run_step(lease)

    async def next_event(self, client: str, session: str, child: str = "") -> None:
        """Acknowledge the messages that the session's last event printed; queue others again."""
        agent = self.register.by_session(client, session, child)
        if agent is None or not self._hooks.has_messages(agent.id):
            return

        def finish(effects: StepEffects) -> None:
            numbers = self._hooks.finish_event(agent.id)
            self._office.mark_read(agent.id, numbers, effects)
            effects.released.add(agent.id)

        await self._run_step(finish)

    async def requeue_session(self, client: str, session: str) -> None:
        """Queue a session's last messages again, since it ended or starts with an empty context."""
        if (agent := self.register.by_session(client, session)) is None:
            return
        agents = {agent.id, *(child.id for child in self.register.children(agent.id))}

        def requeue(effects: StepEffects) -> None:
            for agent_id in agents:
                self._hooks.requeue(agent_id)
            effects.released |= agents

        await self._run_step(requeue)

    def prompted(self, client: str, session: str) -> None:
        """Note that a person prompted a session's agent."""
        if (agent := self.register.by_session(client, session)) is not None:
            self._office.prompted(agent.id)

    async def _lease(
        self, speaker: Speaker, holder: LeaseHolder, limit: int
    ) -> tuple[Agent, NextMessages, str]:
        """Lease messages for 30 s; return the speaker's agent, the messages and their block."""
        until = self._clock.monotonic() + LEASE_SECONDS
        holder = LeaseHolder(holder.name, holder.alive, until)
        limit = min(limit, LEASED_MESSAGES)

        def lease_next(effects: StepEffects) -> tuple[Agent, NextMessages, str]:
            agent = self._find_speaker(speaker)
            self.register.touch(agent.id)
            if not self._mailboxes.unread(agent.id):
                return agent, NextMessages(), ""
            self._office.sweep(effects)
            delivered = self._mailboxes.lease(agent.id, holder, limit)
            return agent, delivered, block.block(delivered.messages)

        return await self._run_step(lease_next)

    def _load(self, effects: StepEffects) -> None:
        """Read agents and counts from disk and end what is overdue; a step."""
        self.register.load()
        self._mailboxes.load()
        self._office.sweep(effects)

    async def _run_step(self, step: Callable[[StepEffects], T], *, sweep: bool = False) -> T:
        """Run a step in a thread under the lock, after a sweep if so; publish what it did."""
        effects = StepEffects()

        def run() -> T:
            try:
                self._mailboxes.load()
                if sweep:
                    self._office.sweep(effects)
                return step(effects)
            except StateUnusableError:
                self._mailboxes.mark_doubtful()
                raise

        async with self._lock:
            try:
                return await to_thread.run_sync(run)  # a thread ends its step also if cancelled
            finally:  # also after an error, as a part may be stored
                self._publish(effects)

    def _publish(self, effects: StepEffects) -> None:
        """Publish what a step did, and wake the calls and the timer that wait for it."""
        for arrival in effects.arrived:
            agent = arrival.agent
            self._wake(agent.id)
            id_ = f"m{arrival.number}" if arrival.number else ""  # memd's own notices have no id
            facts: dict[str, Any] = {"id": id_, "address": agent.name, "sender": arrival.sender}
            facts |= {"summary": arrival.summary, "count": self._mailboxes.unread(agent.id)}
            self._events.publish(Event(MESSAGE_PENDING, agent.directory, facts))
        for end in effects.ended:
            params = {"id": f"m{end.message.number}", "address": end.address}
            params |= {"state": end.state.value, "reason": end.reason}
            sender = self.register.get(end.message.sender.agent)
            directory = sender.directory if sender else ""
            self._events.publish(Event(MESSAGE_ENDED, directory, params))
        for agent_id in effects.released:
            self._wake(agent_id)
        # The timer is woken only if something is due before the time for which it is set.
        if effects.due < self._next_due:
            self._timer_wakeup.set()

    def _wake(self, agent: int) -> None:
        """Wake the calls that wait for a message of an agent."""
        if (arrival := self._arrivals.pop(agent, None)) is not None:
            arrival.set()

    async def _wait_until(self, at: float | None, event: anyio.Event) -> bool:
        """Wait for an event, up to a monotonic time if one is given; return whether it was set."""
        seconds = inf if at is None else max(0.0, at - self._clock.monotonic())
        with self._clock.move_on_after(seconds):
            await event.wait()
        return event.is_set()
