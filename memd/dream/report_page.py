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
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from memd.core.text import one_line
from memd.model.port import LOCAL
from memd.text.invisible import removed

TEXT = 300  # characters of one text
ROWS = 100  # of one list; the JSON report has all
_SAID = 600  # characters of a model's last words
_MINUTE = 60
_UNNAMED = "a memory without a name"
_ENDS = {
    "completed": "Nothing to do: the memories are as they were",
    "failed": "The dream failed; the memories are as they were",
    "killed": "The dream was cancelled; the memories are as they were",
}
_WORDS = "The model's last words"
_NO_END = "The dream has not ended"
_TICK = "'"  # stands for a backtick, which would end the span
_ID = re.compile(r"[a-z][0-9]{1,18}")


def markdown(
    facts: Mapping[str, Any], *, job: str, at: float, state: str = "completed", error: str = ""
) -> str:
    """Return the page of a dream's report.

    ``facts`` are ``Report.facts``, perhaps of another version of memd. ``at`` is when the dream
    ended, in seconds since 1970. ``state`` and ``error`` are those of its job.
    """
    into = [merge.get("into") for merge in _rows(facts.get("merged"))]
    tightened = [path for path in _texts(facts.get("changed")) if path not in into]
    moment = "at a time that is not known"
    with suppress(TypeError, ValueError, OverflowError, OSError):
        moment = f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"
    lines = [f"# {_headline(facts, state, len(tightened))}", ""]
    lines += [f"Dream {_valid_id(job) or 'without an id'}, {moment}."]
    if error:
        lines += ["", f"What went wrong: {span(error, 2 * TEXT)}"]
    for title, items in _sections(facts, tightened):
        listed, bullet = list(items), "" if title == _WORDS else "- "
        if listed:
            lines += ["", f"## {title}", "", *(f"{bullet}{item}" for item in listed[:ROWS])]
        if len(listed) > ROWS:
            lines.append(f"- and {len(listed) - ROWS} more")
    return "\n".join(lines) + "\n"


def _headline(facts: Mapping[str, Any], state: str, tightened: int) -> str:
    """Return one line that sums up what happened to the memories; ``tightened`` is a count."""
    counts = {
        "merged": sum(len(_texts(merge.get("from"))) for merge in _rows(facts.get("merged"))),
        "tightened": tightened,
        "removed": len(_rows(facts.get("removed"))),
        "new": len(_texts(facts.get("created"))),
    }
    reported = [f"{count} {verb}" for verb, count in counts.items() if count]
    if state != "completed":
        reported = [_ENDS.get(state, _NO_END)]
    elif reported:
        count, _, verb = reported[0].partition(" ")
        reported[0] = f"{count} {'memory' if count == '1' else 'memories'} {verb}"
    elif facts.get("proposal"):
        reported = ["Nothing was changed; a proposal waits for you"]
    elif facts.get("change"):
        reported = ["The index was mended; the memories are as they were"]
    else:
        reported = [_ENDS[state]]
    before, after = facts.get("before"), facts.get("after")
    sizes = ""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        had, has = (f"{_positive_number(size.get('memories')):.0f}" for size in (before, after))
        lines, left = (
            f"{_positive_number(size.get('index_lines')):.0f}" for size in (before, after)
        )
        sizes = f"; {had} → {has} memories, index {lines} → {left} lines"
    return ", ".join(reported) + sizes


def _sections(
    facts: Mapping[str, Any], tightened: list[str]
) -> Iterator[tuple[str, Iterable[str]]]:
    """Yield the title and the items of each section, also of sections without items."""
    merged = [(row, _texts(row.get("from"))) for row in _rows(facts.get("merged"))]
    yield (
        "Merged",
        (
            f"{_name_span(row.get('into'))} took in {', '.join(map(_name_span, sources))}"
            for row, sources in merged
            if sources
        ),
    )
    yield "Tightened", map(_name_span, tightened)
    yield "New", map(_name_span, _texts(facts.get("created")))
    yield "Removed", _reason_lines(facts.get("removed"))
    yield "Which of these holds?", _question_lines(facts)
    yield "Left alone", _reason_lines(facts.get("left"))
    yield "Needs your look", [*_reason_lines(facts.get("listed")), *_proposal_lines(facts)]
    yield "Not in the index", map(_name_span, _texts(facts.get("orphans")))
    yield _WORDS, filter(None, [span(facts.get("said"), _SAID)])
    yield "Cost", _cost_lines(facts)
    change = _valid_id(facts.get("change"))
    undo = (f"all of it: `memctl undo {change}`", f"see what it did: `memctl diff {change}`")
    yield "Take it back", undo if change else ()


def _reason_lines(value: object) -> Iterator[str]:
    """Yield the path and the reason of each row."""
    for row in _rows(value):
        yield ": ".join(filter(None, (_name_span(row.get("path")), span(row.get("reason")))))


def _question_lines(facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each question about two memories, or a memory and an instruction file."""
    for row in _rows(facts.get("questions")):
        one, two = (span(row.get(name)) or "(nothing)" for name in ("one", "two"))
        if row.get("kind") == "in_file":
            path, file = (*_texts(row.get("paths")), "", "")[:2]
            yield f"{_name_span(path)} says what {_name_span(file)} says already: {one}"
            continue
        how = "contradict" if row.get("kind") == "contradict" else "seem to repeat"
        who = " and ".join(map(_name_span, _texts(row.get("paths")))) or _UNNAMED
        yield f"{who} {how} each other: {one} / {two}"


def _proposal_lines(facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield lines about unused memories and the proposal: its problems and how to review it."""
    if facts.get("unused"):
        command = f"memctl dream review {_valid_id(facts['unused'])}".strip()
        yield f"nobody used some memories for 90 days; are they still needed? `{command}`"
    if not facts.get("proposal"):
        return
    for problem in _texts(facts.get("problems")):
        yield f"kept back: {span(problem) or '(no words)'}"
    command = f"memctl dream review {_valid_id(facts['proposal'])}".strip()
    yield f"look at what the dream wanted, and accept or reject it: `{command}`"


def _cost_lines(facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield who consolidated, why no model did, and the cost, as far as the facts have them."""
    engine, problem = span(facts.get("engine")), span(facts.get("model_problem"))
    if engine:
        yield "by the fixed rules" if engine == span(LOCAL) else f"by {engine}"
    if problem:
        yield f"no model, since: {problem}"
    usage = facts.get("usage")
    used = usage if isinstance(usage, Mapping) else {}
    seconds = _positive_number(facts.get("seconds"))
    minutes, rest = divmod(round(seconds), _MINUTE)
    parts = (
        (_positive_number(facts.get("turns")), "{:.0f} turns"),
        (sum(_positive_number(count) for count in used.values()), "{:,.0f} tokens"),
        (_positive_number(facts.get("dollars")), "${:.4f}"),
        (seconds, f"{minutes} min {rest} s" if minutes else "{:.1f} s"),
    )
    reported = [words.format(amount) for amount, words in parts if amount]
    if reported:
        yield ", ".join(reported)


def _name_span(path: object) -> str:
    """Return a memory's path as a code span, or words for a missing one."""
    return span(path) or _UNNAMED


def span(value: object, limit: int = TEXT) -> str:
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
    return value if isinstance(value, str) and _ID.fullmatch(value) else ""


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
