"""Select the old tool results that are cleared from a conversation. Pure.

Rules of this file
- Only results of known tools are cleared, and the newest five of them stay.
- Messages that were sent change only at a turn boundary: the person spoke last and no tool was
  called since.
- A thinking block is signed together with what stands before it. So a cleared result removes all
  thinking behind it; where that is not allowed, nothing is cleared.
- Where the server can clear results by itself, it does that and the history stays as it is.
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
_TRIGGER, _LEAST_BELOW = 180_000, 40_000  # tokens, for a window of 200,000 and more


class OldResults(NamedTuple):
    """Results that may be cleared, oldest first, and the thinking behind the first of them.

    A result has its message's index; a thinking block its message's, its own and its hash.
    """

    results: Sequence[tuple[int, ResultFacts]] = ()
    thinking: Sequence[tuple[int, int, str]] = ()


def old_results(
    facts: Sequence[MessageFacts],
    decisions: Decisions,
    request: ContextRequest,
    rested: float,
) -> OldResults:
    """Return the results to clear from a conversation that was idle for ``rested`` seconds.

    Empty if clearing is off, if the client cannot read stored results or its server manages the
    history, and if the conversation was idle under an hour or is in the middle of a turn. Empty
    too if clearing would also drop thinking blocks that must stay. The newest results stay,
    and only results that were sent whole so far are cleared.
    """
    server_clears = request.supports & {CONTEXT_MANAGEMENT, MANAGED, THREAD}
    if server_clears or not (request.settings.context.clear and request.reader):
        return OldResults()
    newest = facts[exchange_start(facts) :]
    called = any(fact.calls or fact.results for fact in newest)
    speaker = next((fact.role for fact in reversed(facts) if fact.role != SYSTEM), "")
    if rested < _REST_SECONDS or called or speaker != USER:
        return OldResults()
    clearable = [
        (message, result)
        for message, fact in enumerate(facts)
        for result in fact.results
        if history.tool_kind(result.tool) in _TOOLS
    ]
    results = [each for each in clearable[:-_NEWEST] if _is_whole(each[1], decisions)]
    thinking = _thinking_behind(facts, results[0][0], decisions) if results else []
    if thinking and not (request.may_drop_thinking and _leaves_messages(facts, thinking)):
        return OldResults()
    return OldResults(results, thinking)


def members(
    request: ContextRequest, window: int, before: Mapping[str, Any] | None
) -> Mapping[str, Any]:
    """Return the members to add to a request so that the server clears old results itself.

    An empty dict if the model does not support it, if the request names no tools, or if earlier
    requests went without. ``before`` has the members of earlier requests, whose trigger is used
    again; it is ``None`` for the first request.
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
    """Return the server's edit that clears tool results, with sizes for a window in tokens."""
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
    """Return whether a result was decided to stay whole; too short ones have no decision."""
    decision = decisions.get(BlockKey(result.tool_use_id, result.content_hash))
    return decision is not None and decision.action == KEEP


def _thinking_behind(
    facts: Sequence[MessageFacts], message: int, decisions: Decisions
) -> list[tuple[int, int, str]]:
    """Return the thinking blocks behind a message that are still sent."""
    return [
        (later, block, digest)
        for later in range(message + 1, len(facts))
        for block, digest in facts[later].thinking
        if (known := decisions.get(BlockKey("", digest))) is None or known.action != DROP
    ]


def _leaves_messages(
    facts: Sequence[MessageFacts], thinking: Sequence[tuple[int, int, str]]
) -> bool:
    """Return whether no message would be empty without these thinking blocks."""
    fact_of = (facts[message] for message, _, _ in thinking)
    return all(len(fact.thinking) < len(fact.kinds) for fact in fact_of)
