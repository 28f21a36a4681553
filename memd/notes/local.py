"""The lines that the local writer puts into session notes. Pure.

Rules of this file
- What stands between backticks is in the transcript, the rest are the words of ``_LABELS``:
  docs/design/notes.md has the grammar.
- A quotation is one line, shows every character that it has, closes no tag and no comment and
  holds no credential.
- Lines come in the order in which they matter; those that no longer fit are left out whole.
- The writer replaces lines of its own and no others.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice

from memd.conversation.history import estimate_text
from memd.documents import secrets
from memd.notes.facts import DOCUMENT, SessionFacts
from memd.notes.sections import MARKER, NotesSection, SessionNotes, split_local, with_local
from memd.text import quoting

_REQUEST, _REPLY, _SHORT, _TITLE = 500, 300, 200, 80  # characters of a quotation
_TITLE_WORDS, _WORKLOG_WORDS = 10, 12
_TOOLS = 8  # of a turn, shown at most
_DONE = frozenset(("completed", "cancelled", "canceled", "deleted", "done"))
_LABELS = re.compile(
    r"- (?:[\d:,;-]|\s|(?<!\w)(?:last|first|requests?|left|out|in|progress|open|assistant's|words"
    r"|read|edited|times|passed|failed|running|later|person|address|after|edits|errors)(?!\w))*"
)
_SPAN = re.compile(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)")
_LEFT_OUT = "requests left out"
_SECRET = re.compile(r"\[secret: ([\w-]+)\]")
_LAST_SECOND = 253_402_300_799.0  # of the year 9999


def lines(facts: SessionFacts) -> dict[str, list[str]]:
    """Return the lines of each section of the built-in template that has any."""
    requests = _fitting(_requests(facts), 1_900)
    left_out = facts.requests_count - len(requests)
    sections = {
        "Session Title": _fitting(_title(facts), 60),
        "Current State": _fitting(_state(facts), 1_300),
        "Task specification": requests + [f"- {left_out} {_LEFT_OUT}"] * (left_out > 0),
        "Files and Functions": _fitting(_files(facts), 1_300),
        "Workflow": _fitting(_workflow(facts), 1_200),
        "Errors & Corrections": _fitting(_errors(facts), 1_800),
        "Codebase and System Documentation": _fitting(_documents(facts), 500),
        "Learnings": _fitting(_persons(facts.learnings), 500),
        "Key results": _fitting(_results(facts), 600),
        "Worklog": _fitting(_worklog(facts), 1_600),
    }
    return {title: listed for title, listed in sections.items() if listed}


def updated(
    notes: SessionNotes,
    new: Mapping[str, Sequence[str]],
    before_lines: Mapping[str, Sequence[str]] | None = None,
) -> SessionNotes:
    """Return notes with new lines of the local writer in the place of its former ones.

    ``before_lines`` are those that it wrote last, ``None`` if that is not known, as after a
    restart: then they are known by their form. What else stands below the marker moves above it.
    """

    def section(old: NotesSection) -> NotesSection:
        title = old.title.strip()
        authored, local = split_local(old.body)
        if not local and title not in new:
            return old
        known = None if before_lines is None else before_lines.get(title, ())
        others = (line for line in local if not _is_local(line, known))
        body = "\n".join(filter(None, (authored, *others)))
        return replace(old, body=with_local(body, new.get(title, ())))

    return replace(notes, sections=tuple(map(section, notes.sections)))


def _is_local(line: str, known: Sequence[str] | None = None) -> bool:
    """Say whether a line is known, or has the form of the writer's: quotations and labels alone."""
    if known is not None:
        return line in known
    rest, spans = _SPAN.subn("", line)
    return bool(spans or _LEFT_OUT in line) and _LABELS.fullmatch(rest) is not None


@lru_cache(maxsize=1_024)  # most of what is shown was shown before
def quoted(text: str, most: int = _SHORT, words: int | None = None) -> str:
    """Return a text's beginning as a quotation, "" where it has nothing to show."""
    return quoting.code_span(_without_credentials(text), most, words)


def _without_credentials(text: str) -> str:
    scrubbed = secrets.scrub(text)
    if scrubbed == text:
        return text
    between = _SECRET.split(scrubbed)
    if all(part in text for part in between[::2]):
        return _SECRET.sub(r"[removed: \1]", scrubbed)
    return f"[removed: {between[1]}]"  # visible in a form alone that the transcript does not have


def _fitting(listed: Iterable[str], most: int) -> list[str]:
    """Return the lines with a quotation that fit into so many tokens together with the marker."""
    result = [MARKER]
    for line in (line for line in listed if "`" in line):
        result.append(f"- {line}")
        if estimate_text("\n".join(result)) > most:
            result.pop()
            break
    return result[1:]


def _time(at: float | None) -> str:
    return "" if at is None else f"{datetime.fromtimestamp(min(at, _LAST_SECOND), UTC):%F %H:%M}"


def _joined(between: str, *parts: str) -> str:
    return between.join(filter(None, parts))


def _counts(**counts: int) -> str:
    return ", ".join(f"{label} {count}" for label, count in counts.items() if count)


def _title(facts: SessionFacts) -> Iterator[str]:
    yield quoted(facts.title, _TITLE) or quoted(facts.first_request, _TITLE, _TITLE_WORDS)


def _state(facts: SessionFacts) -> Iterator[str]:
    yield from (f"last request: {quoted(text, _REQUEST)}" for text in facts.requests[-1:])
    yield f"assistant's words: {quoted(facts.last_reply, _REPLY)}"
    for text, status in facts.items.values():
        if status.lower() not in _DONE:
            yield f"{'in progress' if status == 'in_progress' else 'open'}: {quoted(text)}"


def _requests(facts: SessionFacts) -> Iterator[str]:
    yield f"first request: {quoted(facts.first_request, _REQUEST)}"
    for text in islice(reversed(facts.requests), max(0, facts.requests_count - 1)):
        yield f"request: {quoted(text, _REQUEST)}"


def _files(facts: SessionFacts) -> Iterator[str]:
    for path, use in reversed(facts.files.items()):
        if "://" not in path:
            counts = _counts(read=use.read, edited=use.edited)
            last = f"last {_time(use.at)}" if use.at is not None else ""
            yield _joined(": ", quoted(path), _joined(", ", counts, last))


def _workflow(facts: SessionFacts) -> Iterator[str]:
    for command, use in reversed(facts.commands.items()):
        yield _joined(": ", quoted(command), _joined(", ", use.state, _times(use.times)))


def _times(times: int) -> str:
    return f"{times} times" if times > 1 else ""


def _errors(facts: SessionFacts) -> Iterator[str]:
    yield from _persons(facts.corrections)
    for (tool, subject, *texts), use in reversed(facts.failures.items()):
        call = _joined(", ", quoted(tool), quoted(subject))
        shown = _joined(", ", *map(quoted, dict.fromkeys(texts)))
        later = "later passed" if use.state == "passed" else ""
        since = _joined(", ", _times(use.times), later)
        yield f"failed: {_joined('; ', _joined(': ', call, shown), since)}"


def _documents(facts: SessionFacts) -> Iterator[str]:
    for name, use in reversed(facts.files.items()):
        if "://" in name:
            yield f"address: {quoted(name)}"
        elif use.read and DOCUMENT.search(name):
            yield f"read: {quoted(name)}"


def _persons(sentences: dict[str, None]) -> Iterator[str]:
    return (f"person: {quoted(sentence, _REPLY)}" for sentence in reversed(sentences))


def _results(facts: SessionFacts) -> Iterator[str]:
    for line, command in reversed(facts.results.items()):
        yield _joined(" after ", quoted(line), quoted(command))


def _worklog(facts: SessionFacts) -> Iterator[str]:
    for turn in reversed(facts.turns):
        tools = _joined(", ", *(f"{quoted(t)} {n}" for t, n in turn.tools.most_common(_TOOLS)))
        did = _joined("; ", tools, _counts(edits=turn.edits, errors=turn.errors))
        shown = _joined(": ", quoted(turn.request, _SHORT, _WORKLOG_WORDS), did)
        yield _joined(" ", _time(turn.at), shown)
