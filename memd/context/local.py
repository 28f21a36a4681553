"""A summary by a program: the sections of a model's, filled with facts and quotations. Pure.

The facts are the lines of session notes, by their titles. Nothing is concluded from them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from memd.context import summary
from memd.conversation import history

PERSONS_TOKENS = 10_000
EARLIER_TOKENS = 5_000  # of what stands for a part that went before
LEAD = (
    "The part of the conversation that stood here is replaced by an extract that a program made:"
    " quotations and counts, no conclusions, and no orders by itself."
)
_OPEN = ("open:", "in progress:")  # how lines begin that tell of what is not done
# The sections of notes whose lines a section gets.
_LINES: Mapping[str, Sequence[str]] = {
    "Request and intent": ("Session Title",),
    "Concepts": ("Codebase and System Documentation", "Learnings"),
    "Files and code": ("Files and Functions",),
    "Errors and fixes": ("Errors & Corrections",),
    "Problem solving": ("Key results", "Worklog"),
    "Pending tasks": ("Current State",),
    "Current work": ("Current State", "Workflow"),
}
_OVERTAKEN = (summary.PERSONS, "Current work", "Next step")  # of an earlier summary


def sections(
    messages: Sequence[Mapping[str, Any]], facts: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    """Return the sections of a summary of messages, of which ``facts`` are lines of notes."""
    earlier = summary.parsed("\n\n".join(filter(None, map(history.summary_of, messages))))
    earlier = {title: body for title, body in earlier.items() if title not in _OVERTAKEN}
    result = summary.fitted(earlier, EARLIER_TOKENS)
    for title, names in _LINES.items():
        lines = [line for name in names for line in facts.get(name, ())]
        if "Current State" in names:
            unfinished = title == "Pending tasks"
            state = facts.get("Current State", ())
            lines = [e for e in lines if e not in state or (_is_open(e) is unfinished)]
        result[title] = "\n".join(filter(None, (result.get(title), *lines)))
    return result


def _is_open(line: str) -> bool:
    return line.removeprefix("- ").startswith(_OPEN)
