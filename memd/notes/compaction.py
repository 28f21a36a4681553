"""What a conversation becomes when its notes take the place of what they cover. Pure.

Rules of this file
- A plan has one message with the notes and, behind it, the end of the conversation as the API takes
  it. All that the notes do not cover is in that end.
- There is a plan only where it helps: it takes something away, the result is smaller, and it stays
  below the size at which compacting begins again.
- A plan for what a plan made is no plan.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from memd.conversation import history
from memd.conversation.pieces import message_id, string
from memd.core.text import sha256
from memd.notes import sections
from memd.text import quoting, tags

_LEAD = (
    "The conversation up to here is replaced by notes that were taken while it went on."
    " What follows them is its newest part, word for word."
)
_WHOLE = "The whole conversation is in {}"


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
    before. ``discovered_tools`` are those that were made known in what was replaced.
    """

    type: str
    pre_tokens: int
    compacted_message: str
    discovered_tools: tuple[str, ...]
    preserved: PreservedMessages
    strategy: str = "notes"


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """A conversation's new messages: the notes, then what stays of ``messages[keep_from:]``.

    ``tokens`` is the context's size afterwards.
    """

    boundary: CompactionBoundary
    messages: tuple[dict[str, Any], ...]
    keep_from: int
    tokens: int


def plan(
    messages: Sequence[Any],
    notes_text: str,
    cursor_covers: str,
    *,
    path: str,
    transcript: str = "",
    window: int = history.WINDOW,
    trigger: str = "auto",
) -> CompactionPlan | None:
    """Return what a conversation becomes with its notes, ``None`` where another way is better.

    ``cursor_covers`` is the last message that the notes know, ``path`` is their file. Messages may
    have ``id`` or ``uuid``, and ``usage``. Notes that are as their template are given as "".
    """
    notes = sections.parse(notes_text)
    if not all(isinstance(message, dict) for message in messages):
        return None
    tail = history.tail(messages, _start(messages, cursor_covers))
    if tail is None or tail.first == tail.floor or sections.is_empty(notes, ""):
        return None
    text = _text(sections.shortened(notes, path), cursor_covers, transcript)
    anchor = f"memd-notes-{sha256(text.encode('utf-8', 'replace'))[:8]}"
    named = {name: anchor for name in ("id", "uuid") if any(name in m for m in messages)}
    new = ({"role": "user", **named, "content": text}, *tail.messages)
    live = messages[max(tail.floor - 1, 0) :]
    before, tokens = history.count(live), _tokens(live, new)
    if tokens is None or tokens > history.thresholds(window).auto:
        return None
    head, last, end = tail.first, tail.first - 1, len(messages) - 1
    ids = {place: message_id(messages[place], place) for place in (head, last, end)}
    boundary = CompactionBoundary(
        trigger,
        before.tokens,
        ids[last],
        tuple(sorted(set(_discovered(messages[:head])))),
        PreservedMessages(ids[head], anchor, ids[end]),
    )
    return CompactionPlan(boundary, new, head, tokens)


def _start(messages: Sequence[Mapping[str, Any]], covers: str) -> int:
    """Return the place behind the message that notes cover, the end if they are the whole."""
    own = [n for n, m in enumerate(messages) if covers and covers in (m.get("uuid"), m.get("id"))]
    if own:
        return own[-1] + 1
    bottom = history.floor(messages)
    if covers and bottom and history.opening(messages[bottom - 1]).startswith(_opening(covers)):
        return bottom  # these notes stand in that message's place already
    placed = (n + 1 for n, message in enumerate(messages) if covers == message_id(message, n))
    return next(placed, len(messages))


def _opening(covers: str) -> str:
    return f'{history.SUMMARY}"{quote(covers, errors="replace")}">'


def _text(shown: str, covers: str, transcript: str) -> str:
    """Return what stands in the place of the messages that go."""
    whole = _WHOLE.format(transcript) if transcript else ""
    inner = "\n\n".join(filter(None, (_LEAD, shown.strip(), whole)))
    return f"{_opening(covers)}\n{quoting.neutralise(string(inner))}\n{tags.CLOSE}"


def _tokens(live: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]) -> int | None:
    """Return the context's size with the new messages, ``None`` if that is not smaller."""
    before = history.count(live)
    old_size, size = (history.estimate([m.get("content") for m in given]) for given in (live, new))
    if size >= old_size:
        return None
    if before.source == "estimate":
        return history.count(new).tokens
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
