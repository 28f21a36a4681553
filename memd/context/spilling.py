"""Which new results of tools are stored, and their beginning sent. Pure.

Rules of this file
- Only a result behind the newest reply may be stored: what a reply followed was sent whole.
- What the reading tool says, what failed and what is more than text stays, or it could not be read.
- Results go over the limit of their tool first, then the largest of one message, until that fits
  its budget and the window.
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

SMALL = "small"  # why a result is not stored: its tool's limit does not ask for it
_LIMIT, _MCP_LIMIT, _MCP = 50_000, 100_000, "mcp__"
_LIMITS = {"shell": 30_000, "search": 20_000}
_MESSAGE_LIMIT = 200_000  # characters of the results of one message
_SHOWN_TOKENS = LEAST_CHARACTERS // 4  # what stands for a result has fewer

PlacedResult = tuple[int, ResultFacts]


def stays(tool: str, characters: int, request: ContextRequest) -> str:
    """Return why a result of some tool is not stored, "" where it may be."""
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
    """Return the results that should be stored: large ones, and the largest of a large message."""
    start = exchange_start(facts)
    reasons = {
        each: stays(each[1].tool, each[1].characters, request)
        for each in undecided
        if each[0] >= start and not each[1].failed
    }
    chosen = [each for each, reason in reasons.items() if not reason]
    others = [each for each, reason in reasons.items() if reason == SMALL]
    others.sort(key=lambda each: each[1].characters)
    block = sizing.thresholds(sizing.window_of(request)).block
    characters = sum(_sent(each, decisions) for fact in facts[start:] for each in fact.results)
    characters -= sum(result.characters - LEAST_CHARACTERS for _, result in chosen)
    tokens = sizing.count(facts).tokens - sum(_room(request, *each) for each in chosen)
    while others and (characters > _MESSAGE_LIMIT or tokens >= block):
        largest = others.pop()
        characters -= largest[1].characters - LEAST_CHARACTERS
        tokens -= _room(request, *largest)
        chosen.append(largest)
    return chosen


def _room(request: ContextRequest, message: int, result: ResultFacts) -> int:
    """Return how many tokens storing a result saves at least."""
    return estimate_text(result_text(request, message, result.block)) - _SHOWN_TOKENS


def _sent(result: ResultFacts, decisions: Decisions) -> int:
    """Return how many characters of a result are sent."""
    decision = decisions.get(BlockKey(result.tool_use_id, result.content_hash))
    return len(decision.content) if decision and decision.content else result.characters


def result_text(request: ContextRequest, message: int, block: int) -> str:
    """Return the text of a result among the new messages."""
    content = request.messages[message - request.place]["content"][block]["content"]
    return text_of(content) or ""
