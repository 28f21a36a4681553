"""Plan a compaction in which notes replace the messages that they cover. Pure.

Rules of this file
- A plan has one message with the notes, followed by the end of the conversation. That end contains
  all messages that the notes do not cover.
- There is a plan only if it removes messages, makes the conversation smaller, and leaves it below
  the size at which compacting begins again.
- There is no plan for a conversation that was compacted this way and did not grow.
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
    """Return a plan that replaces the messages which the notes cover by the notes.

    It is ``None`` if the notes are empty or nothing can be removed. ``cursor_covers`` is the id of
    the last message that the notes cover, ``path`` their file. ``results`` is the folder of stored
    tool results, ``window`` the model's context in tokens.
    """
    notes = sections.parse(notes_text)
    if not all(isinstance(message, dict) for message in messages):
        return None
    tail = history.tail(messages, _index_behind(messages, cursor_covers))
    if tail is None or tail.first == tail.floor:  # no message can be removed
        return None
    if sections.is_empty(notes, ""):
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


def _index_behind(messages: Sequence[Mapping[str, Any]], covers: str) -> int:
    """Return the index behind the message with the id ``covers``.

    It is the number of messages if there is no such message.
    """
    with_id = [
        index
        for index, message in enumerate(messages)
        if covers and covers in (message.get("uuid"), message.get("id"))
    ]
    if with_id:
        return with_id[-1] + 1  # several records of one reply have the same id
    floor = history.floor(messages)
    boundary_text = history.opening(messages[floor - 1]) if floor else ""
    if covers and boundary_text.startswith(history.opened(covers)):
        return floor  # the last boundary message already has these notes
    # Messages without an id get one that is made of their text and position.
    for index, message in enumerate(messages):
        if covers == message_id(message, index):
            return index + 1
    return len(messages)
