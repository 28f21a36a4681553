"""Where a conversation is cut, and what stands for what goes. Pure.

Rules of this file
- Messages are cut where no call and no reply is torn; what was compacted before is not cut again.
- What stays is as it was, without thinking, which is bound to all that stood before it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from memd.context import local, summary
from memd.context.requests import ContextEdit
from memd.conversation import history
from memd.core.canonical import THINKING

NOTES, API, MODEL, LOCAL = "notes", "api", "model", "local"
STRATEGIES = (NOTES, API, MODEL, LOCAL)
COMPACT_BETA = "compact-2026-09-04"
# What a request that summarises may not have.
_REMOVED = (
    "context_management",
    "stop_sequences",
    "output_format",
    "output_config.format",
    "tool_choice",
)
# How a summary begins, and how many tokens of the person's messages it has.
_FORMS = {
    MODEL: (summary.LEAD, summary.TOKENS),
    LOCAL: (local.LEAD, local.PERSONS_TOKENS),
}


@dataclass(frozen=True, slots=True)
class SummarisedPart:
    """The messages that a summary stands for: ``[start:tail.first]``; ``keep_to`` stay before."""

    tail: history.Tail
    start: int
    keep_to: int = 0


@dataclass(frozen=True, slots=True)
class RequestChange:
    """How a client changes its last request: members to set and to leave out, betas to add.

    A name with a dot is a member of a member; ``tool_choice`` goes where it forces a call.
    """

    set: Mapping[str, Any]
    remove: tuple[str, ...]
    betas: tuple[str, ...]


def part(
    messages: Sequence[Mapping[str, Any]], *, first: int | None = None, up_to: int | None = None
) -> SummarisedPart | None:
    """Return what is summarised: all, what is from ``first`` on, or what is before ``up_to``.

    Both are moved back to where a round begins. ``None`` where there is nothing that may be cut.
    """
    tail = history.ending(messages, up_to)
    start, keep_to = 0, 0
    if tail is not None and first is not None:
        edge = history.ending(messages, first)
        start = keep_to = edge.first if edge else len(messages)
    elif tail is not None:
        start = max(tail.floor - 1, 0)  # with what stands for all before
    if tail is None or tail.first <= max(tail.floor, start):
        return None
    return SummarisedPart(tail, start, keep_to)


def with_end(messages: Sequence[Mapping[str, Any]], cut: SummarisedPart) -> SummarisedPart | None:
    """Return a part without the end of the conversation, ``None`` where that is all there is."""
    tail = history.tail(messages, len(messages))
    return replace(cut, tail=tail) if tail and tail.first > tail.floor else None


def plan(
    messages: Sequence[Mapping[str, Any]],
    cut: SummarisedPart,
    sections: Mapping[str, str],
    *,
    strategy: str,
    trigger: str,
    window: int,
    transcript: str,
    folder: str,
) -> history.CompactionPlan | None:
    """Return a plan with a summary's sections and all that the person said.

    It names the whole conversation's ``transcript``, if there is one, and what the messages have of
    results that are stored in ``folder``. ``None`` where it does not make enough room.
    """
    lead, room = _FORMS[strategy]
    gone = messages[cut.start : cut.tail.first]
    record = summary.written(lead, sections, summary.persons(gone), room)
    return history.compacted(
        messages,
        cut.tail,
        record,
        strategy=strategy,
        trigger=trigger,
        window=window,
        keep_to=cut.keep_to,
        transcript=transcript,
        folder=folder,
    )


def dropped(messages: Sequence[Mapping[str, Any]], first: int) -> tuple[ContextEdit, ...]:
    """Return the blocks that go from messages that stay."""
    return tuple(
        ContextEdit(number, place, "", None)
        for number, message in enumerate(messages[first:], first)
        for place, block in enumerate(_listed(message.get("content")))
        if block.get("type") in THINKING
    )


def by_api() -> RequestChange:
    """Return how a request has the API summarise what it sends."""
    return RequestChange({"compaction": {"type": "summarize"}}, _REMOVED, (COMPACT_BETA,))


def _listed(content: Any) -> list[Mapping[str, Any]]:
    blocks = content if isinstance(content, list) else []
    return [block if isinstance(block, Mapping) else {} for block in blocks]
