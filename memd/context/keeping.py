"""Plan conversations, store their results and save the decisions. Blocks.

Rules of this file
- Decisions are saved before a reply names them. If the state file refuses them, new results stay in
  the conversation.
- A session's lock is not held while its results are stored, so a hanging disk blocks nothing else.
  If another request planned the same conversation meanwhile, the slower one has to plan again.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from memd.context import answers, planning, results, spilling
from memd.context.breaks import SentRequest, cache_break_of, sent_request
from memd.context.errors import ConversationChangedError, MessagesRefusedError
from memd.context.planning import KnownConversation, Plan, Resync, ToStore
from memd.context.requests import (
    MANAGED,
    ContextRequest,
    ContextView,
    ListedContext,
    PlannedContext,
    SpilledResult,
)
from memd.context.results import ResultsPlace
from memd.context.sessions import ContextSession, ContextSessions, Lock, OpenConversation
from memd.context.values import (
    CLEAR,
    DROP,
    KEEP,
    SPILL,
    BlockKey,
    Decision,
    Decisions,
    StoredResult,
)
from memd.core.canonical import content_hash
from memd.core.clock import Clock
from memd.core.errors import MemdError
from memd.core.text import read_object
from memd.files.disk import Disk
from memd.state.database import StateUnusableError
from memd.state.tables import ContextTable

TIMEOUT = "the disk did not take it in time"
_CONTENT, _REQUEST = "content", "system or tools"  # where an error is, in what a client sends


class BegunPlan(Struct):
    """A plan whose results are being stored; ``stored`` grows until ``ended`` is true."""

    session: ContextSession
    conversation: OpenConversation
    known: KnownConversation  # the conversation that the plan was made from
    decisions: Decisions  # the session's decisions that the plan was made from
    sent: SentRequest
    plan: Plan
    # Each result, or the sentence of the error why it was not stored.
    stored: dict[BlockKey, StoredResult | str] = field(default_factory=dict)
    ended: bool = False


class ContextKeeper:
    """Plans the conversations of all sessions and saves their decisions. Thread-safe.

    ``lock`` makes a lock between threads. Methods raise StateUnusableError and SessionRefusedError.
    """

    def __init__(
        self,
        clock: Clock,
        lock: Callable[[], Lock],
        table: ContextTable,
        disk: Disk | None = None,
    ) -> None:
        self._clock = clock
        self._table = table
        self._sessions = ContextSessions(lock, table, disk)

    def begin(self, request: ContextRequest) -> BegunPlan | PlannedContext:
        """Return a begun plan, or the finished reply if nothing has to be stored for it.

        Raises MessagesRefusedError.
        """
        with self._open_session(request) as session:
            conversation = self._sessions.conversation(session, request.conversation)
            known, decisions = conversation.known, dict(session.decisions)
            plan = self._plan(conversation, decisions, request)
            if isinstance(plan, Resync):
                return answers.resync_reply(plan, request, known)
            # Whether the messages are edited by the server or the client itself.
            is_managed = bool(plan.members) or MANAGED in request.supports
            try:
                sent = sent_request(request, plan.hashes, self._clock.now(), managed=is_managed)
            except (ValueError, TypeError, RecursionError) as error:
                raise MessagesRefusedError(_REQUEST, str(error)) from error
            begun = BegunPlan(session, conversation, known, decisions, sent, plan)
            return begun if plan.store else self._end(begun)

    def store(self, begun: BegunPlan) -> None:
        """Store the results of a plan until it has ended; note the error for each failure."""
        with begun.session.storing:
            for item in begun.plan.store:
                if begun.ended:
                    return
                try:
                    stored = self._sessions.stored(begun.session, item.tool_use_id, item.text)
                except MemdError as error:
                    begun.stored[item.key] = error.sentence
                else:
                    begun.stored[item.key] = stored

    def end(self, begun: BegunPlan) -> PlannedContext:
        """Return the reply for a plan; results that are not stored yet stay in the conversation.

        Raises ConversationChangedError.
        """
        begun.ended = True
        with begun.session.lock:
            return self._end(begun)

    def spill(self, request: ContextRequest, tool: str, call: str, text: str) -> SpilledResult:
        """Store one tool result if it is large, and return what to send in its place.

        ``tool`` is the name of its tool, ``call`` the id of its call, ``text`` the result. A result
        that cannot be stored or that would save nothing stays as it is. Raises
        MessagesRefusedError.
        """
        try:
            key = BlockKey(call, content_hash(text))
        except UnicodeEncodeError as error:
            raise MessagesRefusedError(_CONTENT, str(error)) from error
        with self._open_session(request) as session:
            decision = session.decisions.get(key)
        if decision is not None:
            return answers.spilled_reply(decision)
        reason = spilling.reason_to_stay(tool, len(text), request)
        if reason:
            return SpilledResult(spilled=False, reason=reason)
        try:
            item = ToStore(0, 0, call, key.content_hash, SPILL, tool, text)
            with session.storing:
                stored = self._sessions.stored(session, call, text)
            decision = planning.replacement_decision(item, stored)
            if decision is None:
                decision = Decision(key.tool_use_id, key.content_hash, KEEP)
            with session.lock:
                # Another request may have decided about the result while it was stored.
                decision = session.decisions.get(key, decision)
                conversation = self._sessions.conversation(session, request.conversation)
                conversation.row = replace(conversation.row, at=self._clock.now())
                self._sessions.decide(session, conversation.row, [decision])
        except MemdError as error:
            return SpilledResult(spilled=False, reason=error.sentence)
        return answers.spilled_reply(decision)

    def restore(
        self, request: ContextRequest, decisions: Iterable[Decision], fork_of: str = ""
    ) -> int:
        """Save a client's decisions and those of the session it forks; return their number.

        Decisions of ``fork_of`` do not replace the session's own. Raises MessagesRefusedError.
        """
        restored = {each.key: each for each in answers.checked_decisions(decisions)}
        rows: Iterable[Any] = ()
        if fork_of:
            rows = self._table.decisions(results.place(request.project, fork_of).folder)
        decisions_of_fork = [Decision(*row) for row in rows]
        with self._open_session(request) as session:
            new = {
                each.key: each for each in decisions_of_fork if each.key not in session.decisions
            }
            new |= restored
            conversation = self._sessions.conversation(session, request.conversation)
            conversation.row = replace(conversation.row, at=self._clock.now())
            self._sessions.decide(session, conversation.row, new.values())
            for each in session.conversations.values():
                each.baseline = None  # the new decisions may change the cached prefix
            return len(new)

    def forget(self, request: ContextRequest) -> bool:
        """Remove a session's rows and stored results; return whether there were rows."""
        with self._open_session(request) as session:
            return self._sessions.forget(session)

    def prune(self) -> int:
        """Remove the sessions planned longest ago that are too much, and return how many."""
        removed = 0
        for folder in self._table.surplus():
            with self._sessions.open(ResultsPlace.of(folder)) as session:
                if folder in self._table.surplus():  # it was not used before it was locked
                    with suppress(MemdError):
                        removed += self._sessions.forget(session)
        return removed

    def show(self, request: ContextRequest) -> ContextView:
        """Return a session's conversations, decisions and stored results for a person."""
        with self._open_session(request) as session:
            folder = session.place.folder
            rows = (row for row in self._table.rows(folder) if row.folder == folder)
            decisions, size = session.decisions.values(), self._sessions.size(session)
            return answers.session_view(request.session, rows, decisions, size)

    def list(self, folder: str, most: int) -> tuple[ListedContext, ...]:
        """Return the newest ``most`` conversations, of sessions below a folder or all for ""."""
        return tuple(map(answers.listed_row, self._table.rows(folder, most)))

    def _open_session(self, request: ContextRequest) -> AbstractContextManager[ContextSession]:
        """Hold the lock of a request's session. Raises SessionRefusedError."""
        return self._sessions.open(results.place(request.project, request.session))

    def _plan(
        self, conversation: OpenConversation, decisions: Decisions, request: ContextRequest
    ) -> Plan | Resync:
        """Return the plan for a request, given the session's decisions."""
        row = conversation.row
        # Clearing changes decisions, which all conversations of the session share.
        may_clear = request.settings.context.clear and all(
            each.conversation == row.conversation for each in self._table.rows(row.folder)
        )
        known = replace(
            conversation.known,
            decisions=decisions,
            request=read_object(row.request) if row.request else None,
            replied_at=row.at,
            may_clear=may_clear,
        )
        return planning.plan(known, request, now=self._clock.now())

    def _end(self, begun: BegunPlan) -> PlannedContext:
        """Save a plan's decisions and return the reply; the caller holds the session's lock.

        Raises ConversationChangedError if the plan's conversation or decisions changed meanwhile.
        """
        session, conversation, plan = begun.session, begun.conversation, begun.plan
        stored = {item.key: begun.stored.get(item.key, TIMEOUT) for item in plan.store}
        settled = planning.settled_plan(plan, stored)
        new = [each for each in settled.decisions if begun.decisions.get(each.key) != each]
        if _has_changed(begun, new):
            raise ConversationChangedError(plan.request.session)
        observed = None
        if plan.request.usage and conversation.sent:
            conversation.baseline, observed = cache_break_of(
                conversation.baseline,
                conversation.sent,
                plan.request.usage,
                plan.request.diagnostics,
            )
        row = answers.with_break(conversation.row, observed, begun.sent.at)
        row = answers.planned_row(row, settled, plan.request)
        try:
            self._sessions.decide(session, row, settled.decisions)
        except StateUnusableError as error:  # new results stay in the conversation
            settled = planning.settled_plan(plan, dict.fromkeys(stored, error.sentence))
            settled = replace(settled, problems=settled.problems or (error.sentence,))
            session.unsaved.update((each.key, each) for each in settled.decisions)
            session.decisions.update(session.unsaved)
        clears = any(each.action in (CLEAR, DROP) for each in new)
        is_compacted = any(fact.boundary for fact in settled.facts[plan.request.place :])
        if clears or is_compacted:
            conversation.baseline = None  # memd itself changed the cached prefix
        conversation.row, conversation.sent = row, begun.sent
        conversation.known = KnownConversation(settled.facts, settled.hashes)
        self._sessions.trim(conversation)
        return answers.planned_reply(settled, observed)


def _has_changed(begun: BegunPlan, new: Iterable[Decision]) -> bool:
    """Return whether a plan's conversation, or a decision that it changes, was changed meanwhile.

    ``new`` are the plan's new decisions.
    """
    session, conversation = begun.session, begun.conversation
    if session.conversations.get(begun.plan.request.conversation) is not conversation:
        return True
    if conversation.known is not begun.known:
        return True
    return any(session.decisions.get(each.key) != begun.decisions.get(each.key) for each in new)
