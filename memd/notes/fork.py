"""Build the requests by which a model updates a session's notes. Pure.

Rules of this file
- The first form adds one message to a client's own request (``cache``), which is repeated byte for
  byte, so that the provider's cache serves all of it.
- The second form has the notes and the messages since, in at most 20,000 tokens. Sending the whole
  conversation every 5,000 tokens would make the cost grow with the square of its length.
- Only ``Edit`` is allowed. The model makes all edits in one reply; if all apply, the run ends.
- Messages are quoted as data, in tags that no text can close.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from memd.agent.service import LITTLE_THOUGHT, Budget, Task, prefixed, tools
from memd.base import prose
from memd.base.values import Message
from memd.conversation.dialogue import within
from memd.conversation.history import estimate_text
from memd.model.errors import CapReachedError, PromptTooLongError
from memd.notes import sections
from memd.notes.editing import EDIT
from memd.notes.sections import NotesSection, SessionNotes
from memd.notes.templates import NotesTemplate

KIND = "notes"
TURNS = 4
SHORT_TOKENS = 20_000  # of a request without a client's prefix
NO_ROOM = (CapReachedError, PromptTooLongError)  # after these the next of ``tasks`` is tried
_FIXED_TOKENS = 700  # of the second form's system text, tool and blocks
_LEAST_NEWS_TOKENS = 3_000  # for the new messages at least, however long the notes are
_CUT_NOTE = "[more lines of this section stand in the file]"
_PACKAGE = "memd.notes"
_EDIT_DESCRIPTION = "Replaces exact text in the notes. The text has to stand there once."

_TASK = Task(
    kind=KIND,
    model="",
    messages=(),
    tools=(),
    runs=frozenset({EDIT}),
    budget=Budget(
        turns=TURNS,
        reply_tokens=8_000,
        output_tokens=16_000,
        total_tokens=900_000,
        ends_after_writes=True,
    ),
    seconds=180.0,
    ask_seconds=90.0,
)


class NotesUpdate(Struct, frozen=True):
    """The notes at ``path`` that a run updates; ``news`` are the messages since they were written.

    The cost is booked on ``project``.
    """

    notes: SessionNotes
    path: str
    template: NotesTemplate
    news: Sequence[Message]
    project: str


def tasks(
    update: NotesUpdate, model: str, cache: Mapping[str, Any] | None = None
) -> tuple[Task, ...]:
    """Return the tasks to try in order; the next one follows an error of ``NO_ROOM``.

    ``model`` is the name of the model for notes. If ``cache`` has a usable request of the client,
    the first task adds to that.
    """
    client_task = prefixed(_TASK, cache)
    short_task = _short_task(update, model)
    if client_task is None or not _can_edit(client_task):
        return (short_task,)
    prompt = update.template.filled_prompt(update.notes, update.path)
    messages = (*client_task.messages, {"role": "user", "content": prompt})
    return replace(client_task, messages=messages, project=update.project), short_task


def _short_task(update: NotesUpdate, model: str) -> Task:
    """Return the task with the notes and the new messages, within 20,000 tokens."""
    tokens = SHORT_TOKENS - _FIXED_TOKENS
    notes_tokens = tokens - _LEAST_NEWS_TOKENS - estimate_text(update.template.prompt)
    prompt = update.template.filled_prompt(_cut_to(update.notes, notes_tokens), update.path)
    news = within(update.news, tokens - estimate_text(prompt))
    blocks = [{"type": "text", "text": text} for text in (*news, prompt)]
    edit_tool = next(tool for tool in tools.definitions() if tool["name"] == EDIT)
    return replace(
        _TASK,
        model=model,
        messages=({"role": "user", "content": blocks},),
        tools=({**edit_tool, "description": _EDIT_DESCRIPTION},),
        system=prose.template("system", _PACKAGE),
        project=update.project,
        extra=LITTLE_THOUGHT,
    )


def _cut_to(notes: SessionNotes, most_tokens: int) -> SessionNotes:
    """Return notes of at most ``most_tokens`` tokens; all sections are cut to one common size.

    They are cut at the end of a line, so that an edit's text also occurs in the file.
    """
    section_limit, shorter = most_tokens, notes
    while section_limit and estimate_text(sections.rendered(shorter, cursor=False)) > most_tokens:
        section_limit = section_limit * 3 // 4
        shorter = replace(
            notes,
            head=sections.beginning(notes.head, section_limit, estimate_text),
            sections=tuple(_cut_section(section, section_limit) for section in notes.sections),
        )
    return shorter


def _cut_section(section: NotesSection, limit: int) -> NotesSection:
    """Return a section cut to ``limit`` tokens, with a line that says so."""
    body = sections.beginning(section.body, limit, estimate_text)
    if body == section.body:
        return section
    return replace(section, body=f"{body}\n{_CUT_NOTE}\n\n")


def _can_edit(client: Task) -> bool:
    """Return whether a client's request has the tool ``Edit`` and does not end with a call."""
    content = client.messages[-1].get("content")
    blocks = content if isinstance(content, list) else []
    kinds = [block.get("type") for block in blocks if isinstance(block, Mapping)]
    ends_with_call = "tool_use" in kinds
    return not ends_with_call and any(tool.get("name") == EDIT for tool in client.tools)
