"""Register agents and send, receive and end their messages, for the rooms above. Async.

Each change is a step: a function that runs in a worker thread under one lock. Calls that wait for a
message wait on the event loop. One timer waits until the next message, answer or lease is due.
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from math import inf
from typing import Any, TypeVar

import anyio
from anyio import to_thread
from anyio.abc import TaskStatus

from memd.base.agents import (
    HOOK_MESSAGE_CHARACTERS,
    HOOK_MESSAGES,
    LEASE_SECONDS,
    LEASED_MESSAGES,
    Agent,
    SystemProcess,
)
from memd.base.clock import Clock
from memd.base.errors import Refused
from memd.base.events import AGENT_CHANGED, MESSAGE_ENDED, MESSAGE_PENDING, Event, EventSink
from memd.base.settings import Settings
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
    AgentEnded,
    HeldMessage,
    LoggedMessage,
    Received,
    Registered,
    Registration,
    SendRequest,
    Sent,
    row_of,
)
from memd.messages.values import Speaker as Speaker
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
        socket: str = "",
    ) -> None:
        self.register = register
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

    async def end_speaker(self, speaker: Speaker) -> AgentEnded:
        """End the speaker's agent; its unread messages are refused. Raises Refused."""
        return await self.end(await self.find_speaker(speaker))

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

    async def has_agent(self, running: Collection[SystemProcess], kinds: Collection[str]) -> bool:
        """Return whether an agent of some kinds that has not ended runs in one of the processes."""
        if not self.register.loaded:
            await self._run_step(lambda _: self.register.load())
        return self.register.has_process(running, kinds)

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

    async def send(self, request: SendRequest, speaker: Speaker | None = None) -> Sent:
        """Store a message durably and return its state. ``None`` is an unregistered sender."""

        def send(effects: StepEffects) -> Sent:
            agent = self._find_speaker(speaker) if speaker else None
            return self._office.send(request, agent, effects)

        return await self._run_step(send)

    async def receive(
        self, speaker: Speaker, holder: LeaseHolder, limit: int, wait: float
    ) -> Received:
        """Lease up to ``limit`` messages of an agent; wait up to ``wait`` seconds for the first."""
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

    async def acknowledge(self, speaker: Speaker, ids: Sequence[str]) -> int:
        """End messages as read; return how many had not ended before.

        Raises NotFound if a text is no id of a message.
        """
        numbers = [number_of(each) for each in ids]

        def read(effects: StepEffects) -> int:
            agent = self._find_speaker(speaker)
            if 0 in numbers:
                raise message_not_found(ids[numbers.index(0)])
            return self._office.mark_read(agent.id, numbers, effects)

        return await self._run_step(read)

    async def status(self, message: str) -> Sent:
        """Return the state of a message and of each copy. Raises NotFound."""
        return await self._run_step(lambda _: self._office.status(message), sweep=True)

    async def log(
        self, root: str, address: str = "", state: str = "", before: str = "", limit: int = 50
    ) -> tuple[LoggedMessage, ...]:
        """Return messages of a project, or of one agent, newest first and without bodies."""

        def shown(_: StepEffects) -> tuple[LoggedMessage, ...]:
            agent = self.register.resolve(address, root).id if address else 0
            return self._office.log(agent=agent, root=root, state=state, before=before, limit=limit)

        return await self._run_step(shown, sweep=True)

    async def held(
        self, root: str = "", message: str = "", limit: int = 50
    ) -> tuple[HeldMessage, ...]:
        """Return held messages with their texts; see ``StoredMessages.held``."""
        return await self._run_step(lambda _: self._office.held(root, message, limit), sweep=True)

    async def decide(self, message: str, *, accept: bool) -> Sent:
        """Accept or refuse a held message. Raises NotFound and Conflict."""
        return await self._run_step(partial(self._office.decide, message, accept=accept))

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
