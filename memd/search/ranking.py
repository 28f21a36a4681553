"""Rank memories for a prompt, and cut those below a floor. Pure.

The score is BM25 over name, description, type, path and body as one text, with a bonus for
neighbouring words and for a memory that begins with a name in the prompt. docs/recall.md has the
measured value of each part.

Rules of this file
- The result does not depend on the order of the documents.
- No result is better than a poor one: memories below the floor are cut. Of equal scores the newer
  memory comes first.
"""

import math
from collections.abc import Iterable, Mapping
from functools import cache
from operator import attrgetter
from typing import Protocol

from msgspec import Struct

from memd.search.query import Query
from memd.text.words import common

BELOW_FLOOR = "below the floor"
BEYOND_LIMIT = "beyond the limit"

_RULE = " feedback "
_FEW = 12  # forms; so few are counted faster one by one than with a set of the words of a memory
_K1 = 1.2  # BM25's usual saturation; a long memory is as good as a short one (b = 0)
_SYNONYM = 0.45  # of a word's weight
_PAIR = 0.3  # of the weight of two neighbouring words, where they are neighbours in a memory
_SUBJECT = 1.0  # bonus of a memory that begins with a name in the prompt
_BACKGROUND = 50  # memories added to the count, so that rarity works in a small store too
_BODY = 0.5  # factor towards the floor of a word that is only in the body
_DULL = 0.5  # factor towards the floor of a common word or a bare number
# The floor, as a share of the rarity of a word that only one memory has.
_FLOOR = 0.35
_RULE_FLOOR = 0.28  # for a rule, whose topic prompts name in a word or two
_COVERAGE = 0.1  # and at least this share of the weight of the prompt's heaviest words,
_COVERED_WORDS = 8  # of which only so many count, as a long prompt has several topics
_FOLLOW = 0.4  # share of the floor that is enough once another memory reaches all of it


class Statistics(Protocol):
    """Statistics of an index about all its memories."""

    @property
    def count(self) -> int:
        """The number of memories."""
        ...

    def holders(self, word: str) -> int:
        """Return how many memories have a word."""
        ...


class SearchDocument(Struct, frozen=True):
    """The text of a memory for the ranker.

    ``words`` are its words with spaces around them, those of the description and the name first;
    ``heading`` is the number of characters of these.
    """

    path: str
    mtime_ns: int
    words: str
    heading: int

    @property
    def is_rule(self) -> bool:
        """Whether its type, the word behind the heading, is that of a rule."""
        return self.words.startswith(_RULE, self.heading)


class Ranked(Struct, frozen=True):
    """A ranked memory: its score, the parts of the score, and the words that matched.

    ``cut`` is the reason why it is not a result, "" if it is one.
    """

    path: str
    score: float
    terms: tuple[str, ...]
    parts: Mapping[str, float]
    cut: str = ""


class _Term(Struct, frozen=True):
    """A word of the prompt; ``forms`` are it and its synonyms, in spaces, with their weights."""

    word: str
    forms: tuple[tuple[str, float], ...]
    share: float  # of its weight that counts towards the floor


class _Weighed(Struct, frozen=True):
    """A memory that matches the prompt, with its score and what counts towards the floor."""

    document: SearchDocument
    score: float
    parts: Mapping[str, float]
    terms: tuple[str, ...]
    brings: float  # its value that is compared with the floor

    def reaches(self, floors: tuple[float, float], share: float = 1.0) -> bool:
        """Return whether it reaches a share of its floor; ``floors`` are of others and of rules."""
        return self.brings >= share * floors[self.document.is_rule]

    @property
    def rank(self) -> tuple[float, int, str]:
        """The sort key: by score, then the newer first, then by path."""
        return (-self.score, -self.document.mtime_ns, self.document.path)


def word_weights(query: Query) -> dict[str, float]:
    """Return the words and synonyms to search for, each with the factor of its rarity."""
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
    """Return every memory that has a word of the prompt, the best first, and why some are cut.

    At most ``limit`` are not cut. Without ``floor`` none is cut for a low value.
    """
    rarity = _Rarity(statistics)
    terms = [_term(word, factor, query, rarity) for word, factor in query.factors.items()]
    weights = {term.word: term.forms[0][1] for term in terms}
    pairs = [(one, two, weights[one] + weights[two]) for one, two in query.pairs]
    forms = {form[1:-1]: form for term in terms for form, _ in term.forms}
    results = (_weigh(terms, forms, pairs, query.names, document) for document in documents)
    weighed = sorted(filter(None, results), key=attrgetter("rank"))
    floors = _floors(query, terms, rarity) if floor else (0.0, 0.0)
    follow = _FOLLOW if any(item.reaches(floors) for item in weighed) else 1.0
    result: list[Ranked] = []
    remaining = limit
    for item in weighed:
        cut = BELOW_FLOOR
        if item.reaches(floors, follow):
            cut = "" if remaining > 0 else BEYOND_LIMIT
        remaining -= not cut
        result.append(Ranked(item.document.path, item.score, item.terms, item.parts, cut))
    return tuple(result)


def answered(ranked: Iterable[Ranked]) -> tuple[Ranked, ...]:
    """Return the memories that are not cut."""
    return tuple(item for item in ranked if not item.cut)


class _Rarity:
    """The rarities of words: the fewer memories have a word, the higher. They are cached."""

    def __init__(self, statistics: Statistics) -> None:
        self._statistics = statistics
        self._count = statistics.count + _BACKGROUND
        self._known: dict[str, float] = {}
        self.unique = self._of_holders(1)  # of a word that only one memory has

    def of(self, word: str) -> float:
        """Return the rarity of a word."""
        rarity = self._known.get(word)
        if rarity is None:
            rarity = self._known[word] = self._of_holders(self._statistics.holders(word))
        return rarity

    def _of_holders(self, holders: int) -> float:
        """Return the rarity of a word that so many memories have."""
        holders = min(holders, self._count)
        return math.log(1 + (self._count - holders + 0.5) / (holders + 0.5))


def _term(word: str, factor: float, query: Query, rarity: _Rarity) -> _Term:
    """Return a word of the prompt with its weight and those of its synonyms."""
    weight = factor * rarity.of(word)
    others = [
        (f" {other} ", _SYNONYM * min(weight, rarity.of(other)))
        for other in query.synonyms.get(word, ())
    ]
    return _Term(word, ((f" {word} ", weight), *others), _DULL if word in _dull() else 1.0)


def _floors(query: Query, terms: Iterable[_Term], rarity: _Rarity) -> tuple[float, float]:
    """Return the least value of a result, first for a memory that is no rule, then for a rule.

    A word that no memory has weighs as much as one that only one memory has.
    """
    weights = [
        term.share * min(term.forms[0][1], query.factors[term.word] * rarity.unique)
        for term in terms
    ]
    covered = _COVERAGE * sum(sorted(weights, reverse=True)[:_COVERED_WORDS])
    return max(_FLOOR * rarity.unique, covered), max(_RULE_FLOOR * rarity.unique, covered)


def _weigh(
    terms: Iterable[_Term],
    forms: Mapping[str, str],
    pairs: Iterable[tuple[str, str, float]],
    names: frozenset[str],
    document: SearchDocument,
) -> _Weighed | None:
    """Return a memory with its score and parts, ``None`` if it has no word of the prompt.

    ``forms`` are those of the terms by their words without spaces.
    """
    text = document.words
    counts = _counts(text, forms)
    matched: dict[str, None] = {}
    bm25 = brings = 0.0
    for term in terms:
        gain = value = 0.0
        for form, weight in term.forms:
            times = counts.get(form)
            if times:
                gain = max(gain, weight * times * (_K1 + 1) / (times + _K1))  # BM25
                is_in_heading = text.find(form, 0, document.heading + 1) >= 0
                value = max(value, weight * term.share * (1.0 if is_in_heading else _BODY))
        if gain:
            matched[term.word] = None
            bm25 += gain
            brings += value
    if not matched:
        return None
    neighbours = [
        weight
        for one, two, weight in pairs
        if one in matched and two in matched and f" {one} {two} " in text
    ]
    parts = {
        "bm25": bm25,
        "pairs": _PAIR * sum(neighbours),
        "subject": _SUBJECT if names and text.split(maxsplit=1)[0] in names else 0.0,
    }
    score = round(sum(parts.values()), 6)
    shown = {name: round(part, 6) for name, part in parts.items() if part}
    return _Weighed(document, score, shown, tuple(matched), brings)


def _counts(text: str, forms: Mapping[str, str]) -> dict[str, int]:
    """Return how often a memory's text has each form that it has."""
    if len(forms) <= _FEW:
        return {form: times for form in forms.values() if (times := text.count(form))}
    return {(form := forms[word]): text.count(form) for word in forms.keys() & text.split()}


@cache
def _dull() -> frozenset[str]:
    """Return words that say little about a memory's topic: common words, days and years."""
    return common() | {str(number) for number in (*range(100), *range(1990, 2100))}
