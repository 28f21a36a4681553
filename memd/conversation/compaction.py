"""Plan a compacted conversation, in which a text replaces some of the messages. Pure.

Rules of this file
- There is a plan only if the result is smaller and below the size at which compacting begins again.
- The text stands between memd's tags, and nothing in it can close them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from memd.base.text import sha256
from memd.conversation.counting import count, estimate, thresholds
from memd.conversation.pieces import message_id, string
from memd.text import quoting, tags

SUMMARY = f"<{tags.MEMD_TAG} covers="  # the start of a message that replaces all before it
PART = f"<{tags.MEMD_TAG} part="  # the start of one that replaces messages in the middle
_TRANSCRIPT_LINE = "The whole conversation is in {}"
_STORED_HEADING, _MOST_STORED = "Results of tools that are stored:", 50


class Tail(Struct, frozen=True):
    """The end of a conversation that stays: ``messages[first:]`` in the form of the API."""

    messages: tuple[dict[str, Any], ...]
    first: int  # the index of its first message in the conversation
    floor: int  # the messages before this index were compacted earlier


class PreservedMessages(Struct, frozen=True):
    """The ids of the first and the last message that stay, and of the one that they now follow."""

    head: str
    anchor: str
    tail: str


class CompactionBoundary(Struct, frozen=True):
    """The facts of a compaction; only messages behind the boundary are sent from then on.

    ``compacted_message`` is the id of the last replaced message, ``pre_tokens`` the context's size
    before. ``discovered_tools`` are tools that the replaced messages made known. ``preserved`` is
    ``None`` if no message stays.
    """

    type: str
    pre_tokens: int
    compacted_message: str
    discovered_tools: tuple[str, ...]
    preserved: PreservedMessages | None
    strategy: str


class CompactionPlan(Struct, frozen=True):
    """The new ``messages`` of a conversation: the text, then the rest of ``messages[keep_from:]``.

    The first ``keep_to`` messages stay before them, unchanged. ``tokens`` is the context's size
    afterwards.
    """

    boundary: CompactionBoundary
    messages: tuple[dict[str, Any], ...]
    keep_from: int
    tokens: int
    keep_to: int = 0


def opened(covers: str, form: str = SUMMARY) -> str:
    """Return the opening tag of a text that replaces all messages up to the id ``covers``."""
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
    """Return a plan in which a text replaces ``messages[keep_to:tail.first]``.

    The result is ``None`` if that saves nothing or too little. ``covers`` is the id of the last
    message that the text covers, by default the last replaced one. The paths of results in
    ``folder`` that the messages name and of the whole ``transcript`` are appended, "" for none.
    """
    start = max(tail.floor - 1, 0)  # the earlier summary, if there is one
    replaced = messages[max(start, keep_to) : tail.first]
    stored = _stored_paths(replaced, folder) if folder else ""
    transcript_line = _TRANSCRIPT_LINE.format(transcript) if transcript else ""
    text = "\n\n".join(filter(None, (text, stored, transcript_line)))
    last = message_id(messages[tail.first - 1], tail.first - 1)
    opening = opened(last if covers is None else covers, PART if keep_to else SUMMARY)
    content = f"{opening}\n{quoting.neutralise(string(text))}\n{tags.CLOSE}"
    anchor = f"memd-{strategy}-{sha256(content.encode('utf-8', 'replace'))[:8]}"
    # The new message has an id in the members in which the client's messages have one.
    ids = {name: anchor for name in ("id", "uuid") if any(name in m for m in messages)}
    new = ({"role": "user", **ids, "content": content}, *tail.messages)
    tokens = _tokens(messages[start:], (*messages[start:keep_to], *new))
    if tokens is None or tokens > thresholds(window).auto:
        return None
    facts = boundary(
        messages, tail, strategy=strategy, trigger=trigger, anchor=anchor, start=keep_to
    )
    return CompactionPlan(facts, new, tail.first, tokens, keep_to)


def boundary(
    messages: Sequence[Mapping[str, Any]],
    tail: Tail,
    *,
    strategy: str,
    trigger: str,
    anchor: str = "",
    start: int = 0,
) -> CompactionBoundary:
    """Return the boundary of a compaction that replaces ``messages[start:tail.first]``.

    ``anchor`` is the id of the message in their place, "" if the API creates it.
    """
    preserved = None
    if tail.messages:
        last_index = len(messages) - 1
        # ``first`` may lie behind the last message.
        head = message_id(messages[min(tail.first, last_index)], tail.first)
        end = message_id(messages[last_index], last_index)
        preserved = PreservedMessages(head, anchor, end)
    discovered = set(_discovered(messages[start : tail.first]))
    return CompactionBoundary(
        type=trigger,
        pre_tokens=count(messages[max(tail.floor - 1, 0) :]).tokens,
        compacted_message=message_id(messages[tail.first - 1], tail.first - 1),
        discovered_tools=tuple(sorted(discovered)),
        preserved=preserved,
        strategy=strategy,
    )


def opening(message: Mapping[str, Any]) -> str:
    """Return the text of a message's first block, "" if that is no text."""
    content = message.get("content")
    if isinstance(content, list) and content and isinstance(content[0], dict):
        content = content[0].get("text")
    return content if isinstance(content, str) else ""


def summary_of(message: Mapping[str, Any]) -> str:
    """Return the summary in a message, "" if it has none."""
    return summary_and_rest(message)[0]


def summary_and_rest(message: Mapping[str, Any]) -> tuple[str, Any]:
    """Return the summary in a message, "" for none, and the rest of its content.

    Clients join neighbouring messages of one role, so a person's message may follow a summary.
    """
    text, content = opening(message), message.get("content")
    blocks = content if isinstance(content, list) else []
    if text.startswith((SUMMARY, PART)):
        summary, _, rest = text.partition("\n")[2].partition(tags.CLOSE)
        return summary, [{"type": "text", "text": rest}, *blocks[1:]]
    if message.get("isCompactSummary") is True:
        return text, blocks[1:]
    for block in blocks:
        if isinstance(block, dict) and block.get("type") == "compaction":
            return string(block.get("content")), content
    return "", content


def _stored_paths(messages: Sequence[Mapping[str, Any]], folder: str) -> str:
    """Return the lines about results in a folder that messages have, the newest 50; "" for none."""
    path_line = re.compile(rf"\d+ bytes, \d+ lines, whole at: {re.escape(folder)}/[\w-]+\.\w+")
    texts = [summary_of(message) for message in messages]
    texts += [
        string(block.get("content"))
        for message in messages
        for block in _listed(message.get("content"))
        if block.get("type") == "tool_result"
    ]
    lines = dict.fromkeys(line for text in texts for line in path_line.findall(text))
    return "\n".join((_STORED_HEADING, *list(lines)[-_MOST_STORED:])) if lines else ""


def _listed(content: Any) -> list[Mapping[str, Any]]:
    """Return the blocks of a content, an empty list if it is no list."""
    blocks = content if isinstance(content, list) else []
    return [block for block in blocks if isinstance(block, Mapping)]


def _tokens(old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]) -> int | None:
    """Return the context's size with the new messages, ``None`` if they are not smaller."""
    before = count(old)
    old_size = estimate([message.get("content") for message in old])
    new_size = estimate([message.get("content") for message in new])
    if new_size >= old_size:
        return None
    if before.source == "estimate":
        return count(new).tokens
    # A server's count includes the system prompt and the tools, which stay.
    return max(new_size, before.tokens - (old_size - new_size))


def _discovered(value: Any) -> Iterator[str]:
    """Yield the names of tools that messages announced, ignoring the input of calls."""
    if isinstance(value, dict):
        kind = str(value.get("type"))
        if kind.endswith("tool_reference"):
            yield str(value.get("tool_name") or value.get("name"))
        is_skipped = kind.endswith(("tool_use", "tool_removal"))
        value = () if is_skipped else tuple(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from _discovered(item)
