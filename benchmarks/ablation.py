"""What each piece of the ranking is worth: ``python -m benchmarks.ablation DATA``.

Each line leaves one piece out, in process, with the floor on: recall@5 and @10 on LoCoMo's
conversations 1 to 3 and 4 to 5, then recall@5 and the share of silence on the coding set: tuned
on, held out, natural prompts, and later ones; "foreign" is the share of prompts of other projects
that were answered. "work" are the five figures of ``talk_recall.py`` on prompts of real work.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from benchmarks import talk_recall
from benchmarks.measures import table
from benchmarks.recall_sets import (
    PARTS,
    Answer,
    Collection,
    answers,
    coding,
    conversations,
    indexed_search,
    mean,
)
from benchmarks.talk_recall import figures
from memd.search import query, ranking
from memd.text import words

Change = Mapping[Any, Mapping[str, Any]]

PIECES: Mapping[str, Change] = {
    "all of it": {},
    "without its floor": {},
    "stop words": {words: {"_stop": tuple}},
    "irregular forms": {words: {"_irregular": dict}},
    "spelling of dates": {words: {"_spelled": lambda match: match.group()}},
    "damping of common words": {query: {"_COMMON": 1.0}},
    "synonyms": {ranking: {"_SYNONYM": 0.0}},
    "word pairs": {ranking: {"_PAIR": 0.0}},
    "subject": {ranking: {"_SUBJECT": 0.0}},
    "floor: common words count in full": {ranking: {"_DULL": 1.0}},
    "floor: the body counts in full": {ranking: {"_BODY": 1.0}},
    "floor: no share of the prompt": {ranking: {"_COVERAGE": 0.0}},
    "floor: the same for rules": {ranking: {"_RULE_FLOOR": 0.35}},
    "floor: the same for those beside": {ranking: {"_FOLLOW": 1.0}},
}


def main(data: str) -> int:
    """Print the table; return the exit status."""
    talks, projects, sources = conversations(data), coding(), talk_recall.sources(data)
    rows: list[tuple[str, ...]] = [
        (
            *("left out", "talks 1-3", "talks 4-5", "coding", "silent"),
            *("held out", "silent", "natural", "silent", "later", "silent", "foreign"),
            *("work: tuned", "held out"),
        )
    ]
    for name, change in PIECES.items():
        with changed(change):
            floor = name != "without its floor"
            results = [
                answers(one, indexed_search(one, floor=floor)) for one in (*talks, *projects)
            ]
            foreign = _foreign(projects, floor=floor)
            work = [figures(sources, held_out=held, floor=floor) for held in (False, True)]
        parts = _figures(results[: len(talks)], results[len(talks) :])
        rows.append((name, *parts, foreign, *map(" ".join, work)))
    print(table(rows))
    return 0


def _figures(
    talks: Sequence[Sequence[Answer]], projects: Sequence[Sequence[Answer]]
) -> Iterator[str]:
    for held in (False, True):
        rows = [row for talk in talks for row in talk if row.question.held_out is held]
        both = (mean(row.five for row in rows), mean(row.ten for row in rows)) if rows else ()
        yield " ".join(f"{figure:.3f}" for figure in both)
    for part in PARTS:
        rows = [row for one in projects for row in one if row.question.part == part]
        yield f"{mean(row.five for row in rows):.3f}"
        yield f"{mean(float(not row.given) for row in rows if not row.question.evidence):.3f}"


def _foreign(projects: Sequence[Collection], *, floor: bool) -> str:
    """Return the share of all prompts of other projects that a project answers."""
    brought = [
        bool(search(question.text, 5))
        for one in projects
        for search in (indexed_search(one, floor=floor),)
        for other in projects
        for question in (other.questions if other is not one else ())
    ]
    return f"{mean(map(float, brought)):.3f}"


@contextmanager
def changed(change: Change) -> Iterator[None]:
    """Run without a piece: this is a measurement of the program, not a use of it."""
    before = {
        module: {name: getattr(module, name) for name in values}
        for module, values in change.items()
    }
    _set(change)
    _forget()
    try:
        yield
    finally:
        _set(before)
        _forget()


def _forget() -> None:
    caches = (
        (words, ("_stop", "_irregular", "common")),
        (query, ("_table",)),
        (ranking, ("_dull",)),
    )
    for module, names in caches:
        for name in names:
            getattr(getattr(module, name), "cache_clear", int)()


def _set(change: Change) -> None:
    for module, values in change.items():
        for name, value in values.items():
            setattr(module, name, value)


if __name__ == "__main__":
    sys.exit(main(*(sys.argv[1:] or ["../shared/corpora"])))
