"""Select the new tool results that are stored and replaced by their first bytes. Pure.

Rules of this file
- Only results behind the newest reply are stored: earlier ones were already sent whole.
- Results of the reading tool, failed ones and those with other blocks than text are never stored.
- Results over their tool's limit are stored first, then the largest ones until the results fit
  the message budget and the window.
"""

from collections.abc import Sequence

from memd.base.canonical import LEAST_CHARACTERS, text_of
from memd.base.settings import Settings
from memd.context import sizing
from memd.context.facts import exchange_start
from memd.context.requests import ContextRequest
from memd.context.values import Decisions, MessageFacts, ResultFacts, decision_on
from memd.conversation import history
from memd.conversation.history import estimate_text

SMALL = "small"  # reason why a result is not stored: it is within its tool's limit
# Characters of a result that is sent whole, by the kind of its tool.
_USUAL_LIMIT = 50_000
_LIMIT_OF_KIND = {"shell": 30_000, "search": 20_000}
_MCP_LIMIT, _MCP_PREFIX = 100_000, "mcp__"
_MOST_CHARACTERS = 200_000  # of the results behind the newest reply
_REPLACEMENT_TOKENS = LEAST_CHARACTERS // 4  # more than the replacement of a result has

PlacedResult = tuple[int, ResultFacts]  # the index of its message, and the result


def reason_to_stay(tool: str, characters: int, request: ContextRequest) -> str:
    """Return the reason why a tool's result stays in the conversation, "" if it is to be stored."""
    if not request.settings.context.spill:
        return "off"
    if not request.reader:
        return "no_reader"
    if tool == request.reader:
        return "reader"
    return SMALL if characters <= character_limit(tool, request.settings) else ""


def character_limit(tool: str, settings: Settings) -> int:
    """Return how many characters of a tool's result are sent whole."""
    if tool.startswith(_MCP_PREFIX):
        usual = _MCP_LIMIT
    else:
        usual = _LIMIT_OF_KIND.get(history.tool_kind(tool), _USUAL_LIMIT)
    # Shorter results are never stored, whatever the settings say.
    return max(settings.context.limits.get(tool, usual), LEAST_CHARACTERS - 1)


def large_results(
    facts: Sequence[MessageFacts],
    undecided: Sequence[PlacedResult],
    request: ContextRequest,
) -> list[PlacedResult]:
    """Return the results to store: those over their tool's limit, and the largest of the rest.

    The rest are stored, largest first, while the results behind the newest reply have too many
    characters or the conversation reaches the level ``block``.
    """
    start = exchange_start(facts)
    reasons = {
        (message, result): reason_to_stay(result.tool, result.characters, request)
        for message, result in undecided
        if message >= start and not result.failed
    }
    to_store = [placed for placed, reason in reasons.items() if not reason]
    small = [placed for placed, reason in reasons.items() if reason == SMALL]
    small.sort(key=lambda placed: placed[1].characters)
    # The characters of the results and the tokens of the conversation after storing.
    new_results = [result for fact in facts[start:] for result in fact.results]
    characters = sum(_characters_sent(result, request.decisions) for result in new_results)
    characters -= sum(_characters_saved(result) for _, result in to_store)
    tokens = sizing.count(facts).tokens
    tokens -= sum(_tokens_saved(request, message, result) for message, result in to_store)
    most_tokens = sizing.thresholds(sizing.window_of(request)).block
    while small and (characters > _MOST_CHARACTERS or tokens >= most_tokens):
        message, largest = small.pop()
        characters -= _characters_saved(largest)
        tokens -= _tokens_saved(request, message, largest)
        to_store.append((message, largest))
    return to_store


def _characters_saved(result: ResultFacts) -> int:
    """Return how many characters storing a result saves at least."""
    return result.characters - LEAST_CHARACTERS


def _tokens_saved(request: ContextRequest, message: int, result: ResultFacts) -> int:
    """Return how many tokens storing a result saves at least."""
    return estimate_text(result_text(request, message, result.block)) - _REPLACEMENT_TOKENS


def _characters_sent(result: ResultFacts, decisions: Decisions) -> int:
    """Return how many characters are sent for a result: its own or its replacement's."""
    decision = decision_on(result, decisions)
    return len(decision.content) if decision and decision.content else result.characters


def result_text(request: ContextRequest, message: int, block: int) -> str:
    """Return the text of a result by the indexes of its message and block."""
    content = request.messages[message]["content"][block]["content"]
    return text_of(content) or ""
