"""What each piece of the ranking is worth: ``python -m benchmarks.ablation DATA``.

Each line leaves one piece out, in process, with the floor on: recall@5 and @10 on LoCoMo's
conversations 1 to 3 and 4 to 5, then recall@5 and the share of silence on the coding set: tuned
on, held out, natural prompts, and later ones.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from typing import Any

from benchmarks.measures import table
from benchmarks.recall_sets import (
    PARTS,
    TODAY,
    Answer,
    Collection,
    Search,
    answers,
    coding,
    conversations,
    mean,
)
from memd.state import asking, dates, scoring, synonyms, weighing, words
from memd.state.search import Entry, SearchIndex
from memd.state.stance import Stance

Change = Mapping[Any, Mapping[str, Any]]

_NOTHING: Callable[[], frozenset[str]] = frozenset
PIECES: Mapping[str, Change] = {
    "all of it": {},
    "without its floor": {},
    "stemming": {words: {"_stem": lambda tokens: {token: token for token in tokens}}},
    "stop words": {words: {"_stop": _NOTHING}},
    "irregular forms": {words: {"_irregular": lambda: {dates.MAY: "may"}}},
    "damping of common words": {asking: {"_COMMON": 1.0}},
    "synonyms": {asking: {"_SYNONYM": 0.0}},
    "families of words": {asking: {"_FAMILY": 0.0}},
    "word pairs": {weighing: {"_PAIR": 0.0}},
    "subject": {weighing: {"_SUBJECT": 0.0}},
    "dates": {weighing: {"_DATE": 0.0}},
    "feedback": {weighing: {"_FEEDBACK": 0.0}},
    "floor: common words count in full": {weighing: {"_DULL": 1.0}},
    "floor: no share of the prompt": {scoring: {"_COVERAGE": 0.0}},
    "floor: the same for a follow-up": {scoring: {"_FLOORS": dict.fromkeys(Stance, 0.25)}},
    "floor: rarity alone": {scoring: {"_WHOLE": 100.0}},
    "floor: the same for those beside": {scoring: {"_FOLLOW": 1.0}},
    "floor: no bound below the best": {scoring: {"_RELATIVE": 0.0}},
}


def main(data: str) -> int:
    """Print the table; return the exit status."""
    talks, projects = conversations(data), coding()
    rows: list[tuple[str, ...]] = [
        (
            *("left out", "talks 1-3", "talks 4-5", "coding", "silent"),
            *("held out", "silent", "natural", "silent", "later", "silent"),
        )
    ]
    for name, change in PIECES.items():
        with changed(change):
            floor = name != "without its floor"
            found = [answers(one, indexed_search(one, floor=floor)) for one in (*talks, *projects)]
        rows.append((name, *_figures(found[: len(talks)], found[len(talks) :])))
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


def indexed_search(collection: Collection, *, floor: bool) -> Search:
    """Return a search over an index in memory."""
    index = SearchIndex()
    index.update(
        Entry(item.path, (at, 0, 0), 0, item.name, item.description, item.type, item.body)
        for at, item in enumerate(collection.items)
    )
    today = date.fromisoformat(TODAY)

    def search(query: str, limit: int) -> Sequence[str]:
        found = index.rank(query, limit, floor=floor, today=today)
        return [ranked.path for ranked in found]

    return search


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
    for name in ("_stems", "_roots"):
        getattr(words, name).clear()
    for module, name in ((words, "common"), (synonyms, "_table"), (weighing, "_dull")):
        getattr(module, name).cache_clear()


def _set(change: Change) -> None:
    for module, values in change.items():
        for name, value in values.items():
            setattr(module, name, value)


if __name__ == "__main__":
    sys.exit(main(*(sys.argv[1:] or ["../shared/corpora"])))
