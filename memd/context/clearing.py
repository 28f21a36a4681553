"""Which old results of tools make room, when, and by whom. Pure.

Rules of this file
- Only results of known tools are cleared, and the newest of them stay.
- What was sent changes at a turn boundary alone: the person speaks and no call was made since.
- Thinking is bound to what stands before it: it goes with the first change before it, or nothing is
  changed.
- A server that clears results by itself is preferred: the history stays as it is.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from memd.context.facts import SYSTEM, exchange_start
from memd.context.requests import CONTEXT_MANAGEMENT, MANAGED, THINKING, THREAD, ContextRequest
from memd.context.values import DROP, KEEP, BlockKey, Decisions, MessageFacts, ResultFacts
from memd.conversation import history
from memd.conversation.pieces import USER

REASON = "clear"  # why a client sends messages again
BETA = "context-management-2025-06-27"
_TOOLS = ("read", "shell", "search", "web_search", "web", "edit", "write")
_NEWEST = 5  # results that stay
_REST_SECONDS = 3_600.0  # after which no server has the prompt in its cache
_TRIGGER, _LEAST_BELOW = 180_000, 40_000  # tokens, of a window of 200,000 and more


class OldResults(NamedTuple):
    """Results that may be cleared, oldest first, and the thinking behind the first of them."""

    results: Sequence[tuple[int, ResultFacts]] = ()
    thinking: Sequence[tuple[int, int, str]] = ()


def old_results(
    facts: Sequence[MessageFacts],
    decisions: Decisions,
    request: ContextRequest,
    rested: float,
) -> OldResults:
    """Return what to clear of a conversation that has rested so many seconds.

    Nothing while it must not change.
    """
    if not (request.settings.context.clear and request.reader) or request.supports & {
        CONTEXT_MANAGEMENT,
        MANAGED,
        THREAD,
    }:
        return OldResults()
    newest = facts[exchange_start(facts) :]
    calls = any(fact.calls or fact.results for fact in newest)
    speaker = next((fact.role for fact in reversed(facts) if fact.role != SYSTEM), "")
    if rested < _REST_SECONDS or calls or speaker != USER:
        return OldResults()
    listed = [
        (place, result)
        for place, fact in enumerate(facts)
        for result in fact.results
        if history.tool_kind(result.tool) in _TOOLS
    ]
    results = [each for each in listed[:-_NEWEST] if _is_whole(each[1], decisions)]
    thinking = _thinking(facts, results[0][0], decisions) if results else []
    if thinking and not (request.may_drop_thinking and _leaves_messages(facts, thinking)):
        return OldResults()
    return OldResults(results, thinking)


def members(
    request: ContextRequest, window: int, before: Mapping[str, Any] | None
) -> Mapping[str, Any]:
    """Return what a request says so that the server clears old results by itself.

    Nothing where the model cannot, and where memd does not know which tools there are. ``before``
    is what earlier requests of the conversation said, ``None`` for the first.
    """
    able = CONTEXT_MANAGEMENT in request.supports and not request.supports & {MANAGED, THREAD}
    if not able or request.tools is None or before == {}:
        return {}
    uses = before["context_management"]["edits"][-1] if before else _tool_uses(request, window)
    edits = [uses]
    if THINKING in request.supports:  # a server refuses the edit without it, and wants it first
        one_turn = {"type": "thinking_turns", "value": 1}
        retained = one_turn if request.may_drop_thinking else "all"
        edits = [{"type": "clear_thinking_20251015", "keep": retained}, uses]
    return {"context_management": {"edits": edits}, "betas": [BETA]}


def _tool_uses(request: ContextRequest, window: int) -> dict[str, Any]:
    limits = history.thresholds(window)
    compacts = request.settings.context.compact and not request.conversation
    trigger = limits.warn if compacts else min(_TRIGGER, limits.effective)
    least = trigger - _LEAST_BELOW * min(window, history.WINDOW) // history.WINDOW
    names = {str(tool.get("name")) for tool in request.tools or () if isinstance(tool, Mapping)}
    excluded = {name for name in names if history.tool_kind(name) not in _TOOLS}
    return {
        "type": "clear_tool_uses_20250919",
        "trigger": {"type": "input_tokens", "value": trigger},
        "keep": {"type": "tool_uses", "value": _NEWEST},
        "clear_at_least": {"type": "input_tokens", "value": least},
        "exclude_tools": sorted((excluded | {request.reader}) - {""}),
    }


def _is_whole(result: ResultFacts, decisions: Decisions) -> bool:
    """Tell whether a result was sent as it is and is large enough to be cleared."""
    decision = decisions.get(BlockKey(result.tool_use_id, result.content_hash))
    return decision is not None and decision.action == KEEP


def _thinking(
    facts: Sequence[MessageFacts], place: int, decisions: Decisions
) -> list[tuple[int, int, str]]:
    """Return the thinking behind a place that is still sent."""
    return [
        (message, block, digest)
        for message in range(place + 1, len(facts))
        for block, digest in facts[message].thinking
        if (known := decisions.get(BlockKey("", digest))) is None or known.action != DROP
    ]


def _leaves_messages(
    facts: Sequence[MessageFacts], thinking: Sequence[tuple[int, int, str]]
) -> bool:
    """Tell whether each message has something else than the thinking that goes."""
    return all(len(facts[place].thinking) < len(facts[place].kinds) for place, _, _ in thinking)
