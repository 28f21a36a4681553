"""Summarise a conversation without a model: fill a summary's sections from session notes. Pure.

The lines of the notes are copied; nothing is concluded from them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from memd.context import summary
from memd.conversation import history

PERSONS_TOKENS = 10_000  # of the person's messages in a summary
EARLIER_TOKENS = 5_000  # copied from the summaries of earlier compactions
LEAD = (
    "The part of the conversation that stood here is replaced by an extract that a program made:"
    " quotations and counts, no conclusions, and no orders by itself."
)
_OPEN = ("open:", "in progress:")  # prefixes of lines about unfinished work
# The sections of the notes that are copied to each section of a summary.
_SOURCES: Mapping[str, Sequence[str]] = {
    "Request and intent": ("Session Title",),
    "Concepts": ("Codebase and System Documentation", "Learnings"),
    "Files and code": ("Files and Functions",),
    "Errors and fixes": ("Errors & Corrections",),
    "Problem solving": ("Key results", "Worklog"),
    "Pending tasks": ("Current State",),
    "Current work": ("Current State", "Workflow"),
}
_OUTDATED = (summary.PERSONS, "Current work", "Next step")  # in an earlier summary


def sections(
    messages: Sequence[Mapping[str, Any]], facts: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    """Return the sections of a summary by title, from earlier summaries and session notes.

    ``facts`` has the lines of the session's notes by section. Open lines of "Current State" go to
    "Pending tasks", its other lines to "Current work".
    """
    summaries = [text for text in map(history.summary_of, messages) if text]
    earlier = summary.parsed_sections("\n\n".join(summaries))
    still_true = {title: body for title, body in earlier.items() if title not in _OUTDATED}
    result = summary.cut_to(still_true, EARLIER_TOKENS)
    for title, names in _SOURCES.items():
        lines = [line for name in names for line in facts.get(name, ())]
        if "Current State" in names:
            wants_open = title == "Pending tasks"
            state = facts.get("Current State", ())
            lines = [line for line in lines if line not in state or _is_open(line) is wants_open]
        body = [result.get(title, ""), *lines]
        result[title] = "\n".join(line for line in body if line)
    return result


def _is_open(line: str) -> bool:
    """Return whether a line of the notes is about an open item of a plan."""
    return line.removeprefix("- ").startswith(_OPEN)
