"""The order of memories for a prompt, and the floor below which nothing is answered. Pure.

BM25 over name, description, type, path and body as one text, with a bonus for neighbouring words
and for a memory that begins with a name of the prompt. What each part is worth, and what was left
out because it was worth nothing, stands in docs/recall.md.

Rules of this file
- The same prompt, statistics and documents give the same answer, in whatever order they come.
- Silence is better than noise: below the floor nothing is answered. Recency decides only between
  equal scores.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from typing import Protocol

from memd.search.query import Query
from memd.text.words import common

BELOW_FLOOR = "below the floor"
BEYOND_LIMIT = "beyond the limit"

_RULE = " feedback "
_FEW = 48  # words that are sooner searched for one by one than by making a set of a memory's words
_K1 = 1.2  # BM25's usual saturation; a long memory is as good as a short one (b = 0)
_SYNONYM = 0.45  # of a word's weight
_PAIR = 0.3  # of the weight of two neighbouring words, where they are neighbours in a memory
_SUBJECT = 1.0  # what a memory gains that begins with a name that the prompt names
_BACKGROUND = 50  # imagined memories without the word: rarity means something in a small store too
_BODY = 0.5  # what a word counts towards the floor that only the body holds
_DULL = 0.5  # … that is common, or a bare number
# What a memory must bring, as a share of the rarity of a word that one memory holds.
_FLOOR = 0.35
_RULE_FLOOR = 0.28  # … for a rule: prompts name in a word or two what it is about
_COVERAGE = 0.1  # … and of the weight of the prompt's heaviest words: a long one says more
_COVERED_WORDS = 8  # so many of them: a long prompt is about more than one memory can match
_FOLLOW = 0.4  # of the floor, for others beside a memory that reaches it


class Statistics(Protocol):
    """What an index knows about all its memories."""

    @property
    def count(self) -> int:
        """How many memories there are."""
        ...

    def holders(self, word: str) -> int:
        """Return how many memories hold a word."""
        ...


@dataclass(frozen=True, slots=True)
class SearchDocument:
    """A memory as the ranker sees it.

    ``words`` are its words, each between two spaces, those of the description and the name first;
    ``heading`` says how many characters these take.
    """

    path: str
    mtime_ns: int
    words: str
    heading: int

    @property
    def is_rule(self) -> bool:
        """Whether its type, which stands behind the heading, says that it is a rule."""
        return self.words.startswith(_RULE, self.heading)


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


@dataclass(frozen=True, slots=True)
class _Term:
    """A word of the prompt: ``forms`` are spaced words with what each weighs, itself first."""

    word: str
    forms: tuple[tuple[str, float], ...]
    share: float  # of its weight that counts towards the floor


@dataclass(frozen=True, slots=True)
class _Weighed:
    document: SearchDocument
    score: float
    parts: Mapping[str, float]
    terms: tuple[str, ...]
    brings: float  # what counts towards the floor

    def reaches(self, floors: tuple[float, float], share: float = 1.0) -> bool:
        """Whether it brings a share of its floor: the first, or the second for a rule."""
        return self.brings >= share * floors[self.document.is_rule]

    @property
    def rank(self) -> tuple[float, int, str]:
        """The better first, then the newer, then by the path."""
        return (-self.score, -self.document.mtime_ns, self.document.path)


def word_weights(query: Query) -> dict[str, float]:
    """Return the words to search for, synonyms among them, and by what to multiply their rarity."""
    result = dict(query.factors)
    for word, others in query.synonyms.items():
        for other in others:
            result[other] = max(result.get(other, 0.0), _SYNONYM * query.factors[word])
    return result


def rank(
    query: Query,
    statistics: Statistics,
    documents: Iterable[SearchDocument],
    limit: int,
    *,
    floor: bool = True,
) -> tuple[Ranked, ...]:
    """Return every memory that holds a word of the prompt, the best first, and why some are cut.

    At most ``limit`` are not. Without ``floor`` nothing is cut for bringing too little.
    """
    rarity = _Rarity(statistics)
    terms = [_term(word, factor, query, rarity) for word, factor in query.factors.items()]
    weights = {term.word: term.forms[0][1] for term in terms}
    pairs = [(one, two, weights[one] + weights[two]) for one, two in query.pairs]
    results = (_weigh(terms, pairs, query.names, document) for document in documents)
    weighed = sorted(filter(None, results), key=attrgetter("rank"))
    floors = _floors(query, terms, rarity) if floor else (0.0, 0.0)
    follow = _FOLLOW if any(item.reaches(floors) for item in weighed) else 1.0
    result: list[Ranked] = []
    room = limit
    for item in weighed:
        enough = item.reaches(floors, follow)
        cut = "" if enough and room > 0 else BEYOND_LIMIT if enough else BELOW_FLOOR
        room -= not cut
        result.append(Ranked(item.document.path, item.score, item.terms, item.parts, cut))
    return tuple(result)


def answered(ranked: Iterable[Ranked]) -> tuple[Ranked, ...]:
    """Return what is not cut."""
    return tuple(item for item in ranked if not item.cut)


class _Rarity:
    """How much a word says, by how few memories hold it; each is asked for once."""

    def __init__(self, statistics: Statistics) -> None:
        self._statistics = statistics
        self._count = statistics.count + _BACKGROUND
        self._known: dict[str, float] = {}
        self.unique = self._of_holders(1)  # of a word that one memory holds

    def of(self, word: str) -> float:
        """Return the rarity of a word."""
        rarity = self._known.get(word)
        if rarity is None:
            rarity = self._known[word] = self._of_holders(self._statistics.holders(word))
        return rarity

    def _of_holders(self, holders: int) -> float:
        holders = min(holders, self._count)
        return math.log(1 + (self._count - holders + 0.5) / (holders + 0.5))


def _term(word: str, factor: float, query: Query, rarity: _Rarity) -> _Term:
    weight = factor * rarity.of(word)
    others = [
        (f" {other} ", _SYNONYM * min(weight, rarity.of(other)))
        for other in query.synonyms.get(word, ())
    ]
    return _Term(word, ((f" {word} ", weight), *others), _DULL if word in _dull() else 1.0)


def _floors(query: Query, terms: Iterable[_Term], rarity: _Rarity) -> tuple[float, float]:
    """Return the floors of other memories and of rules.

    A word of the prompt that no memory holds weighs no more than one that one holds.
    """
    said = [
        term.share * min(term.forms[0][1], query.factors[term.word] * rarity.unique)
        for term in terms
    ]
    covered = _COVERAGE * sum(sorted(said, reverse=True)[:_COVERED_WORDS])
    return max(_FLOOR * rarity.unique, covered), max(_RULE_FLOOR * rarity.unique, covered)


def _weigh(
    terms: Sequence[_Term],
    pairs: Iterable[tuple[str, str, float]],
    names: frozenset[str],
    document: SearchDocument,
) -> _Weighed | None:
    """Return what a memory gains, or ``None`` when it holds nothing of the prompt."""
    text = document.words
    result: dict[str, None] = {}
    bm25 = brings = 0.0
    for term in terms if len(terms) <= _FEW else _held(terms, text):
        gain = counts = 0.0
        for form, weight in term.forms:
            at = text.find(form)
            if at >= 0:
                times = text.count(form)
                gain = max(gain, weight * times * (_K1 + 1) / (times + _K1))
                place = 1.0 if at < document.heading else _BODY
                counts = max(counts, weight * term.share * place)
        if gain:
            result[term.word] = None
            bm25 += gain
            brings += counts
    if not result:
        return None
    both = (pair for pair in pairs if pair[0] in result and pair[1] in result)
    beside = [pair for pair in both if f" {pair[0]} {pair[1]} " in text]
    parts = {
        "bm25": bm25,
        "pairs": _PAIR * sum(weight for *_, weight in beside),
        "subject": _SUBJECT if names and text.split(maxsplit=1)[0] in names else 0.0,
    }
    score = round(sum(parts.values()), 6)
    shown = {name: round(part, 6) for name, part in parts.items() if part}
    return _Weighed(document, score, shown, tuple(result), brings)


def _held(terms: Iterable[_Term], text: str) -> list[_Term]:
    """Return the terms of which a memory holds a form; one look at its words for all of them."""
    words = set(text.split())
    return [term for term in terms if any(form[1:-1] in words for form, _ in term.forms)]


@cache
def _dull() -> frozenset[str]:
    """Return words that say little about what a memory is about: common ones, days and years."""
    return common() | {str(number) for number in (*range(100), *range(1990, 2100))}
