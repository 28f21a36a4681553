"""A conversation as a list of messages of the Messages API: its size, its units, its end. Pure.

Rules of this file
- What belongs together is in the end of a conversation whole or not at all: the records of one
  reply (they share its id), a call and its result, a system message and what it follows.
- What stands before the last boundary was compacted already and is not counted among the messages.
- Thinking is bound to everything before it, so none of it outlives a cut.
- In doubt nothing is cut: messages that the API would refuse afterwards have no end that stays.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from memd.conversation.compaction import SUMMARY
from memd.conversation.compaction import CompactionBoundary as CompactionBoundary
from memd.conversation.compaction import CompactionPlan as CompactionPlan
from memd.conversation.compaction import Tail as Tail
from memd.conversation.compaction import boundary as boundary
from memd.conversation.compaction import compacted as compacted
from memd.conversation.compaction import opened as opened
from memd.conversation.compaction import opening as opening
from memd.conversation.compaction import summary_and_rest as summary_and_rest
from memd.conversation.compaction import summary_of as summary_of
from memd.conversation.counting import WINDOW as WINDOW
from memd.conversation.counting import ContextMeter as ContextMeter
from memd.conversation.counting import count as count
from memd.conversation.counting import counted as counted
from memd.conversation.counting import estimate as estimate
from memd.conversation.counting import estimate_text as estimate_text
from memd.conversation.counting import thresholds as thresholds
from memd.conversation.counting import tokens_of as tokens_of
from memd.conversation.tools import members_of as members_of
from memd.conversation.tools import tool_kind as tool_kind
from memd.conversation.turns import HistoryTurn, beginnings, is_whole, lowest, turns_of
from memd.conversation.turns import blocks_of as blocks_of

LEAST_TOKENS, LEAST_TEXTS, MOST_TOKENS = 10_000, 5, 40_000


def floor(messages: Sequence[Mapping[str, Any]]) -> int:
    """Return the place behind the last boundary, 0 where nothing was compacted."""
    places = (place for place, message in enumerate(messages) if _bounds(message))
    return max(places, default=-1) + 1


def rounds(messages: Sequence[Mapping[str, Any]]) -> tuple[int, ...]:
    """Return the places behind the last boundary at which a list may be cut before a new reply."""
    bottom = floor(messages)
    turns = turns_of(messages, bottom) or []
    needed, places = lowest(turns), beginnings(turns, bottom)
    replies = (n for n, turn in enumerate(turns) if turn.role == "assistant")
    return tuple(places[n] for n in replies if needed[n] == n)


def tail(messages: Sequence[Mapping[str, Any]], start: int) -> Tail | None:
    """Return the end of a conversation that stays when what is before it is summarised.

    It holds all from ``start`` on, and as much before as makes 10,000 tokens and 5 messages with
    text, but stops before 40,000 tokens; what is begun is made whole even past these. ``None``
    where a call is open, where messages are misshapen, or where more has to stay than may.
    """
    bottom = floor(messages)
    turns = turns_of(messages, bottom)
    if not turns:
        return None
    sizes = [estimate(turn.blocks) for turn in turns]
    at = next((n for n, turn in enumerate(turns) if turn.last >= start), len(turns))
    tokens, texts = sum(sizes[at:]), sum(turn.speaks for turn in turns[at:])
    while at and (tokens < LEAST_TOKENS or texts < LEAST_TEXTS):
        if at < len(turns) and tokens + sizes[at - 1] > MOST_TOKENS:
            break
        at -= 1
        tokens, texts = tokens + sizes[at], texts + turns[at].speaks
    needed = lowest(turns)
    while needed[at] < at:
        at -= 1
    second = next((n for n in range(at + 1, len(turns)) if needed[n] == n), len(turns))
    # A call of the newest reply may still be running, whatever was typed meanwhile.
    newest = max((n for n, turn in enumerate(turns) if turn.role == "assistant"), default=at)
    if sum(sizes[second:]) > MOST_TOKENS or not is_whole(turns[min(at, needed[newest]) :]):
        return None
    return _tail(messages, turns, at, bottom)


def ending(messages: Sequence[Mapping[str, Any]], start: int | None = None) -> Tail | None:
    """Return the end that stays where all before it is summarised, however long that is.

    It begins at the last place of ``rounds`` up to ``start``; without one it is what the person
    said last and nobody answered, if anything. ``None`` where there is no such place, where a call
    is open or where messages are misshapen.
    """
    bottom = floor(messages)
    turns = turns_of(messages, bottom)
    if not turns or not is_whole(turns):
        return None
    if start is None:
        at = max((n for n, turn in enumerate(turns) if turn.role != "system"), default=0)
        last = turns[at]
        answered = last.role != "user" or any(b["type"] == "tool_result" for b in last.blocks)
        return _tail(messages, turns, len(turns) if answered else at, bottom)
    edge = max((place for place in rounds(messages) if place <= start), default=bottom)
    at = max(n for n, place in enumerate(beginnings(turns, bottom)) if place == edge)
    return _tail(messages, turns, at, bottom) if edge > bottom else None


def _tail(
    messages: Sequence[Mapping[str, Any]], turns: Sequence[HistoryTurn], at: int, bottom: int
) -> Tail:
    first = [*beginnings(turns, bottom), len(messages)][at]
    return Tail(tuple(turn.rendered() for turn in turns[at:]), first, bottom)


def _bounds(message: Any) -> bool:
    """Tell whether a message stands for all that was before it."""
    if not isinstance(message, dict):
        return False
    if message.get("isCompactSummary") is True or message.get("subtype") == "compact_boundary":
        return True  # Claude Code's
    content = message.get("content")
    # A compaction without content is one that failed, and the server ignores it.
    return (message.get("role") == "user" and opening(message).startswith(SUMMARY)) or any(
        isinstance(block, dict) and block.get("type") == "compaction" and block.get("content")
        for block in (content if isinstance(content, list) else ())
    )
