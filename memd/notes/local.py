"""The lines that the local writer puts into session notes. Pure.

Rules of this file
- Every line tells quotations from labels, in the grammar that docs/design/notes.md has: what stands
  between backticks is in the transcript, the rest are the words of ``_LABELS``.
- A quotation is one line, shows every character that it has, closes no tag and no comment and
  holds no credential.
- Lines come in the order in which they matter; those that no longer fit are left out whole.
- The writer replaces lines of its own form and no others.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice

from memd.conversation.history import estimate_text
from memd.documents import secrets
from memd.notes.facts import SessionFacts
from memd.notes.sections import MARKER, NotesSection, SessionNotes, split_local, with_local
from memd.text import quoting
from memd.text.invisible import CONTROLS, DIRECTIONS, HIDDEN

_REQUEST, _REPLY, _SHORT, _TITLE = 500, 300, 200, 80  # characters of a quotation
_TITLE_WORDS, _WORKLOG_WORDS = 10, 12
_COMMANDS, _TOOLS = 20, 8  # shown at most
_DONE = frozenset(("completed", "cancelled", "canceled", "deleted", "done"))
_STATES = {"in_progress": "in progress"}
_LABELS = re.compile(
    r"- (?:[\d:,;-]|\s|(?<!\w)(?:last|first|requests?|left|out|in|progress|open|assistant's|words"
    r"|read|edited|times|passed|failed|running|later|person|address|after|edits|errors)(?!\w))*"
)
_SPAN = re.compile(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)")
_LEFT_OUT = "requests left out"
_TAG = re.compile(f"{quoting.TAG.pattern}|<(?=!--)", re.IGNORECASE)
_UNSHOWN = re.compile(f"\x1b\\[[\\d;?]*[A-Za-z]|[{CONTROLS}{DIRECTIONS}{HIDDEN}]|`{{5,}}")
_OMITTED = re.compile(r"…(?:\s*…)+")
_SECRET = re.compile(r"\[secret: ([\w-]+)\]")
_HALF_WORD = re.compile(r"(?<=\s)[!-~]{20,}$")  # of a credential, half is half too much
_LAST_SECOND = 253_402_300_799.0  # of the year 9999


def lines(facts: SessionFacts) -> dict[str, list[str]]:
    """Return the lines of each section of the built-in template that has any."""
    sections = (
        ("Session Title", 60, _title(facts)),
        ("Current State", 1_300, _state(facts)),
        ("Task specification", 1_900, _requests(facts, 1_900)),
        ("Files and Functions", 1_300, _files(facts)),
        ("Workflow", 1_200, _workflow(facts)),
        ("Errors & Corrections", 1_800, _errors(facts)),
        ("Codebase and System Documentation", 500, _documents(facts)),
        ("Learnings", 500, _persons(facts.learnings)),
        ("Key results", 600, _results(facts)),
        ("Worklog", 1_600, _worklog(facts)),
    )
    fitting = ((title, _fitting(listed, most)) for title, most, listed in sections)
    return {title: listed for title, listed in fitting if listed}


def updated(
    notes: SessionNotes,
    new: Mapping[str, Sequence[str]],
    before_lines: Mapping[str, Sequence[str]] | None = None,
) -> SessionNotes:
    """Return notes with new lines of the local writer in the place of its former ones.

    ``before_lines`` are those that it wrote last, ``None`` if that is not known, as after a
    restart: then they are known by their form. What else stands below the marker moves above it.
    """
    sections = (_updated(section, new, before_lines) for section in notes.sections)
    return replace(notes, sections=tuple(sections))


def _updated(
    section: NotesSection,
    new: Mapping[str, Sequence[str]],
    before_lines: Mapping[str, Sequence[str]] | None,
) -> NotesSection:
    title = section.title.strip()
    authored, local = split_local(section.body)
    if before_lines is None:
        others = [line for line in local if not _is_local(line)]
    else:
        others = [line for line in local if line not in before_lines.get(title, ())]
    if not local and not new.get(title):
        return section
    body = "\n".join(filter(None, (authored, *others)))
    return replace(section, body=with_local(body, new.get(title, ())))


def _is_local(line: str) -> bool:
    """Say whether a line has the form of the local writer's: quotations and labels alone."""
    rest, spans = _SPAN.subn("", line)
    return bool(spans or _LEFT_OUT in line) and _LABELS.fullmatch(rest) is not None


def quoted(text: str, most: int = _SHORT, words: int | None = None) -> str:
    """Return a text's beginning as a quotation, "" where it has nothing to show."""
    shown = _UNSHOWN.sub("…", _TAG.sub(r"\g<0>…", _without_credentials(text)))
    folded = _OMITTED.sub("…", " ".join(shown.split())).strip(" …")
    short = " ".join(folded.split(" ")[:words])
    short = short if len(short) <= most else short[: most - 1]
    if len(short) < len(folded):
        whole = folded[len(short)] == " "
        short = f"{(short if whole else _HALF_WORD.sub('', short)).rstrip(' …')}…"
    if not short.strip("…"):
        return ""
    mark = "`" * (1 + max(map(len, re.findall("`+", short)), default=0))
    pad = " " if "`" in (short[0], short[-1]) else ""
    return f"{mark}{pad}{short}{pad}{mark}"


def _without_credentials(text: str) -> str:
    scrubbed = secrets.scrub(text)
    if scrubbed == text:
        return text
    between = _SECRET.split(scrubbed)
    if all(part in text for part in between[::2]):
        return _SECRET.sub(r"[removed: \1]", scrubbed)
    return f"[removed: {between[1]}]"  # visible in a form alone that the transcript does not have


def _fitting(listed: Iterable[str], most: int) -> list[str]:
    """Return the lines from the first that fit into so many tokens, marker included."""
    result = [MARKER]
    for line in filter(None, listed):
        result.append(f"- {line}")
        if estimate_text("\n".join(result)) > most:
            result.pop()
            break
    return result[1:]


def _time(at: float) -> str:
    return f"{datetime.fromtimestamp(min(at, _LAST_SECOND), UTC):%Y-%m-%d %H:%M}"


def _labelled(label: str, quotation: str) -> str:
    return f"{label}: {quotation}" if quotation else ""


def _title(facts: SessionFacts) -> Iterator[str]:
    named = quoted(facts.title, _TITLE)
    yield named or quoted(facts.first_request, _TITLE, _TITLE_WORDS)


def _state(facts: SessionFacts) -> Iterator[str]:
    yield from (_labelled("last request", quoted(r, _REQUEST)) for r in list(facts.requests)[-1:])
    yield _labelled("assistant's words", quoted(facts.last_reply, _REPLY))
    for text, status in facts.items.values():
        if status.lower() not in _DONE:
            yield _labelled(_STATES.get(status, "open"), quoted(text))


def _requests(facts: SessionFacts, most: int) -> list[str]:
    """Return the first message, how many are left out, and the newest that fit, oldest first."""
    first = _labelled("first request", quoted(facts.first_request, _REQUEST))
    forgotten = facts.requests_count > len(facts.requests)
    later = islice(reversed(facts.requests), len(facts.requests) - (not forgotten))
    newest = (_labelled("request", quoted(text, _REQUEST)) for text in later)
    note = f"{facts.requests_count} {_LEFT_OUT}"
    fitting = [line.removeprefix("- ") for line in _fitting((note, first, *newest), most)[2:]]
    left_out = facts.requests_count - 1 - len(fitting)
    return [first, f"{left_out} {_LEFT_OUT}" if left_out > 0 else "", *reversed(fitting)]


def _files(facts: SessionFacts) -> Iterator[str]:
    for path, use in reversed(facts.files.items()):
        counts = (("read", use.read), ("edited", use.edited))
        parts = [f"{label} {count}" for label, count in counts if count]
        parts += [] if use.at is None else [f"last {_time(use.at)}"]
        name = quoted(path)
        yield f"{name}: {', '.join(parts)}" if name else ""


def _workflow(facts: SessionFacts) -> Iterator[str]:
    for command, use in islice(reversed(facts.commands.items()), _COMMANDS):
        times = f", {use.times} times" if use.times > 1 else ""
        name = quoted(command)
        yield f"{name}: {use.state}{times}" if name else ""


def _errors(facts: SessionFacts) -> Iterator[str]:
    yield from _persons(facts.corrections)
    for (tool, subject, first, named), failure in reversed(facts.failures.items()):
        call = ", ".join(filter(None, (quoted(tool), quoted(subject))))
        lines_of_it = ", ".join(filter(None, map(quoted, dict.fromkeys((first, named)))))
        text = ": ".join(filter(None, (call, lines_of_it)))
        since = [f"{failure.times} times"] if failure.times > 1 else []
        since += ["later passed"] if failure.passed else []
        yield _labelled("failed", "; ".join(filter(None, (text, ", ".join(since)))))


def _documents(facts: SessionFacts) -> Iterator[str]:
    for name in reversed(facts.documents):
        yield _labelled("address" if "://" in name else "read", quoted(name))


def _persons(sentences: dict[str, None]) -> Iterator[str]:
    return (_labelled("person", quoted(sentence, _REPLY)) for sentence in reversed(sentences))


def _results(facts: SessionFacts) -> Iterator[str]:
    for line, command in reversed(facts.results.items()):
        parts = filter(None, (quoted(line), quoted(command)))
        yield " after ".join(parts)


def _worklog(facts: SessionFacts) -> Iterator[str]:
    for turn in reversed(facts.turns):
        tools = ", ".join(f"{quoted(name)} {n}" for name, n in turn.tools.most_common(_TOOLS))
        counts = (("edits", turn.edits), ("errors", turn.errors))
        counted = ", ".join(f"{label} {count}" for label, count in counts if count)
        request = quoted(turn.request, _SHORT, _WORKLOG_WORDS)
        did = "; ".join(filter(None, (tools, counted)))
        shown = ": ".join(filter(None, (request, did)))
        at = "" if turn.at is None or not shown else f"{_time(turn.at)} "
        yield f"{at}{shown}"
