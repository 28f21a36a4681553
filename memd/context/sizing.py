"""Count a conversation's tokens and compare them with its window. Pure."""

from collections.abc import Iterable, Sequence

from memd.context.facts import exchange_start, last_index
from memd.context.requests import ContextCount, ContextRequest, ContextThresholds
from memd.context.values import MessageFacts
from memd.conversation import history
from memd.conversation.pieces import BOUNDARY, USER, TranscriptPiece

_LARGE_WINDOW = 1_000_000  # tokens, of a model with this suffix or a request with this beta
_LARGE_MODEL, _LARGE_BETA = "[1m]", "context-1m-2025-08-07"
LEVELS = ("block", "auto", "urgent", "warn")  # from the highest threshold down


def window_of(request: ContextRequest) -> int:
    """Return a conversation's window in tokens: the client's, the model's or the usual one."""
    if request.window:
        return request.window
    if request.model.endswith(_LARGE_MODEL) or _LARGE_BETA in request.betas:
        return _LARGE_WINDOW
    return request.usual_window or history.WINDOW


def thresholds(window: int) -> ContextThresholds:
    """Return the thresholds for a window in tokens."""
    limits = history.thresholds(window)
    return ContextThresholds(window, limits.warn, limits.urgent, limits.auto, limits.block)


def level(tokens: int, limits: ContextThresholds) -> str:
    """Return the highest threshold that so many tokens reach, ``ok`` below all of them."""
    for name in LEVELS:
        if tokens >= getattr(limits, name):
            return name
    return "ok"


def count(facts: Sequence[MessageFacts]) -> ContextCount:
    """Return a conversation's size and whether a server counted it or it is estimated."""
    meter = meter_of(facts)
    return ContextCount(meter.tokens, "usage" if meter.counted else "estimate")


def meter_of(facts: Sequence[MessageFacts]) -> history.ContextMeter:
    """Return a meter with all messages of a conversation counted."""
    meter = history.ContextMeter()
    # A server's count includes all messages before its reply, so counting begins at that reply.
    last_counted = last_index(facts, lambda fact: fact.context)
    if last_counted >= 0:
        feed(meter, facts[exchange_start(facts[: last_counted + 1]) :])
        return meter
    # Without a count, the estimates of the messages since the last boundary are added.
    boundary = max(last_index(facts, lambda fact: fact.boundary), 0)
    meter.add(TranscriptPiece(USER, tokens=sum(fact.tokens for fact in facts[boundary:])))
    return meter


def feed(meter: history.ContextMeter, facts: Iterable[MessageFacts]) -> None:
    """Add the facts of messages to a meter's count."""
    for fact in facts:
        if fact.boundary:
            meter.add(TranscriptPiece(fact.role, event=BOUNDARY))
        meter.add(
            TranscriptPiece(fact.role, key=fact.key, tokens=fact.tokens, context=fact.context)
        )
