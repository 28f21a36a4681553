"""What a dream did, as a page of Markdown that a person reads in the morning. Pure.

Rules of this file
- Facts of any age and shape are read without ever failing: what has not the type that was asked
  for is as if it were not there.
- Every line is ours. A text from a memory or a model stands on one line between two backticks,
  where Markdown takes it for text alone: no heading, list, fence, link, image or HTML.
- Characters that show nothing, end a line or turn the direction of text come out as spaces or not
  at all, and so does half a character that no encoding can carry.
"""

import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from memd.core.text import one_line
from memd.model.port import LOCAL
from memd.text.invisible import removed

_UNNAMED = "a memory without a name"
_ENDS = {
    "completed": "Nothing to do: the memories are as they were",
    "failed": "The dream failed; the memories are as they were",
    "killed": "The dream was cancelled; the memories are as they were",
}
_NO_END = "The dream has not ended"
_SAID = 600  # characters of a model's last words
_MINUTE = 60


def markdown(
    facts: Mapping[str, Any], *, job: str, at: float, state: str = "completed", error: str = ""
) -> str:
    """Return the facts of a dream as a page.

    ``at`` is when it ended, in seconds since 1970; ``state`` and ``error`` are those of its job.
    The facts may come from another version of memd, and their texts from anywhere.
    """
    lines = [f"# {_headline(facts, state)}", "", _when(job, at)]
    if error:
        lines += ["", f"What went wrong: {span(error, 2 * TEXT)}"]
    for title, body in _sections(facts):
        if body:
            lines += ["", f"## {title}", "", *body]
    return "\n".join(lines) + "\n"


def _headline(facts: Mapping[str, Any], state: str) -> str:
    """Return in one line what became of the memories."""
    counts = (
        (sum(len(texts(merge.get("from"))) for merge in rows(facts.get("merged"))), "merged"),
        (len(_tightened(facts)), "tightened"),
        (len(rows(facts.get("removed"))), "removed"),
        (len(texts(facts.get("created"))), "new"),
    )
    reported = [f"{count} {verb}" for count, verb in counts if count]
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
    sizes = _sizes(facts.get("before"), facts.get("after"))
    return ", ".join(reported) + (f"; {sizes}" if sizes else "")


def _sizes(before: object, after: object) -> str:
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        return ""
    names = ("memories", "index_lines")
    had, lines = (f"{number(before.get(name)):.0f}" for name in names)
    has, left = (f"{number(after.get(name)):.0f}" for name in names)
    return f"{had} → {has} memories, index {lines} → {left} lines"


def _when(job: str, at: float) -> str:
    try:
        moment = f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"
    except (TypeError, ValueError, OverflowError, OSError):
        moment = "at a time that is not known"
    return f"Dream {identity(job) or 'without an id'}, {moment}."


def _tightened(facts: Mapping[str, Any]) -> list[str]:
    """Return what was changed and took nothing in."""
    into = [merge.get("into") for merge in rows(facts.get("merged"))]
    return [path for path in texts(facts.get("changed")) if path not in into]


def _sections(facts: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Yield the title and the lines of each section; one without lines is not shown."""
    yield "Merged", _listed(_merged(facts))
    yield "Tightened", _listed(map(_named, _tightened(facts)))
    yield "New", _listed(map(_named, texts(facts.get("created"))))
    yield "Removed", _listed(_reasoned(facts.get("removed")))
    yield "Which of these holds?", _listed(_questions(facts))
    yield "Left alone", _listed(_reasoned(facts.get("left")))
    yield (
        "Needs your look",
        [*_listed(_reasoned(facts.get("listed"))), *_listed(_proposal(facts))],
    )
    yield "Not in the index", _listed(map(_named, texts(facts.get("orphans"))))
    yield "The model's last words", [*filter(None, [span(facts.get("said"), _SAID)])]
    yield "Cost", _listed(_cost(facts))
    yield "Take it back", _listed(_undo(facts))


def _listed(lines: Iterator[str]) -> list[str]:
    return list(few(list(lines)))


def _named(path: object) -> str:
    return span(path) or _UNNAMED


def _merged(facts: Mapping[str, Any]) -> Iterator[str]:
    for merge in rows(facts.get("merged")):
        sources = texts(merge.get("from"))
        if sources:
            yield f"{_named(merge.get('into'))} took in {', '.join(map(_named, sources))}"


def _reasoned(value: object) -> Iterator[str]:
    for row in rows(value):
        why = span(row.get("reason"))
        yield f"{_named(row.get('path'))}: {why}" if why else _named(row.get("path"))


def _questions(facts: Mapping[str, Any]) -> Iterator[str]:
    for row in rows(facts.get("questions")):
        paths = texts(row.get("paths"))
        one, two = (span(row.get(name)) or "(nothing)" for name in ("one", "two"))
        how = "contradict" if row.get("kind") == "contradict" else "seem to repeat"
        who = " and ".join(map(_named, paths)) or _UNNAMED
        yield f"{who} {how} each other: {one} / {two}"


def _proposal(facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield why a proposal was kept back, and how to decide about it."""
    if not facts.get("proposal"):
        return
    for problem in texts(facts.get("problems")):
        yield f"kept back: {span(problem) or '(no words)'}"
    command = f"memctl dream review {identity(facts['proposal'])}".strip()
    yield f"look at what the dream wanted, and accept or reject it: `{command}`"


def _cost(facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield who did it and what it took; nothing where the facts do not say who."""
    engine = span(facts.get("engine"))
    if engine:
        yield "by the fixed rules" if engine == span(LOCAL) else f"by {engine}"
    problem = span(facts.get("model_problem"))
    if problem:
        yield f"no model, since: {problem}"
    usage = facts.get("usage")
    used = usage if isinstance(usage, Mapping) else {}
    tokens = sum(number(count) for count in used.values())
    parts = (
        (number(facts.get("turns")), "{:.0f} turns"),
        (tokens, "{:,.0f} tokens"),
        (number(facts.get("dollars")), "${:.4f}"),
    )
    reported = [words.format(amount) for amount, words in parts if amount]
    seconds = number(facts.get("seconds"))
    if seconds:
        reported.append(_span_of_time(seconds))
    if reported:
        yield ", ".join(reported)


def _span_of_time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), _MINUTE)
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"


def _undo(facts: Mapping[str, Any]) -> Iterator[str]:
    change = identity(facts.get("change"))
    if change:
        yield f"all of it: `memctl undo {change}`"
        yield f"see what it did: `memctl diff {change}`"


TEXT = 300  # characters of one text
ROWS = 100  # of one list; who wants more reads the JSON
_TICK = "'"  # stands for a backtick, which would end the span
_ID = re.compile(r"[a-z][0-9]{1,18}")


def span(value: object, limit: int = TEXT) -> str:
    """Return a text as a code span of at most so many characters, "" where there is none."""
    if not isinstance(value, str):
        return ""
    line = one_line(value[: 8 * limit], 2 * limit).replace("`", _TICK)
    seen = "".join(char for char in removed(line) if char.isprintable())
    shown = one_line(seen, limit)
    return f"`{shown}`" if shown else ""


def identity(value: object) -> str:
    """Return the id of a change, a proposal or a job if that is what it is, else ""."""
    return value if isinstance(value, str) and _ID.fullmatch(value) else ""


def number(value: object) -> float:
    """Return a number that is not negative, 0 for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    try:
        return value if math.isfinite(value) and value > 0 else 0
    except OverflowError:
        return 0  # a whole number beyond all floats


def texts(value: object) -> list[str]:
    """Return the texts of a list."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def rows(value: object) -> list[Mapping[str, Any]]:
    """Return the objects of a list."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def few(lines: list[str]) -> Iterator[str]:
    """Yield the first lines as a list of Markdown, and how many there are beyond them."""
    yield from (f"- {line}" for line in lines[:ROWS])
    if len(lines) > ROWS:
        yield f"- and {len(lines) - ROWS} more"
