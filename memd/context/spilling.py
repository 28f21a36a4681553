"""Select the new tool results that are stored and replaced by their first bytes. Pure.

Rules of this file
- Only results behind the newest reply are stored: earlier ones were already sent whole.
- Results of the reading tool, failed ones and those with other blocks than text are never stored.
- Results over their tool's limit are stored first, then the largest ones until the results fit
  the message budget and the window.
"""

from collections.abc import Sequence

from memd.context import sizing
from memd.context.facts import exchange_start
from memd.context.requests import ContextRequest
from memd.context.values import BlockKey, Decisions, MessageFacts, ResultFacts
from memd.conversation import history
from memd.conversation.history import estimate_text
from memd.core.canonical import LEAST_CHARACTERS, text_of
from memd.core.settings import Settings

SMALL = "small"  # reason why a result is not stored: it is within its tool's limit
_LIMIT, _MCP_LIMIT, _MCP = 50_000, 100_000, "mcp__"
_LIMITS = {"shell": 30_000, "search": 20_000}
_MESSAGE_LIMIT = 200_000  # characters of the results of one message
_SHOWN_TOKENS = LEAST_CHARACTERS // 4  # more than the replacement of a result has

PlacedResult = tuple[int, ResultFacts]


def stays(tool: str, characters: int, request: ContextRequest) -> str:
    """Return the reason why a tool's result stays in the conversation, "" if it is to be stored."""
    if not request.settings.context.spill:
        return "off"
    if not request.reader:
        return "no_reader"
    if tool == request.reader:
        return "reader"
    return SMALL if characters <= limit(tool, request.settings) else ""


def limit(tool: str, settings: Settings) -> int:
    """Return how many characters of a tool's result are sent whole."""
    usual = _MCP_LIMIT if tool.startswith(_MCP) else _LIMITS.get(history.tool_kind(tool), _LIMIT)
    return max(settings.context.limits.get(tool, usual), LEAST_CHARACTERS - 1)


def large_results(
    facts: Sequence[MessageFacts],
    undecided: Sequence[PlacedResult],
    decisions: Decisions,
    request: ContextRequest,
) -> list[PlacedResult]:
    """Return the results to store: those over their tool's limit, and the largest of the rest.

    The rest are stored, largest first, while the results behind the newest reply have too many
    characters or the conversation reaches the level ``block``.
    """
    start = exchange_start(facts)
    reasons = {
        each: stays(each[1].tool, each[1].characters, request)
        for each in undecided
        if each[0] >= start and not each[1].failed
    }
    chosen = [each for each, reason in reasons.items() if not reason]
    small = [each for each, reason in reasons.items() if reason == SMALL]
    small.sort(key=lambda each: each[1].characters)
    block = sizing.thresholds(sizing.window_of(request)).block
    characters = sum(
        _characters_sent(each, decisions) for fact in facts[start:] for each in fact.results
    )
    characters -= sum(result.characters - LEAST_CHARACTERS for _, result in chosen)
    tokens = sizing.count(facts).tokens - sum(_tokens_saved(request, *each) for each in chosen)
    while small and (characters > _MESSAGE_LIMIT or tokens >= block):
        largest = small.pop()
        characters -= largest[1].characters - LEAST_CHARACTERS
        tokens -= _tokens_saved(request, *largest)
        chosen.append(largest)
    return chosen


def _tokens_saved(request: ContextRequest, message: int, result: ResultFacts) -> int:
    """Return how many tokens storing a result saves at least."""
    return estimate_text(result_text(request, message, result.block)) - _SHOWN_TOKENS


def _characters_sent(result: ResultFacts, decisions: Decisions) -> int:
    """Return how many characters are sent for a result: its own or its replacement's."""
    decision = decisions.get(BlockKey(result.tool_use_id, result.content_hash))
    return len(decision.content) if decision and decision.content else result.characters


def result_text(request: ContextRequest, message: int, block: int) -> str:
    """Return the text of a result of the request's messages; indexes are the conversation's."""
    content = request.messages[message - request.place]["content"][block]["content"]
    return text_of(content) or ""
