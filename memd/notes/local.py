"""Write the lines of session notes that need no model: the local writer. Pure.

Rules of this file
- Text between backticks is copied from the transcript; the rest are labels, numbers and times.
- A quotation is one line without invisible characters, credentials or the end of a tag or comment.
- The most important lines come first; lines that do not fit are left out.
- Notes that a model or a person wrote last are not the writer's to change.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import TypeVar

from msgspec.structs import replace

from memd.conversation.history import estimate_text
from memd.notes.facts import CallUse, FileUse, SessionFacts, TurnFacts, client_form
from memd.notes.sections import NotesSection, SessionNotes, redacted
from memd.text import quoting

_REQUEST_CHARACTERS, _SENTENCE_CHARACTERS, _USUAL_CHARACTERS, _TITLE_CHARACTERS = (
    500,
    300,
    200,
    80,
)  # characters of a quotation
_TITLE_WORDS, _WORKLOG_WORDS = 10, 12  # of a quotation
_MOST_TOOLS = 8  # of a turn, shown at most
_LAST_SECOND = 253_402_300_799.0  # of the year 9999
K = TypeVar("K")
V = TypeVar("V")


def lines(facts: SessionFacts) -> dict[str, list[str]]:
    """Return the local writer's lines by section title; sections without lines are left out."""
    first_request = facts.requests[0] if facts.requests else ""
    title = quoted(facts.title, _TITLE_CHARACTERS)
    title = title or quoted(first_request, _TITLE_CHARACTERS, _TITLE_WORDS)
    requests = _fitting_items(1_900, _request_lines(facts))
    left_out = facts.requests_count - len(requests)
    if left_out:
        requests.append(f"- {left_out} requests left out")
    names = _newest(facts.files)  # paths and web addresses
    files = (_file_line(name, use) for name, use in names if "://" not in name)
    commands = (_command_line(command, use) for command, use in _newest(facts.commands))
    failures = (_failure_line(call, use) for call, use in _newest(facts.failures))
    sections = {
        "Session Title": _fitting_items(60, [title]),
        "Current State": _fitting_items(1_300, _state_lines(facts)),
        "Task specification": requests,
        "Files and Functions": _fitting_items(1_300, files),
        "Workflow": _fitting_items(1_200, commands),
        "Errors & Corrections": _fitting_items(
            1_800, (*_person_lines(facts.corrections), *failures)
        ),
        "Codebase and System Documentation": _fitting_items(500, _document_lines(names)),
        "Learnings": _fitting_items(500, _person_lines(facts.learnings)),
        "Key results": _fitting_items(600, _result_lines(facts)),
        "Worklog": _fitting_items(1_600, map(_turn_line, reversed(facts.turns))),
    }
    return {title: items for title, items in sections.items() if items}


def with_new_lines(notes: SessionNotes, new: Mapping[str, Sequence[str]]) -> SessionNotes:
    """Return notes in which the local writer's new lines are the content of their sections."""

    def updated_section(old: NotesSection) -> NotesSection:
        """Return a section with its new lines, unchanged if there are none."""
        content = "\n".join(new.get(old.title.strip(), ()))
        return replace(old, body=f"\n{content}\n\n") if content else old

    return replace(notes, sections=tuple(map(updated_section, notes.sections)))


@lru_cache(maxsize=1_024)  # an update quotes mostly the same texts as the last one
def quoted(
    text: str, most_characters: int = _USUAL_CHARACTERS, most_words: int | None = None
) -> str:
    """Return the beginning of a text as a quotation, "" for an empty text."""
    return quoting.code_span(redacted(text), most_characters, most_words)


def _fitting_items(most_tokens: int, lines: Iterable[str]) -> list[str]:
    """Return the lines with a quotation, as list items, up to ``most_tokens`` tokens."""
    result: list[str] = []
    for line in lines:
        if "`" not in line:  # it has no quotation
            continue
        result.append(f"- {line}")
        if estimate_text("\n".join(result)) > most_tokens:
            result.pop()
            break
    return result


def _newest(entries: dict[K, V]) -> list[tuple[K, V]]:
    """Return the entries of a dict, the newest first."""
    return list(reversed(entries.items()))


def _time_text(at: float | None) -> str:
    """Return a time (seconds since 1970) as date, hour and minute in UTC, "" for ``None``."""
    if at is None:
        return ""
    return f"{datetime.fromtimestamp(min(at, _LAST_SECOND), UTC):%F %H:%M}"


def _times_text(use: CallUse) -> str:
    """Return how often something was called, "" for once."""
    return f", {use.times} times" if use.times > 1 else ""


def _join_nonempty(between: str, *parts: str) -> str:
    """Return the parts that are not empty, joined by ``between``."""
    return between.join(filter(None, parts))


def _count_labels(**counts: int) -> str:
    """Return labels with their counts, without those that are 0."""
    return ", ".join(f"{label} {count}" for label, count in counts.items() if count)


def _state_lines(facts: SessionFacts) -> Iterator[str]:
    """Yield the last request, the assistant's last words and the open plan items."""
    if facts.requests:
        yield f"last request: {quoted(facts.requests[-1], _REQUEST_CHARACTERS)}"
    yield f"assistant's words: {quoted(facts.last_reply, _SENTENCE_CHARACTERS)}"
    for text, status in facts.items.values():
        label = "in progress" if status == "in_progress" else "open"
        yield f"{label}: {quoted(text)}"


def _request_lines(facts: SessionFacts) -> Iterator[str]:
    """Yield the first request and then the others, the newest first."""
    for text in facts.requests[:1]:
        yield f"first request: {quoted(text, _REQUEST_CHARACTERS)}"
    for text in reversed(facts.requests[1:]):
        yield f"request: {quoted(text, _REQUEST_CHARACTERS)}"


def _person_lines(sentences: dict[str, None]) -> Iterator[str]:
    """Return a line for each sentence of the person, the newest first."""
    return (f"person: {quoted(sentence, _SENTENCE_CHARACTERS)}" for sentence in reversed(sentences))


def _result_lines(facts: SessionFacts) -> Iterator[str]:
    """Yield a line for each total that a command printed."""
    for command, totals in _newest(facts.results):
        yield from (f"{quoted(line)} after {quoted(command)}" for line in totals)


def _command_line(command: str, use: CallUse) -> str:
    """Return the line of a command: how it last ended, and how often it was called."""
    return f"{quoted(command)}: {use.state}{_times_text(use)}"


def _file_line(path: str, use: FileUse) -> str:
    """Return the line of a file: its path, its counts of reads and edits, and its last use."""
    last_use = f"last {_time_text(use.at)}" if use.at is not None else ""
    counts = _count_labels(read=use.read, edited=use.edited)
    return f"{quoted(path)}: {_join_nonempty(', ', counts, last_use)}"


def _document_lines(names: Iterable[tuple[str, FileUse]]) -> Iterator[str]:
    """Yield a line for each web address and each document that was read."""
    for name, use in names:
        if "://" in name:
            yield f"address: {quoted(name)}"
        elif use.read and client_form("document").search(name):
            yield f"read: {quoted(name)}"


def _failure_line(call: tuple[str, str, str, str], use: CallUse) -> str:
    """Return the line of a failed call: its tool, its subject and two lines of its output."""
    tool, subject, first_line, error_line = call
    made_call = _join_nonempty(", ", quoted(tool), quoted(subject))
    output_lines = dict.fromkeys((first_line, error_line))  # once if they are the same
    output = _join_nonempty(", ", *map(quoted, output_lines))
    state = "later passed" if use.state == "passed" else ""
    sequel = _join_nonempty(", ", _times_text(use).removeprefix(", "), state)
    return f"failed: {_join_nonempty('; ', _join_nonempty(': ', made_call, output), sequel)}"


def _turn_line(turn: TurnFacts) -> str:
    """Return the line of a turn: its time, its request and what was done."""
    counts = [f"{quoted(tool)} {count}" for tool, count in turn.tools.most_common(_MOST_TOOLS)]
    tools = ", ".join(counts)
    actions = _join_nonempty("; ", tools, _count_labels(edits=turn.edits, errors=turn.errors))
    request = quoted(turn.request, _USUAL_CHARACTERS, _WORKLOG_WORDS)
    return _join_nonempty(" ", _time_text(turn.at), _join_nonempty(": ", request, actions))
