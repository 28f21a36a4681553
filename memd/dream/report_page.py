"""Render the report of a dream as a page of Markdown. Pure.

Rules of this file
- Facts of any version and shape are read without failing: a value of a wrong type counts as absent.
- A text from a memory or a model is a code span on one line, in which Markdown recognises no
  heading, list, fence, link, image or HTML.
- Characters that are invisible, end a line, change the direction of text or cannot be encoded
  become spaces or are removed.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from memd.base.text import one_line
from memd.model.port import LOCAL
from memd.text.invisible import removed

TEXT_CHARACTERS = 300  # characters of one text
MOST_ROWS = 100  # of one list; the JSON report has all
_LAST_WORDS_CHARACTERS = 600  # characters of a model's last words
_MINUTE = 60
_UNNAMED = "a memory without a name"
_HEADLINES = {  # by the state of the job
    "completed": "Nothing to do: the memories are as they were",
    "failed": "The dream failed; the memories are as they were",
    "killed": "The dream was cancelled; the memories are as they were",
}
_LAST_WORDS = "The model's last words"
_NOT_ENDED = "The dream has not ended"
_TICK = "'"  # stands for a backtick, which would end the span
_ID = r"[a-z][0-9]{1,18}"


def markdown(
    facts: Mapping[str, Any], *, job: str, at: float, state: str = "completed", error: str = ""
) -> str:
    """Return the page of a dream's report.

    ``facts`` are ``DreamReport.facts``, perhaps of another version of memd. ``at`` is when the
    dream ended, in seconds since 1970. ``state`` and ``error`` are those of its job.
    """
    targets = [merge.get("into") for merge in _rows(facts.get("merged"))]
    # Changed without taking in another memory.
    tightened = [path for path in _texts(facts.get("changed")) if path not in targets]
    job_id = _valid_id(job) or "without an id"
    lines = [f"# {_headline(facts, state, len(tightened))}", "", f"Dream {job_id}, {_moment(at)}."]
    if error:
        lines += ["", f"What went wrong: {span(error, 2 * TEXT_CHARACTERS)}"]
    for title, items in _sections(facts, tightened):
        lines += _section_lines(title, list(items))
    return "\n".join(lines) + "\n"


def _moment(at: float) -> str:
    """Return a time in seconds since 1970 for people, or words for one that is no valid time."""
    with suppress(TypeError, ValueError, OverflowError, OSError):
        return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"
    return "at a time that is not known"


def _section_lines(title: str, items: Sequence[str]) -> list[str]:
    """Return the lines of a section with at most 100 items; none if it has no items."""
    if not items:
        return []
    bullet = "" if title == _LAST_WORDS else "- "
    lines = ["", f"## {title}", ""]
    lines += [f"{bullet}{item}" for item in items[:MOST_ROWS]]
    if len(items) > MOST_ROWS:
        lines.append(f"- and {len(items) - MOST_ROWS} more")
    return lines


def _headline(facts: Mapping[str, Any], state: str, tightened: int) -> str:
    """Return one line that sums up what happened to the memories.

    ``tightened`` is how many memories were changed without taking in another one.
    """
    counts = {
        "merged": sum(len(_texts(merge.get("from"))) for merge in _rows(facts.get("merged"))),
        "tightened": tightened,
        "removed": len(_rows(facts.get("removed"))),
        "new": len(_texts(facts.get("created"))),
    }
    counted = [(count, verb) for verb, count in counts.items() if count]
    if state != "completed":
        summary = _HEADLINES.get(state, _NOT_ENDED)
    elif counted:
        (count, verb), *others = counted
        noun = "memory" if count == 1 else "memories"
        summary = ", ".join([f"{count} {noun} {verb}", *(f"{n} {verb}" for n, verb in others)])
    elif facts.get("proposal"):
        summary = "Nothing was changed; a proposal waits for you"
    elif facts.get("change"):
        summary = "The index was mended; the memories are as they were"
    else:
        summary = _HEADLINES[state]
    return summary + _size_change(facts.get("before"), facts.get("after"))


def _size_change(before: object, after: object) -> str:
    """Return how the number of memories and of index lines changed, "" if it is not known."""
    if not (isinstance(before, Mapping) and isinstance(after, Mapping)):
        return ""
    memories = f"{_whole_number(before, 'memories')} → {_whole_number(after, 'memories')}"
    lines = f"{_whole_number(before, 'index_lines')} → {_whole_number(after, 'index_lines')}"
    return f"; {memories} memories, index {lines} lines"


def _whole_number(size: Mapping[str, Any], name: str) -> str:
    """Return a number of a directory's size, rounded."""
    return f"{_positive_number(size.get(name)):.0f}"


def _sections(
    facts: Mapping[str, Any], tightened: list[str]
) -> Iterator[tuple[str, Iterable[str]]]:
    """Yield the title and the items of each section, also of sections without items."""
    yield "Merged", _merge_lines(facts.get("merged"))
    yield "Tightened", map(_name_span, tightened)
    yield "New", map(_name_span, _texts(facts.get("created")))
    yield "Removed", _reason_lines(facts.get("removed"))
    yield "Left alone", _reason_lines(facts.get("left"))
    yield "Needs your look", [*_reason_lines(facts.get("listed")), *_proposal_lines(facts)]
    yield "Not in the index", map(_name_span, _texts(facts.get("orphans")))
    last_words = span(facts.get("said"), _LAST_WORDS_CHARACTERS)
    yield _LAST_WORDS, [last_words] if last_words else []
    yield "Cost", _cost_lines(facts)
    yield "Take it back", _undo_lines(_valid_id(facts.get("change")))


def _merge_lines(value: object) -> Iterator[str]:
    """Yield a line for each memory that took in others."""
    for row in _rows(value):
        sources = _texts(row.get("from"))
        if sources:
            names = ", ".join(map(_name_span, sources))
            yield f"{_name_span(row.get('into'))} took in {names}"


def _undo_lines(change: str) -> Iterator[str]:
    """Yield the commands to undo and to see a change, nothing for ""."""
    if change:
        yield f"all of it: `memctl undo {change}`"
        yield f"see what it did: `memctl diff {change}`"


def _reason_lines(value: object) -> Iterator[str]:
    """Yield the path of each row, and its reason if it has one."""
    for row in _rows(value):
        name, reason = _name_span(row.get("path")), span(row.get("reason"))
        yield f"{name}: {reason}" if reason else name


def _proposal_lines(facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield lines about the proposal: its problems and how to review it."""
    if not facts.get("proposal"):
        return
    for problem in _texts(facts.get("problems")):
        yield f"kept back: {span(problem) or '(no words)'}"
    command = f"memctl review show {_valid_id(facts['proposal'])}".strip()
    yield f"look at what the dream wanted, and accept or reject it: `{command}`"


def _cost_lines(facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield who consolidated, why no model did, and the cost, as far as the facts have them."""
    engine, problem = span(facts.get("engine")), span(facts.get("model_problem"))
    if engine == span(LOCAL):
        yield "by the fixed rules"
    elif engine:
        yield f"by {engine}"
    if problem:
        yield f"no model, since: {problem}"
    usage = facts.get("usage")
    token_counts = usage.values() if isinstance(usage, Mapping) else ()
    seconds = _positive_number(facts.get("seconds"))
    minutes, remaining_seconds = divmod(round(seconds), _MINUTE)
    parts = (
        (_positive_number(facts.get("turns")), "{:.0f} turns"),
        (sum(map(_positive_number, token_counts)), "{:,.0f} tokens"),
        (_positive_number(facts.get("dollars")), "${:.4f}"),
        (seconds, f"{minutes} min {remaining_seconds} s" if minutes else "{:.1f} s"),
    )
    known_parts = [words.format(amount) for amount, words in parts if amount]
    if known_parts:
        yield ", ".join(known_parts)


def _name_span(path: object) -> str:
    """Return a memory's path as a code span, or words for a missing one."""
    return span(path) or _UNNAMED


def span(value: object, limit: int = TEXT_CHARACTERS) -> str:
    """Return a text as a code span of at most ``limit`` characters, "" if it is no text."""
    if not isinstance(value, str):
        return ""
    # Cut before and after: a huge text must cost little, and removed characters need room.
    line = one_line(value[: 8 * limit], 2 * limit).replace("`", _TICK)
    printable = "".join(char for char in removed(line) if char.isprintable())
    shown = one_line(printable, limit)
    return f"`{shown}`" if shown else ""


def _valid_id(value: object) -> str:
    """Return a value that has the form of a change's, proposal's or job's id, else ""."""
    return value if isinstance(value, str) and re.fullmatch(_ID, value) else ""


def _positive_number(value: object) -> float:
    """Return a finite positive number, 0 for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    try:
        return value if math.isfinite(value) and value > 0 else 0
    except OverflowError:
        return 0  # a whole number beyond all floats


def _texts(value: object) -> list[str]:
    """Return the texts in a list, none for any other value."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _rows(value: object) -> list[Mapping[str, Any]]:
    """Return the objects in a list, none for any other value."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
