"""Decide where a list of messages of the Messages API may be cut. Pure.

Rules of this file
- A cut does not separate the records of one reply (they share its id), a call from its result, or a
  system message from the one before it.
- Messages before the last boundary were compacted already and are not considered.
- Thinking blocks are signed together with all messages before them, so a cut removes them.
- Nothing is cut if the API would refuse the messages afterwards.
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
    """Return the index of the first message behind the last boundary, 0 without one."""
    places = (place for place, message in enumerate(messages) if _is_boundary(message))
    return max(places, default=-1) + 1


def rounds(messages: Sequence[Mapping[str, Any]]) -> tuple[int, ...]:
    """Return the indexes behind the last boundary before which the messages may be cut.

    At each of them a reply begins.
    """
    bottom = floor(messages)
    turns = turns_of(messages, bottom) or []
    needed, places = lowest(turns), beginnings(turns, bottom)
    replies = (n for n, turn in enumerate(turns) if turn.role == "assistant")
    return tuple(places[n] for n in replies if needed[n] == n)


def tail(messages: Sequence[Mapping[str, Any]], start: int) -> Tail | None:
    """Return the end of a conversation that stays if the messages before it are summarised.

    It has all messages from ``start`` on, and as many before as make 10,000 tokens and 5 messages
    with text, but not more than 40,000 tokens. It is then extended back, even beyond that size, to
    a place where a cut is allowed. ``None`` if a call is open, if messages are misshapen, or if a
    later cut would still leave more than 40,000 tokens.
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
    # A call of the newest reply may still be running, even if the person wrote since.
    newest = max((n for n, turn in enumerate(turns) if turn.role == "assistant"), default=at)
    if sum(sizes[second:]) > MOST_TOKENS or not is_whole(turns[min(at, needed[newest]) :]):
        return None
    return _tail(messages, turns, at, bottom)


def ending(messages: Sequence[Mapping[str, Any]], start: int | None = None) -> Tail | None:
    """Return the end that stays if all messages before it are summarised, of any length.

    It begins at the last index of ``rounds`` up to ``start``. Without ``start`` it is the person's
    last message if it has no reply yet, else empty. ``None`` if there is no such index, if a call
    is open or if messages are misshapen.
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
    """Return the end of a conversation from the turn at the index ``at`` on."""
    first = [*beginnings(turns, bottom), len(messages)][at]
    return Tail(tuple(turn.rendered() for turn in turns[at:]), first, bottom)


def _is_boundary(message: Any) -> bool:
    """Return whether a message is a boundary, which replaces all messages before it."""
    if not isinstance(message, dict):
        return False
    if message.get("isCompactSummary") is True or message.get("subtype") == "compact_boundary":
        return True  # a boundary of Claude Code
    content = message.get("content")
    # The server ignores a compaction without content, which failed.
    return (message.get("role") == "user" and opening(message).startswith(SUMMARY)) or any(
        isinstance(block, dict) and block.get("type") == "compaction" and block.get("content")
        for block in (content if isinstance(content, list) else ())
    )
