"""Select the messages that a summary replaces, and plan the compaction. Pure.

Rules of this file
- A cut separates no call from its result and splits no reply. Compacted messages are not cut again.
- Messages that stay lose only their thinking blocks, whose signatures cover what stood before.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from memd.base.canonical import THINKING
from memd.context import local, summary
from memd.context.requests import ContextEdit
from memd.conversation import history

NOTES, API, MODEL, LOCAL = "notes", "api", "model", "local"
STRATEGIES = (NOTES, API, MODEL, LOCAL)
COMPACT_BETA = "compact-2026-09-04"
# Members that a request for a summary may not have.
_REMOVED_MEMBERS = (
    "context_management",
    "stop_sequences",
    "output_format",
    "output_config.format",
    "tool_choice",
)
# The first sentence of a summary, and how many tokens the person's messages have in it.
_LEAD_AND_TOKENS = {
    MODEL: (summary.LEAD, summary.TOKENS),
    LOCAL: (local.LEAD, local.PERSONS_TOKENS),
}


class SummarisedPart(Struct, frozen=True):
    """The messages ``[start:tail.first]`` that a summary replaces; the first ``keep_to`` stay."""

    tail: history.Tail
    start: int
    keep_to: int = 0


class RequestChange(Struct, frozen=True):
    """How a client changes its last request: members to set, members to remove, betas to add.

    A name with a dot is a member of a member. ``tool_choice`` is removed if it forces a call.
    """

    set: Mapping[str, Any]
    remove: tuple[str, ...]
    betas: tuple[str, ...]


def part_to_summarise(
    messages: Sequence[Mapping[str, Any]], *, first: int | None = None, up_to: int | None = None
) -> SummarisedPart | None:
    """Return the messages to summarise: all, those from ``first`` on, or those before ``up_to``.

    Both indexes are moved back to the start of a round. The result is ``None`` if nothing may be
    cut.
    """
    tail = history.ending(messages, up_to)
    if tail is None:
        return None
    start, keep_to = 0, 0
    if first is not None:
        edge = history.ending(messages, first)
        start = keep_to = edge.first if edge else len(messages)
    else:
        start = max(tail.floor - 1, 0)  # the boundary message, an earlier summary, is included
    if tail.first <= max(tail.floor, start):  # there is no message to summarise
        return None
    return SummarisedPart(tail, start, keep_to)


def without_newest(
    messages: Sequence[Mapping[str, Any]], part: SummarisedPart
) -> SummarisedPart | None:
    """Return a part without the newest messages; ``None`` if there are no others."""
    tail = history.tail(messages, len(messages))
    return replace(part, tail=tail) if tail and tail.first > tail.floor else None


def plan(
    messages: Sequence[Mapping[str, Any]],
    part: SummarisedPart,
    sections: Mapping[str, str],
    *,
    strategy: str,
    trigger: str,
    window: int,
    transcript: str,
    folder: str,
) -> history.CompactionPlan | None:
    """Return a compaction plan whose summary has these sections and the person's messages.

    The summary names the ``transcript`` of the whole conversation, "" for none, and the results of
    the messages that are stored in ``folder``. ``window`` is in tokens. The plan is ``None`` if
    compacting saves too few tokens.
    """
    lead, persons_tokens = _LEAD_AND_TOKENS[strategy]
    replaced = messages[part.start : part.tail.first]
    record = summary.summary_text(
        lead, sections, summary.persons_messages(replaced), persons_tokens
    )
    return history.compacted(
        messages,
        part.tail,
        record,
        strategy=strategy,
        trigger=trigger,
        window=window,
        keep_to=part.keep_to,
        transcript=transcript,
        folder=folder,
    )


def thinking_removals(messages: Sequence[Mapping[str, Any]], first: int) -> tuple[ContextEdit, ...]:
    """Return the edits that remove all thinking blocks of the messages from ``first`` on."""
    return tuple(
        ContextEdit(index, block_index, "", None)
        for index, message in enumerate(messages[first:], first)
        for block_index, block in enumerate(_block_mappings(message.get("content")))
        if block.get("type") in THINKING
    )


def api_request_change() -> RequestChange:
    """Return how a client changes its request so that the API summarises the conversation."""
    return RequestChange({"compaction": {"type": "summarize"}}, _REMOVED_MEMBERS, (COMPACT_BETA,))


def _block_mappings(content: Any) -> list[Mapping[str, Any]]:
    """Return the blocks of a content; an empty mapping stands for a misshapen block."""
    blocks = content if isinstance(content, list) else []
    return [block if isinstance(block, Mapping) else {} for block in blocks]
