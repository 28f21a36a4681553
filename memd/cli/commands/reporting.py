"""report: a summary of memd's work."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from memd.base.names import SUFFIX
from memd.cli import output
from memd.cli.invocation import Invocation
from memd.cli.output import columns, cut

_MAX_MEMORIES = 3  # memories of one list; --json has ten
_SENTENCE_COLUMNS = 67  # of 80, beside the names of the rows, with project and number
_MIN_SENTENCE_COLUMNS = 20
_MAX_DAYS = 7  # of those on which models were asked; --json has all


def report(invocation: Invocation) -> None:
    """Print a summary of memd's work, without the lines for which there is nothing."""
    options = invocation.options
    answer = invocation.request(cwd=invocation.cwd if options.here else None)
    days = "day" if answer["days"] == 1 else f"{answer['days']} days"
    span = f"{days} since {answer['since'][:16]}Z"
    pairs = [("the last", span), *_memory_pairs(answer), *_use_pairs(answer), *_work_pairs(answer)]
    invocation.screen.answer(answer, output.facts(pairs))


def _memory_pairs(answer: Mapping[str, Any]) -> Iterable[tuple[str, object]]:
    """Yield the pairs about what happened to memories: learnt, changed, merged, removed."""
    for name in ("learnt", "changed", "merged", "removed"):
        yield from _count_and_sentences(name, answer[name])


def _use_pairs(answer: Mapping[str, Any]) -> Iterable[tuple[str, object]]:
    """Yield the pairs about the memories that sessions were given."""
    surfaced = answer["surfaced"]
    if surfaced["times"]:
        times = _count_noun(surfaced["times"], "time")
        yield "surfaced", f"{times}: {_count_noun(surfaced['memories'], 'memory')}"
    for number, memory in enumerate(answer["most"][:_MAX_MEMORIES]):
        times = _count_noun(memory["surfaced"], "time")
        yield "" if number else "most often", _memory_name(memory, f", {times}")


def _work_pairs(answer: Mapping[str, Any]) -> Iterable[tuple[str, object]]:
    """Yield the pairs about suggestions, dreams and cost."""
    counts = [(count, name) for name, count in answer["suggestions"].items() if count]
    yield "suggestions", ", ".join(f"{count} {name}" for count, name in counts)
    if answer["suggestions"]["open"]:
        yield "", "those that are open wait for you: memctl review"
    yield "dreams", answer["dreams"] or ""
    if answer["tokens"]:
        yield "spent", f"${answer['dollars']:.4f}, {answer['tokens']:,} tokens"
    for row in (*answer["spent_by_kind"], *answer["spent_by_day"][:_MAX_DAYS]):
        requests = _count_noun(row["requests"], "request")
        yield "", f"{row['label']}: ${row['dollars']:.4f}, {row['tokens']:,} tokens, {requests}"


def _count_and_sentences(name: str, counted: Mapping[str, Any]) -> Iterable[tuple[str, object]]:
    """Yield the count of memories with the first few sentences, one a line."""
    shown = counted["memories"][:_MAX_MEMORIES]
    for number, memory in enumerate(shown):
        yield ("" if number else f"{name} {counted['count']}"), _memory_name(memory)
    if counted["count"] > len(shown):
        yield "", f"and {counted['count'] - len(shown)} more"


def _memory_name(memory: Mapping[str, Any], end: str = "") -> str:
    """Return a memory's sentence with its project; of one that is gone its name in words."""
    end = f" ({memory['project']}){end}"
    stem = memory["path"].removesuffix(SUFFIX).rpartition("/")[2]
    words = memory["description"] or re.sub("[-_]+", " ", stem)
    return cut(words, max(_SENTENCE_COLUMNS - columns(end), _MIN_SENTENCE_COLUMNS)) + end


def _count_noun(count: int, noun: str) -> str:
    """Return a count with a noun, in the plural unless it is 1."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count:,} {noun if count == 1 else plural}"
