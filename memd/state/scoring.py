"""The one home of the order: which of the memories that an engine proposes fit a prompt. Pure.

An engine (``state/search.py`` in memory, another one on disk) proposes candidates by the weights
that ``terms`` gives; ``order`` decides among them. Both see a memory as the numbers of its words.

Rules of this file
- Same prompt, statistics and documents give the same answer, in whatever order they come.
- Silence beats noise: below the floor nothing is answered. Recency decides only
  between equal scores.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter

from memd.state.asking import Asked
from memd.state.keys import KEY_BYTES, key, keys, pack, pack_key
from memd.state.stance import Stance
from memd.state.weighing import (
    Document,
    Plan,
    Rarities,
    Statistics,
    Weighed,
    feed_back,
    most_feedback,
    plan,
    saturate,
    weigh,
    weights,
)

__all__ = [
    "BELOW_FLOOR",
    "BEYOND_LIMIT",
    "CANDIDATES",
    "FAR_BELOW_BEST",
    "KEY_BYTES",
    "Document",
    "Ranked",
    "Statistics",
    "judge",
    "key",
    "keys",
    "order",
    "pack",
    "pack_key",
    "saturate",
    "terms",
]

CANDIDATES = 100  # what an engine proposes at least; they hold 95 % of what helps

BELOW_FLOOR = "below the floor"
FAR_BELOW_BEST = "far below the best"
BEYOND_LIMIT = "beyond the limit"

_DATE_WORD = 0.5  # what an engine gives a word of a date that the prompt means
# The floor: the weight of matched words that a memory must bring; of the rarity of a word that one
# memory holds.
_FLOORS = {
    Stance.RECALLS: 0.0,
    Stance.OPENS: 0.25,
    Stance.TELLS: 0.35,
    Stance.CARRIES_ON: 1.1,  # one rare word is not enough
}
# … or of what the prompt says at all, where it asks or begins work: a store may be about nothing
# else, and then no word is rare.
_WHOLE = 0.8
_FOLLOW = 0.3  # of the floor, for others beside a memory that reaches it
_COVERAGE = 0.08  # of the weight of the query's heaviest words
_COVERED_WORDS = 8  # so many of them: a long prompt is about more than one memory can match
_PART_OF_CJK = 0.5  # pairs of characters overlap: two of them say what one word does
_RELATIVE = 0.25  # of the best score
_ROUNDED = 1e-5  # scores differ by less through rounding


@dataclass(frozen=True, slots=True)
class Ranked:
    """A memory that was weighed: its score, what it is made of, and the words that matched.

    ``cut`` is empty for a memory that is answered, or says why this one is not.
    """

    path: str
    score: float
    terms: tuple[str, ...]
    parts: Mapping[str, float]
    cut: str = ""


def terms(asked: Asked, statistics: Statistics) -> dict[str, float]:
    """Return what an engine looks for and what each word weighs.

    The prompt's own words come in its order, then what may stand for them, then the words of the
    dates that it means.
    """
    rarities = Rarities(statistics)
    found = weights(asked, rarities)
    for word, others in asked.others.items():
        for other, share in others.items():
            weight = share * min(found[word], rarities.of(other))
            if other not in asked.factors:
                found[other] = max(found.get(other, 0.0), weight)
    for mention in asked.dates:
        for word in mention:
            found.setdefault(word, _DATE_WORD * rarities.of(word))
    return found


def order(
    asked: Asked,
    statistics: Statistics,
    documents: Iterable[Document],
    limit: int,
    *,
    floor: bool,
) -> tuple[Ranked, ...]:
    """Return the memories that fit best, the best first, at most ``limit``.

    Without ``floor`` all that hold a word of the prompt count.
    """
    judged = _judge(asked, statistics, documents, limit, floor=floor, whole=False)
    return tuple(_ranked(item, cut) for item, cut in judged if not cut)


def judge(
    asked: Asked,
    statistics: Statistics,
    documents: Iterable[Document],
    limit: int,
    *,
    floor: bool,
) -> tuple[Ranked, ...]:
    """Return every proposed memory that holds a word, the best first, and why some are cut."""
    judged = _judge(asked, statistics, documents, limit, floor=floor, whole=True)
    return tuple(_ranked(item, cut) for item, cut in judged)


def _judge(
    asked: Asked,
    statistics: Statistics,
    documents: Iterable[Document],
    limit: int,
    *,
    floor: bool,
    whole: bool,
) -> Iterator[tuple[Weighed, str]]:
    rarities = Rarities(statistics)
    planned = plan(asked, rarities)
    weighed = [item for item in (weigh(planned, document) for document in documents) if item]
    weighed.sort(key=attrgetter("rank"))
    least = _least(planned, rarities.unique()) if floor else 0.0
    if any(item.brings >= least for item in weighed):
        least *= _FOLLOW
    feed_back(
        planned, rarities, weighed, 0.0 if whole else _hopeless(planned, weighed, least, limit)
    )
    weighed.sort(key=attrgetter("rank"))
    enough = -_RELATIVE * weighed[0].rank[0] if floor and weighed else 0.0
    answered = 0
    for item in weighed:
        if item.brings < least:
            yield item, BELOW_FLOOR
        elif -item.rank[0] < enough:
            yield item, FAR_BELOW_BEST
        elif answered >= limit:
            yield item, BEYOND_LIMIT
        else:
            yield item, ""
            answered += 1


def _hopeless(planned: Plan, weighed: Sequence[Weighed], least: float, limit: int) -> float:
    """Return the score below which nothing is among the answered, whatever feedback adds."""
    good = (item for item in weighed if item.brings >= least)
    last = next(islice(good, max(limit - 1, 0), None), None)
    return 0.0 if last is None else -last.rank[0] - most_feedback(planned) - _ROUNDED


def _ranked(item: Weighed, cut: str) -> Ranked:
    return Ranked(item.document.path, -item.rank[0], item.terms, item.parts, cut)


def _least(planned: Plan, unique: float) -> float:
    """Return the floor; a word that no memory holds weighs no more than one that one holds."""
    factors = planned.asked.factors
    said = [
        planned.shares[word]
        * min(weight, factors[word] * unique)
        * (1.0 if word.isascii() else _PART_OF_CJK)
        for word, weight in planned.weights.items()
    ]
    heaviest = sum(sorted(said, reverse=True)[:_COVERED_WORDS])
    stance = planned.asked.stance
    rare = _FLOORS[stance] * unique
    if stance is Stance.OPENS:
        rare = min(rare, _WHOLE * heaviest)
    return max(rare, _COVERAGE * heaviest)
