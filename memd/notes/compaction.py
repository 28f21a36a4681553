"""What a conversation becomes when its notes take the place of what they cover. Pure.

Rules of this file
- A plan has one message with the notes and, behind it, the end of the conversation as the API takes
  it. All that the notes do not cover is in that end.
- There is a plan only where it helps: it takes something away, the result is smaller, and it stays
  below the size at which compacting begins again.
- A plan for what a plan made is no plan.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from memd.conversation import history
from memd.conversation.pieces import message_id
from memd.notes import sections

STRATEGY = "notes"
_LEAD = (
    "The conversation up to here is replaced by notes that were taken while it went on."
    " What follows them is its newest part, word for word."
)


def plan(
    messages: Sequence[Any],
    notes_text: str,
    cursor_covers: str,
    *,
    path: str,
    transcript: str = "",
    results: str = "",
    window: int = history.WINDOW,
    trigger: str = "auto",
) -> history.CompactionPlan | None:
    """Return what a conversation becomes with its notes, ``None`` where another way is better.

    ``cursor_covers`` is the last message that the notes know, ``path`` is their file. Messages may
    have ``id`` or ``uuid``, and ``usage``. Notes that are as their template are given as "". What
    is stored of results in the folder ``results`` is named.
    """
    notes = sections.parse(notes_text)
    if not all(isinstance(message, dict) for message in messages):
        return None
    tail = history.tail(messages, _start(messages, cursor_covers))
    if tail is None or tail.first == tail.floor or sections.is_empty(notes, ""):
        return None
    text = "\n\n".join((_LEAD, sections.shortened(notes, path).strip()))
    return history.compacted(
        messages,
        tail,
        text,
        strategy=STRATEGY,
        trigger=trigger,
        window=window,
        covers=cursor_covers,
        transcript=transcript,
        folder=results,
    )


def _start(messages: Sequence[Mapping[str, Any]], covers: str) -> int:
    """Return the place behind the message that notes cover, the end if they are the whole."""
    own = [n for n, m in enumerate(messages) if covers and covers in (m.get("uuid"), m.get("id"))]
    if own:
        return own[-1] + 1
    bottom = history.floor(messages)
    before = history.opening(messages[bottom - 1]) if bottom else ""
    if covers and before.startswith(history.opened(covers)):
        return bottom  # these notes stand in that message's place already
    placed = (n + 1 for n, message in enumerate(messages) if covers == message_id(message, n))
    return next(placed, len(messages))
