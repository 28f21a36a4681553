"""Render the report of a dream as a page of Markdown. Pure.

Text from a memory or a model is a code span on one line, in which Markdown recognises no heading,
list, fence, link, image or HTML. Characters that are invisible, end a line, change the direction of
text or cannot be encoded become spaces or are removed.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from memd.base.text import one_line
from memd.base.values import Reasoned
from memd.dream.results import Dreamed
from memd.model.port import LOCAL
from memd.text.invisible import removed

TEXT_CHARACTERS = 300  # characters of one text
_MOST_ROWS = 100  # of one list; the JSON report has all
_LAST_WORDS_CHARACTERS = 600  # characters of a model's last words
_MINUTE = 60
_HEADLINES = {  # by the state of the job
    "completed": "Nothing to do: the memories are as they were",
    "skipped": "The dream was not due; the memories are as they were",
    "failed": "The dream failed; the memories are as they were",
    "killed": "The dream was cancelled; the memories are as they were",
}
_LAST_WORDS = "The model's last words"
_NOT_ENDED = "The dream has not ended"
_TICK = "'"  # stands for a backtick, which would end the span


def markdown(dreamed: Dreamed, at: float) -> str:
    """Return the page of a dream, which ended ``at`` seconds since 1970."""
    targets = {merged.into for merged in dreamed.merged or ()}
    # Changed without taking in another memory.
    tightened = [path for path in dreamed.changed or () if path not in targets]
    moment = f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"
    headline = _headline(dreamed, len(tightened))
    lines = [f"# {headline}", "", f"Dream {dreamed.job}, {moment}."]
    if dreamed.reason and dreamed.status != "completed":
        lines += ["", f"What went wrong: {span(dreamed.reason, 2 * TEXT_CHARACTERS)}"]
    for title, items in _sections(dreamed, tightened):
        lines += _section_lines(title, list(items))
    return "\n".join(lines) + "\n"


def _section_lines(title: str, items: Sequence[str]) -> list[str]:
    """Return the lines of a section with at most 100 items; none if it has no items."""
    if not items:
        return []
    bullet = "" if title == _LAST_WORDS else "- "
    lines = ["", f"## {title}", ""]
    lines += [f"{bullet}{item}" for item in items[:_MOST_ROWS]]
    if len(items) > _MOST_ROWS:
        lines.append(f"- and {len(items) - _MOST_ROWS} more")
    return lines


def _headline(dreamed: Dreamed, tightened: int) -> str:
    """Return one line that sums up what happened to the memories.

    ``tightened`` is how many memories were changed without taking in another one.
    """
    counts = {
        "merged": sum(len(merged.sources) for merged in dreamed.merged or ()),
        "tightened": tightened,
        "removed": len(dreamed.removed or ()),
        "new": len(dreamed.created or ()),
    }
    counted = [(count, verb) for verb, count in counts.items() if count]
    if counted:
        (count, verb), *others = counted
        noun = "memory" if count == 1 else "memories"
        summary = ", ".join([f"{count} {noun} {verb}", *(f"{n} {verb}" for n, verb in others)])
    elif dreamed.proposal:
        summary = "Nothing was changed; a proposal waits for you"
    elif dreamed.change:
        summary = "The index was mended; the memories are as they were"
    else:
        summary = _HEADLINES.get(dreamed.status, _NOT_ENDED)
    before, after = dreamed.before, dreamed.after
    if before and after:
        summary += f"; {before.memories} → {after.memories} memories"
        summary += f", index {before.index_lines} → {after.index_lines} lines"
    return summary


def _sections(dreamed: Dreamed, tightened: list[str]) -> Iterator[tuple[str, Iterable[str]]]:
    """Yield the title and the items of each section, also of sections without items."""
    merged = dreamed.merged or ()
    yield "Merged", (f"{span(m.into)} took in {', '.join(map(span, m.sources))}" for m in merged)
    yield "Tightened", map(span, tightened)
    yield "New", map(span, dreamed.created or ())
    yield "Removed", map(_reason_line, dreamed.removed or ())
    yield "Left alone", map(_reason_line, dreamed.left or ())
    yield "Needs your look", [*map(_reason_line, dreamed.listed or ()), *_proposal_lines(dreamed)]
    last_words = span(dreamed.said or "", _LAST_WORDS_CHARACTERS)
    yield _LAST_WORDS, [last_words] if last_words else []
    yield "Cost", _cost_lines(dreamed)
    yield "Take it back", _undo_lines(dreamed.change)


def _undo_lines(change: str | None) -> Iterator[str]:
    """Yield the commands to undo and to see a change, if there is one."""
    if change:
        yield f"all of it: `memctl undo {change}`"
        yield f"see what it did: `memctl show {change}`"


def _reason_line(file: Reasoned) -> str:
    """Return the path of a file, and the reason if there is one."""
    return ": ".join(filter(None, (span(file.path), span(file.reason))))


def _proposal_lines(dreamed: Dreamed) -> Iterator[str]:
    """Yield lines about the proposal: its problems and how to review it."""
    if dreamed.proposal:
        yield from (f"kept back: {span(problem)}" for problem in dreamed.problems or ())
        command = f"memctl review show {dreamed.proposal}"
        yield f"look at what the dream wanted, and accept or reject it: `{command}`"


def _cost_lines(dreamed: Dreamed) -> Iterator[str]:
    """Yield who consolidated, why no model did, and the cost."""
    if dreamed.engine:
        by = "the fixed rules" if dreamed.engine == LOCAL else span(dreamed.engine)
        yield f"by {by}"
    if dreamed.model_problem:
        yield f"no model, since: {span(dreamed.model_problem)}"
    seconds = dreamed.seconds or 0.0
    minutes, remaining_seconds = divmod(round(seconds), _MINUTE)
    parts = (
        (dreamed.turns, "{:.0f} turns"),
        (sum((dreamed.usage or {}).values()), "{:,.0f} tokens"),
        (dreamed.dollars, "${:.4f}"),
        (seconds, f"{minutes} min {remaining_seconds} s" if minutes else "{:.1f} s"),
    )
    known_parts = [words.format(amount) for amount, words in parts if amount]
    if known_parts:
        yield ", ".join(known_parts)


def span(text: str, limit: int = TEXT_CHARACTERS) -> str:
    """Return a text as a code span of at most ``limit`` characters, "" if nothing of it shows."""
    # Cut before and after: a huge text must cost little, and removed characters need room.
    line = one_line(text[: 8 * limit], 2 * limit).replace("`", _TICK)
    printable = "".join(char for char in removed(line) if char.isprintable())
    shown = one_line(printable, limit)
    return f"`{shown}`" if shown else ""
