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

# Of the end of a conversation that stays (``tail``); texts are messages with text.
LEAST_TOKENS, LEAST_TEXTS, MOST_TOKENS = 10_000, 5, 40_000


def floor(messages: Sequence[Mapping[str, Any]]) -> int:
    """Return the index of the first message behind the last boundary, 0 without one."""
    boundaries = (index for index, message in enumerate(messages) if _is_boundary(message))
    return max(boundaries, default=-1) + 1


def rounds(messages: Sequence[Mapping[str, Any]]) -> tuple[int, ...]:
    """Return the indexes behind the last boundary before which the messages may be cut.

    At each of them a reply begins.
    """
    bottom = floor(messages)
    turns = turns_of(messages, bottom) or []
    needed, first_messages = lowest(turns), beginnings(turns, bottom)
    replies = (n for n, turn in enumerate(turns) if turn.role == "assistant")
    # No turn from a cut on may need a turn before the cut.
    return tuple(first_messages[n] for n in replies if needed[n] == n)


def tail(messages: Sequence[Mapping[str, Any]], start: int) -> Tail | None:
    """Return the end of a conversation that stays if the messages before it are summarised.

    It has all messages from ``start`` on, and as many before as make 10,000 tokens and 5 messages
    with text, but not more than 40,000 tokens. It is then extended back, even beyond that size, to
    a place where a cut is allowed. The result is ``None`` if a call is open, if messages are
    misshapen, or if a later cut would still leave more than 40,000 tokens.
    """
    bottom = floor(messages)
    turns = turns_of(messages, bottom)
    if not turns:
        return None
    sizes = [estimate(turn.blocks) for turn in turns]
    first = next((n for n, turn in enumerate(turns) if turn.last >= start), len(turns))
    tokens, texts = sum(sizes[first:]), sum(turn.speaks for turn in turns[first:])
    while first and (tokens < LEAST_TOKENS or texts < LEAST_TEXTS):
        has_turns = first < len(turns)
        if has_turns and tokens + sizes[first - 1] > MOST_TOKENS:
            break
        first -= 1
        tokens, texts = tokens + sizes[first], texts + turns[first].speaks
    needed = lowest(turns)
    while needed[first] < first:
        first -= 1
    next_cut = next((n for n in range(first + 1, len(turns)) if needed[n] == n), len(turns))
    if sum(sizes[next_cut:]) > MOST_TOKENS:
        return None
    # A call of the newest reply may still be running, even if the person wrote since.
    newest_reply = max(
        (n for n, turn in enumerate(turns) if turn.role == "assistant"), default=first
    )
    if not is_whole(turns[min(first, needed[newest_reply]) :]):
        return None
    return _tail(messages, turns, first, bottom)


def ending(messages: Sequence[Mapping[str, Any]], start: int | None = None) -> Tail | None:
    """Return the end that stays if all messages before it are summarised, of any length.

    It begins at the last index of ``rounds`` up to ``start``. Without ``start`` it is the person's
    last message if it has no reply yet, else empty. The result is ``None`` if there is no such
    index, if a call is open or if messages are misshapen.
    """
    bottom = floor(messages)
    turns = turns_of(messages, bottom)
    if not turns or not is_whole(turns):
        return None
    if start is None:
        last = max((n for n, turn in enumerate(turns) if turn.role != "system"), default=0)
        has_results = any(block["type"] == "tool_result" for block in turns[last].blocks)
        waits_for_reply = turns[last].role == "user" and not has_results
        return _tail(messages, turns, last if waits_for_reply else len(turns), bottom)
    cut = max((index for index in rounds(messages) if index <= start), default=bottom)
    if cut <= bottom:
        return None
    first = max(n for n, index in enumerate(beginnings(turns, bottom)) if index == cut)
    return _tail(messages, turns, first, bottom)


def _tail(
    messages: Sequence[Mapping[str, Any]], turns: Sequence[HistoryTurn], first: int, bottom: int
) -> Tail:
    """Return the end of a conversation from the turn at the index ``first`` on.

    ``bottom`` is the index of the first message behind the last boundary.
    """
    first_message = [*beginnings(turns, bottom), len(messages)][first]
    return Tail(tuple(turn.rendered() for turn in turns[first:]), first_message, bottom)


def _is_boundary(message: Any) -> bool:
    """Return whether a message is a boundary, which replaces all messages before it."""
    if not isinstance(message, dict):
        return False
    if message.get("isCompactSummary") is True or message.get("subtype") == "compact_boundary":
        return True  # a boundary of Claude Code
    if message.get("role") == "user" and opening(message).startswith(SUMMARY):
        return True  # a summary of memd
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    # The server ignores a compaction without content, which failed.
    return any(
        isinstance(block, dict) and block.get("type") == "compaction" and block.get("content")
        for block in blocks
    )
