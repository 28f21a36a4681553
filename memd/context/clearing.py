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
from memd.context.values import (
    DROP,
    KEEP,
    BlockKey,
    Decisions,
    MessageFacts,
    ResultFacts,
    decision_on,
)
from memd.conversation import history
from memd.conversation.pieces import USER

BETA = "context-management-2025-06-27"
_CLEARED_TOOLS = ("read", "shell", "search", "web_search", "web", "edit", "write")
_NEWEST_RESULTS = 5  # that stay
_IDLE_SECONDS = 3_600.0  # after which no server has the prompt in its cache
_TRIGGER_TOKENS = 180_000  # a server clears when the prompt is larger, or a small window is full
_TOKENS_BELOW_TRIGGER = 40_000  # what it clears at least is so much less, in a window of 200,000


class OldResults(NamedTuple):
    """Results that may be cleared, oldest first, and the thinking behind the first of them.

    An index of a message counts from the start of the conversation.
    """

    results: Sequence[tuple[int, ResultFacts]] = ()  # each with the index of its message
    thinking: Sequence[tuple[int, int, str]] = ()  # the indexes of message and block, and the hash


def old_results(facts: Sequence[MessageFacts], request: ContextRequest) -> OldResults:
    """Return the results to clear from a conversation.

    The newest results stay, and only results that were sent whole so far are cleared. There are
    none

    - if clearing is off, for a sub-agent or a fork, or if the client cannot read stored results or
      its server manages the history,
    - if the conversation was idle under an hour or is in the middle of a turn,
    - if clearing would also drop thinking blocks that must stay.
    """
    server_clears = request.supports & {CONTEXT_MANAGEMENT, MANAGED, THREAD}
    is_on = request.settings.context.clear and request.reader and not request.conversation
    if server_clears or not is_on:
        return OldResults()
    newest_exchange = facts[exchange_start(facts) :]
    has_calls = any(fact.calls or fact.results for fact in newest_exchange)
    speaker = next((fact.role for fact in reversed(facts) if fact.role != SYSTEM), "")
    if request.idle_seconds < _IDLE_SECONDS or has_calls or speaker != USER:
        return OldResults()
    clearable = [
        (message, result)
        for message, fact in enumerate(facts)
        for result in fact.results
        if history.tool_kind(result.tool) in _CLEARED_TOOLS
    ]
    results = [
        each for each in clearable[:-_NEWEST_RESULTS] if _is_whole(each[1], request.decisions)
    ]
    thinking = _thinking_behind(facts, results[0][0], request.decisions) if results else []
    if thinking and not (request.may_drop_thinking and _leaves_messages(facts, thinking)):
        return OldResults()
    return OldResults(results, thinking)


def request_members(request: ContextRequest, window: int) -> Mapping[str, Any]:
    """Return the members to add to a request so that the server clears old results itself.

    They are an empty dict if the model does not support it, if the request names no tools, or if
    earlier requests were sent without. ``window`` is in tokens. The trigger of earlier requests is
    used again.
    """
    client_manages = request.supports & {MANAGED, THREAD}
    if CONTEXT_MANAGEMENT not in request.supports or client_manages:
        return {}
    if request.tools is None or request.members == {}:
        return {}
    clearing_edit = _earlier_edit(request.members) or _clearing_edit(request, window)
    edits = [clearing_edit]
    # A server refuses the thinking edit in a request without thinking, and wants it first.
    if THINKING in request.supports:
        one_turn = {"type": "thinking_turns", "value": 1}
        retained = one_turn if request.may_drop_thinking else "all"
        edits = [{"type": "clear_thinking_20251015", "keep": retained}, clearing_edit]
    return {"context_management": {"edits": edits}, "betas": [BETA]}


def _earlier_edit(members: Mapping[str, Any] | None) -> Any:
    """Return the edit that clears tool results from the members of earlier requests, if any."""
    management = members.get("context_management") if members else None
    edits = management.get("edits") if isinstance(management, Mapping) else None
    return edits[-1] if isinstance(edits, list) and edits else None


def _clearing_edit(request: ContextRequest, window: int) -> dict[str, Any]:
    """Return the server's edit that clears tool results, with sizes for a window in tokens."""
    limits = history.thresholds(window)
    is_compacted = request.settings.context.compact and not request.conversation
    # Where memd compacts, the server clears before that becomes necessary.
    trigger = limits.warn if is_compacted else min(_TRIGGER_TOKENS, limits.effective)
    usual_part = min(window, history.WINDOW)  # a smaller window clears less, in proportion
    least_cleared = trigger - _TOKENS_BELOW_TRIGGER * usual_part // history.WINDOW
    names = {str(tool.get("name")) for tool in request.tools or () if isinstance(tool, Mapping)}
    excluded = {name for name in names if history.tool_kind(name) not in _CLEARED_TOOLS}
    return {
        "type": "clear_tool_uses_20250919",
        "trigger": {"type": "input_tokens", "value": trigger},
        "keep": {"type": "tool_uses", "value": _NEWEST_RESULTS},
        "clear_at_least": {"type": "input_tokens", "value": least_cleared},
        "exclude_tools": sorted((excluded | {request.reader}) - {""}),
    }


def _is_whole(result: ResultFacts, decisions: Decisions) -> bool:
    """Return whether an old result was sent whole; short ones have no hash and are not cleared."""
    decision = decision_on(result, decisions)
    return bool(result.content_hash) and (decision is None or decision.action == KEEP)


def _thinking_behind(
    facts: Sequence[MessageFacts], message: int, decisions: Decisions
) -> list[tuple[int, int, str]]:
    """Return the thinking blocks behind a message that are still sent."""
    dropped = {key for key, decision in decisions.items() if decision.action == DROP}
    return [
        (later, block, digest)
        for later in range(message + 1, len(facts))
        for block, digest in facts[later].thinking
        if BlockKey("", digest) not in dropped
    ]


def _leaves_messages(
    facts: Sequence[MessageFacts], thinking: Sequence[tuple[int, int, str]]
) -> bool:
    """Return whether no message would be empty without these thinking blocks."""
    fact_of = (facts[message] for message, _, _ in thinking)
    return all(len(fact.thinking) < len(fact.kinds) for fact in fact_of)
