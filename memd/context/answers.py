"""Build the replies of the context methods from plans and stored rows. Pure."""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from msgspec.structs import fields, replace

from memd.context import sizing
from memd.context.errors import MessagesRefusedError
from memd.context.planning import KnownConversation, Resync, Settled
from memd.context.requests import (
    CacheBreak,
    Checkpoint,
    ContextRequest,
    ContextView,
    ListedContext,
    PlannedContext,
    SpilledResult,
    StoredView,
)
from memd.context.results import ResultsPlace
from memd.context.values import CLEAR, DROP, KEEP, SPILL, Decision
from memd.conversation import history
from memd.core.canonical import START
from memd.core.limits import STORED_BYTES
from memd.core.names import is_text
from memd.state.tables import ContextRow

_MESSAGES_BETWEEN_CHECKPOINTS = 64
_ACTIONS = (KEEP, SPILL, CLEAR, DROP)
_NO_DECISION = f"a decision has texts, a size and one of {', '.join(_ACTIONS)}"
_LISTED_FIELDS = [item.name for item in fields(ListedContext)[2:]]  # that a row has by these names
_MOST_LISTED_RESULTS = 20  # that a view lists, the largest ones


def planned_row(row: ContextRow, settled: Settled, request: ContextRequest) -> ContextRow:
    """Return a copy of a conversation's row with the figures of its newest plan."""
    return replace(
        row,
        model=request.model,
        window=settled.thresholds.window,
        messages=len(settled.facts),
        tokens=settled.count.tokens,
        source=settled.count.source,
        level=settled.level,
        request=json.dumps(settled.request),
    )


def with_break(row: ContextRow, observed: CacheBreak | None, now: float) -> ContextRow:
    """Return a copy of a row dated ``now``, with the cache break, if any, added to its totals."""
    if observed is None:
        return replace(row, at=now)
    return replace(row, at=now, breaks=row.breaks + 1, missed=row.missed + observed.tokens)


def planned_reply(settled: Settled, observed: CacheBreak | None) -> PlannedContext:
    """Return the reply with status ``ok`` for a plan whose results were stored or refused."""
    last_hash = settled.hashes[-1] if settled.hashes else START
    return PlannedContext(
        status="ok",
        have=len(settled.facts),
        hash=last_hash.hex(),
        count=settled.count,
        thresholds=settled.thresholds,
        level=settled.level,
        edits=settled.edits,
        request=settled.request,
        compact=settled.compact,
        cache_break=observed,
        decisions=settled.decisions,
        problems=settled.problems,
    )


def resync_reply(
    needed: Resync, request: ContextRequest, known: KnownConversation
) -> PlannedContext:
    """Return the reply that asks the client to send its messages again from a checkpoint on.

    There is a checkpoint every 64 messages, and one at the last message that may be needed.
    """
    hashes = (START, *known.hashes)  # the hash after so many messages
    places = [*range(0, needed.most, _MESSAGES_BETWEEN_CHECKPOINTS), needed.most]
    counted, limits = sizing.count(known.facts), sizing.thresholds(sizing.window_of(request))
    return PlannedContext(
        status="resync",
        have=len(known.hashes),
        hash=hashes[-1].hex(),
        count=counted,
        thresholds=limits,
        level=sizing.level(counted.tokens, limits),
        checkpoints=tuple(Checkpoint(place, hashes[place].hex()) for place in places),
        reason=needed.reason,
    )


def checked_decisions(decisions: Iterable[Decision]) -> Iterator[Decision]:
    """Yield the decisions that a client restores.

    Raises MessagesRefusedError for an unknown action, a bad size or a text that is not UTF-8.
    """
    for index, decision in enumerate(decisions):
        texts = (decision.tool_use_id, decision.content_hash, decision.content, decision.path)
        is_valid = decision.action in _ACTIONS and all(map(is_text, texts))
        if not is_valid or not 0 <= decision.size < STORED_BYTES:
            place = f"decisions.{index}"
            raise MessagesRefusedError(place, _NO_DECISION)
        yield decision


def spilled_reply(decision: Decision) -> SpilledResult:
    """Return the reply to ``context.spill`` for a result that has a decision."""
    if decision.action == KEEP:
        return SpilledResult(spilled=False, decision=decision, reason=KEEP)
    content, path = decision.content, decision.path
    return SpilledResult(spilled=True, content=content, path=path, decision=decision)


def listed_row(row: ContextRow) -> ListedContext:
    """Return a conversation's row as an entry of ``context.list``."""
    session = ResultsPlace.of(row.folder).session
    limits = sizing.thresholds(row.window or history.WINDOW)
    return ListedContext(session, limits, *(getattr(row, name) for name in _LISTED_FIELDS))


def session_view(
    session: str, rows: Iterable[ContextRow], decisions: Collection[Decision], size: int
) -> ContextView:
    """Return a session as ``context.show`` prints it; ``size`` is the bytes of its results."""
    stored = [
        StoredView(each.tool_use_id, each.action, each.size, each.path)
        for each in decisions
        if each.path
    ]
    stored.sort(key=lambda each: -each.size)
    actions = Counter(each.action for each in decisions)
    return ContextView(
        session, tuple(map(listed_row, rows)), actions, tuple(stored[:_MOST_LISTED_RESULTS]), size
    )
