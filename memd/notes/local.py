"""Write the lines of session notes that need no model: the local writer. Pure.

Rules of this file
- Text between backticks is copied from the transcript; the rest are the words of ``_LABELS``
  (docs/design/notes.md has the grammar).
- A quotation is one line without invisible characters, credentials or the end of a tag or comment.
- The most important lines come first; lines that do not fit are left out.
- The writer replaces only its own lines.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import TypeVar

from msgspec.structs import replace

from memd.conversation.history import estimate_text
from memd.notes.facts import DOCUMENT, CallUse, FileUse, SessionFacts, TurnFacts
from memd.notes.sections import (
    MARKER,
    NotesSection,
    SessionNotes,
    redacted,
    split_local,
    with_local,
)
from memd.text import quoting

_REQUEST, _REPLY, _SHORT, _TITLE = 500, 300, 200, 80  # characters of a quotation
_TITLE_WORDS, _WORKLOG_WORDS = 10, 12
_TOOLS = 8  # of a turn, shown at most
# A list item of labels, numbers and times, from which the quotations were removed.
_LABELS = re.compile(
    r"- (?:[\d:,;-]|\s|(?<!\w)(?:last|first|requests?|left|out|in|progress|open|assistant's|words"
    r"|read|edited|times|passed|failed|running|later|person|address|after|edits|errors)(?!\w))*"
)
# A text between two equal runs of backticks.
_SPAN = re.compile(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)")
_LEFT_OUT = "requests left out"
_LAST_SECOND = 253_402_300_799.0  # of the year 9999
K = TypeVar("K")
V = TypeVar("V")


def lines(facts: SessionFacts) -> dict[str, list[str]]:
    """Return the local writer's lines by section title; sections without lines are left out."""
    title = quoted(facts.title, _TITLE) or quoted("".join(facts.requests[:1]), _TITLE, _TITLE_WORDS)
    requests = _fitting(1_900, _requests(facts))
    left_out = facts.requests_count - len(requests)
    failures = (_failure_line(call, use) for call, use in _newest(facts.failures))
    names = _newest(facts.files)
    sections = {
        "Session Title": _fitting(60, [title]),
        "Current State": _fitting(1_300, _state(facts)),
        "Task specification": [*requests, f"- {left_out} {_LEFT_OUT}"] if left_out else requests,
        "Files and Functions": _fitting(
            1_300, (_file_line(name, use) for name, use in names if "://" not in name)
        ),
        "Workflow": _fitting(
            1_200, (f"{quoted(c)}: {u.state}{_times(u)}" for c, u in _newest(facts.commands))
        ),
        "Errors & Corrections": _fitting(1_800, (*_person_lines(facts.corrections), *failures)),
        "Codebase and System Documentation": _fitting(500, _documents(names)),
        "Learnings": _fitting(500, _person_lines(facts.learnings)),
        "Key results": _fitting(600, _results(facts)),
        "Worklog": _fitting(1_600, map(_turn_line, reversed(facts.turns))),
    }
    return {title: listed for title, listed in sections.items() if listed}


def updated(notes: SessionNotes, new: Mapping[str, Sequence[str]]) -> SessionNotes:
    """Return notes in which new lines of the local writer replace its old ones.

    Its old lines are recognised by their form; other lines below the marker move above it.
    """

    def with_new_lines(old: NotesSection) -> NotesSection:
        """Return a section with the new lines, unchanged if it has neither old nor new ones."""
        _, local = split_local(old.body)
        new_lines = new.get(old.title.strip(), ())
        body = with_local(authored(old.body), new_lines)
        return replace(old, body=body) if local or new_lines else old

    return replace(notes, sections=tuple(map(with_new_lines, notes.sections)))


def authored(body: str) -> str:
    """Return the lines of a section that a person or a model wrote, above or below the marker."""
    above, local = split_local(body)
    return "\n".join(filter(None, (above, *(line for line in local if not _is_local(line)))))


def _is_local(line: str) -> bool:
    """Return whether a line has the local writer's form: only quotations and labels."""
    labels, spans = _SPAN.subn("", line)
    return bool(spans or _LEFT_OUT in line) and _LABELS.fullmatch(labels) is not None


@lru_cache(maxsize=1_024)  # an update quotes mostly the same texts as the last one
def quoted(text: str, most: int = _SHORT, words: int | None = None) -> str:
    """Return the first ``most`` characters or ``words`` of a text as a quotation, "" if empty."""
    return quoting.code_span(redacted(text), most, words)


def _fitting(most: int, listed: Iterable[str]) -> list[str]:
    """Return the lines with a quotation, as list items, until they exceed ``most`` tokens."""
    result = [MARKER]
    for line in (line for line in listed if "`" in line):
        result.append(f"- {line}")
        if estimate_text("\n".join(result)) > most:
            result.pop()
            break
    return result[1:]


def _newest(entries: dict[K, V]) -> list[tuple[K, V]]:
    """Return the entries of a dict, the newest first."""
    return list(reversed(entries.items()))


def _time(at: float | None) -> str:
    """Return a time (seconds since 1970) as date, hour and minute in UTC, "" for ``None``."""
    return "" if at is None else f"{datetime.fromtimestamp(min(at, _LAST_SECOND), UTC):%F %H:%M}"


def _times(use: CallUse) -> str:
    """Return how often something was called, "" for once."""
    return f", {use.times} times" if use.times > 1 else ""


def _joined(between: str, *parts: str) -> str:
    """Return the parts that are not empty, joined by ``between``."""
    return between.join(filter(None, parts))


def _counts(**counts: int) -> str:
    """Return labels with their counts, without those that are 0."""
    return ", ".join(f"{label} {count}" for label, count in counts.items() if count)


def _state(facts: SessionFacts) -> Iterator[str]:
    """Yield the last request, the assistant's last words and the open plan items."""
    yield from (f"last request: {quoted(text, _REQUEST)}" for text in facts.requests[-1:])
    yield f"assistant's words: {quoted(facts.last_reply, _REPLY)}"
    for text, status in facts.items.values():
        yield f"{'in progress' if status == 'in_progress' else 'open'}: {quoted(text)}"


def _requests(facts: SessionFacts) -> Iterator[str]:
    """Yield the first request and then the others, the newest first."""
    yield from (f"first request: {quoted(text, _REQUEST)}" for text in facts.requests[:1])
    yield from (f"request: {quoted(text, _REQUEST)}" for text in facts.requests[:0:-1])


def _person_lines(sentences: dict[str, None]) -> Iterator[str]:
    """Return a line for each sentence of the person, the newest first."""
    return (f"person: {quoted(sentence, _REPLY)}" for sentence in reversed(sentences))


def _results(facts: SessionFacts) -> Iterator[str]:
    """Yield a line for each total that a command printed."""
    for command, totals in _newest(facts.results):
        yield from (f"{quoted(line)} after {quoted(command)}" for line in totals)


def _file_line(path: str, use: FileUse) -> str:
    """Return the line of a file: its path, its counts of reads and edits, and its last use."""
    last = f"last {_time(use.at)}" if use.at is not None else ""
    return f"{quoted(path)}: {_joined(', ', _counts(read=use.read, edited=use.edited), last)}"


def _documents(names: Iterable[tuple[str, FileUse]]) -> Iterator[str]:
    """Yield a line for each web address and each document that was read."""
    for name, use in names:
        if "://" in name:
            yield f"address: {quoted(name)}"
        elif use.read and DOCUMENT.search(name):
            yield f"read: {quoted(name)}"


def _failure_line(call: tuple[str, str, str, str], use: CallUse) -> str:
    """Return the line of a failed call: its tool, its subject and two lines of its output."""
    tool, subject, first_line, error_line = call
    made = _joined(", ", quoted(tool), quoted(subject))
    output = _joined(", ", *map(quoted, dict.fromkeys((first_line, error_line))))
    state = "later passed" if use.state == "passed" else ""
    since = _joined(", ", _times(use).removeprefix(", "), state)
    return f"failed: {_joined('; ', _joined(': ', made, output), since)}"


def _turn_line(turn: TurnFacts) -> str:
    """Return the line of a turn: its time, its request and what was done."""
    tools = _joined(", ", *(f"{quoted(t)} {n}" for t, n in turn.tools.most_common(_TOOLS)))
    did = _joined("; ", tools, _counts(edits=turn.edits, errors=turn.errors))
    shown = _joined(": ", quoted(turn.request, _SHORT, _WORKLOG_WORDS), did)
    return _joined(" ", _time(turn.at), shown)
