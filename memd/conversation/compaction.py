"""A conversation in which a text stands for some of its messages. Pure.

Rules of this file
- There is a plan only where it helps: the result is smaller, and it stays below the size at which
  compacting begins again.
- The text stands between memd's tags, and nothing in it can close them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from memd.conversation.counting import count, estimate, thresholds
from memd.conversation.pieces import message_id, string
from memd.core.text import sha256
from memd.text import quoting, tags

SUMMARY = f"<{tags.MEMD_TAG} covers="  # how a message begins that stands for all before it
_WHOLE = "The whole conversation is in {}"
_STORED, _MOST_STORED = "Results of tools that are stored:", 50
PART = f"<{tags.MEMD_TAG} part="  # and one that stands for messages in the middle


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a conversation that stays: ``messages[first:]``, as the API takes it.

    What stands before ``floor`` was compacted earlier.
    """

    messages: tuple[dict[str, Any], ...]
    first: int
    floor: int


@dataclass(frozen=True, slots=True)
class PreservedMessages:
    """The first and the last message that stay, and the one that they now follow, by their ids."""

    head: str
    anchor: str
    tail: str


@dataclass(frozen=True, slots=True)
class CompactionBoundary:
    """What is behind a boundary is the conversation from then on.

    ``compacted_message`` is the last message that was replaced, ``pre_tokens`` the context's size
    before. ``discovered_tools`` are those that were made known in what was replaced. Without
    ``preserved`` no message stays.
    """

    type: str
    pre_tokens: int
    compacted_message: str
    discovered_tools: tuple[str, ...]
    preserved: PreservedMessages | None
    strategy: str


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """A conversation's new messages: the text, then what stays of ``messages[keep_from:]``.

    The first ``keep_to`` messages stay before them, unchanged. ``tokens`` is the context's size
    afterwards.
    """

    boundary: CompactionBoundary
    messages: tuple[dict[str, Any], ...]
    keep_from: int
    tokens: int
    keep_to: int = 0


def opened(covers: str, form: str = SUMMARY) -> str:
    """Return the tag that opens the text in the place of messages up to one with this id."""
    return f'{form}"{quote(covers, errors="replace")}">'


def compacted(
    messages: Sequence[Mapping[str, Any]],
    tail: Tail,
    text: str,
    *,
    strategy: str,
    trigger: str,
    window: int,
    covers: str | None = None,
    keep_to: int = 0,
    transcript: str = "",
    folder: str = "",
) -> CompactionPlan | None:
    """Return a plan with a text in the place of messages, ``None`` where that does not help.

    It stands for ``messages[keep_to:tail.first]``; ``covers`` is the id of the last message that
    it knows, by default the last of these. Behind it stand the paths of results that these name
    and that are stored in ``folder``, and that of the whole ``transcript``.
    """
    start = max(tail.floor - 1, 0)  # the message that stands for all before it
    stored = _stored(messages[max(start, keep_to) : tail.first], folder) if folder else ""
    whole = _WHOLE.format(transcript) if transcript else ""
    text = "\n\n".join(filter(None, (text, stored, whole)))
    last = message_id(messages[tail.first - 1], tail.first - 1)
    opening = opened(last if covers is None else covers, PART if keep_to else SUMMARY)
    content = f"{opening}\n{quoting.neutralise(string(text))}\n{tags.CLOSE}"
    anchor = f"memd-{strategy}-{sha256(content.encode('utf-8', 'replace'))[:8]}"
    named = {name: anchor for name in ("id", "uuid") if any(name in m for m in messages)}
    new = ({"role": "user", **named, "content": content}, *tail.messages)
    tokens = _tokens(messages[start:], (*messages[start:keep_to], *new))
    if tokens is None or tokens > thresholds(window).auto:
        return None
    edge = boundary(
        messages, tail, strategy=strategy, trigger=trigger, anchor=anchor, start=keep_to
    )
    return CompactionPlan(edge, new, tail.first, tokens, keep_to)


def boundary(
    messages: Sequence[Mapping[str, Any]],
    tail: Tail,
    *,
    strategy: str,
    trigger: str,
    anchor: str = "",
    start: int = 0,
) -> CompactionBoundary:
    """Return the boundary where ``messages[start:tail.first]`` are replaced.

    ``anchor`` is the id of the message in their place, "" where the API makes it.
    """
    places = (tail.first - 1, tail.first, len(messages) - 1)
    last, head, end = (message_id(messages[min(p, len(messages) - 1)], p) for p in places)
    return CompactionBoundary(
        trigger,
        count(messages[max(tail.floor - 1, 0) :]).tokens,
        last,
        tuple(sorted(set(_discovered(messages[start : tail.first])))),
        PreservedMessages(head, anchor, end) if tail.messages else None,
        strategy,
    )


def opening(message: Mapping[str, Any]) -> str:
    """Return the text that a message begins with, "" if it begins with something else."""
    content = message.get("content")
    if isinstance(content, list) and content and isinstance(content[0], dict):
        content = content[0].get("text")
    return content if isinstance(content, str) else ""


def summary_of(message: Mapping[str, Any]) -> str:
    """Return what a message says in the place of others, "" for any other message."""
    return summary_and_rest(message)[0]


def summary_and_rest(message: Mapping[str, Any]) -> tuple[str, Any]:
    """Return what a message says in the place of others, and what else its content is.

    Clients join neighbours of one role, and so a summary and what the person says next.
    """
    text, content = opening(message), message.get("content")
    blocks = content if isinstance(content, list) else []
    if text.startswith((SUMMARY, PART)):
        summary, _, rest = text.partition("\n")[2].partition(tags.CLOSE)
        return summary, [{"type": "text", "text": rest}, *blocks[1:]]
    if message.get("isCompactSummary") is True:
        return text, blocks[1:]
    compactions = [b for b in blocks if isinstance(b, dict) and b.get("type") == "compaction"]
    summary = string(compactions[0].get("content")) if compactions else ""
    return summary, content


def _stored(messages: Sequence[Mapping[str, Any]], folder: str) -> str:
    """Return where the results in a folder are that messages name, the newest of them."""
    named = re.compile(rf"\d+ bytes, \d+ lines, whole at: {re.escape(folder)}/[\w-]+\.\w+")
    texts = [summary_of(message) for message in messages]
    texts += [
        string(block.get("content"))
        for message in messages
        for block in _listed(message.get("content"))
        if block.get("type") == "tool_result"
    ]
    lines = dict.fromkeys(line for text in texts for line in named.findall(text))
    return "\n".join((_STORED, *list(lines)[-_MOST_STORED:])) if lines else ""


def _listed(content: Any) -> list[Mapping[str, Any]]:
    return [b for b in content if isinstance(b, Mapping)] if isinstance(content, list) else []


def _tokens(live: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]) -> int | None:
    """Return the context's size with the new messages, ``None`` if that is not smaller."""
    before = count(live)
    old_size, size = (estimate([m.get("content") for m in given]) for given in (live, new))
    if size >= old_size:
        return None
    if before.source == "estimate":
        return count(new).tokens
    # What was counted has the system prompt and the tools in it, and these stay.
    return max(size, before.tokens - (old_size - size))


def _discovered(value: Any) -> Iterator[str]:
    """Yield the names of tools that messages made known; a call's input is the tool's own."""
    if isinstance(value, dict):
        kind = str(value.get("type"))
        if kind.endswith("tool_reference"):
            yield str(value.get("tool_name") or value.get("name"))
        value = () if kind.endswith(("tool_use", "tool_removal")) else tuple(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from _discovered(item)
