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

_RULE_WORD = " feedback "  # the type of a rule, as it stands in the words of a memory
_FEW_FORMS = 12  # so few are counted faster one by one than with a set of the words of a memory
_K1 = 1.2  # BM25's usual saturation; a long memory is as good as a short one (b = 0)
_SYNONYM_SHARE = 0.45  # of a word's weight
_PAIR_SHARE = 0.3  # of the weight of two neighbouring words, where they are neighbours in a memory
_SUBJECT_BONUS = 1.0  # bonus of a memory that begins with a name in the prompt
_ASSUMED_MEMORIES = 50  # memories added to the count, so that rarity works in a small store too
_BODY_FACTOR = 0.5  # factor towards the floor of a word that is only in the body
_DULL_FACTOR = 0.5  # factor towards the floor of a common word or a bare number
# The floor is a share of the rarity of a word that only one memory has, and at least a share of the
# weight of the prompt's heaviest words. Only some of these count, as a long prompt has several
# topics.
_FLOOR_SHARE = 0.35
_RULE_FLOOR_SHARE = 0.28  # for a rule, whose topic prompts name in a word or two
_COVERED_SHARE = 0.1
_COVERED_WORDS = 8
_FOLLOWING_SHARE = 0.4  # of the floor, which is enough once another memory reaches all of it


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
        return self.words.startswith(_RULE_WORD, self.heading)


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
    """A word of the prompt, with its synonyms."""

    word: str
    # The word, then its synonyms, each between spaces and with its weight in the score.
    forms: tuple[tuple[str, float], ...]
    floor_share: float  # of the weights, that counts towards the floor

    @property
    def weight(self) -> float:
        """The weight of the word itself."""
        return self.forms[0][1]


class _ScoredMemory(Struct, frozen=True):
    """A memory that matches the prompt, with its score and what counts towards the floor."""

    document: SearchDocument
    score: float
    parts: Mapping[str, float]
    terms: tuple[str, ...]
    floor_value: float  # is compared with the floor

    def reaches(self, floors: "_Floors", share: float = 1.0) -> bool:
        """Return whether it reaches a share of its floor."""
        floor = floors.of_rule if self.document.is_rule else floors.of_other
        return self.floor_value >= share * floor

    @property
    def sort_key(self) -> tuple[float, int, str]:
        """The sort key: by score, then the newer first, then by path."""
        return (-self.score, -self.document.mtime_ns, self.document.path)


class _Floors(Struct, frozen=True):
    """The least value of a result that is a rule, and of any other result."""

    of_rule: float = 0.0
    of_other: float = 0.0


def word_weights(query: Query) -> dict[str, float]:
    """Return the words and synonyms to search for, each with the factor of its rarity."""
    result = dict(query.factors)
    for word, others in query.synonyms.items():
        for other in others:
            result[other] = max(result.get(other, 0.0), _SYNONYM_SHARE * query.factors[word])
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
    terms = [_make_term(word, factor, query, rarity) for word, factor in query.factors.items()]
    weights = {term.word: term.weight for term in terms}
    pairs = [(one, two, weights[one] + weights[two]) for one, two in query.pairs]
    forms = {form.strip(): form for term in terms for form, _ in term.forms}
    results = (_score(terms, forms, pairs, query.names, document) for document in documents)
    scored = [item for item in results if item is not None]
    scored.sort(key=attrgetter("sort_key"))
    floors = _find_floors(query, terms, rarity) if floor else _Floors()
    one_reaches = any(item.reaches(floors) for item in scored)
    share = _FOLLOWING_SHARE if one_reaches else 1.0
    result: list[Ranked] = []
    remaining = limit
    for item in scored:
        if not item.reaches(floors, share):
            cut = BELOW_FLOOR
        elif remaining <= 0:
            cut = BEYOND_LIMIT
        else:
            cut = ""
            remaining -= 1
        result.append(Ranked(item.document.path, item.score, item.terms, item.parts, cut))
    return tuple(result)


def answered(ranked: Iterable[Ranked]) -> tuple[Ranked, ...]:
    """Return the memories that are not cut."""
    return tuple(item for item in ranked if not item.cut)


class _Rarity:
    """The rarities of words: the fewer memories have a word, the higher. They are cached."""

    def __init__(self, statistics: Statistics) -> None:
        self._statistics = statistics
        self._count = statistics.count + _ASSUMED_MEMORIES
        self._cache: dict[str, float] = {}  # by word
        self.unique = self._rarity_of(1)  # of a word that only one memory has

    def of(self, word: str) -> float:
        """Return the rarity of a word."""
        rarity = self._cache.get(word)
        if rarity is None:
            rarity = self._cache[word] = self._rarity_of(self._statistics.holders(word))
        return rarity

    def _rarity_of(self, holders: int) -> float:
        """Return the rarity of a word that so many memories have."""
        holders = min(holders, self._count)
        return math.log(1 + (self._count - holders + 0.5) / (holders + 0.5))


def _make_term(word: str, factor: float, query: Query, rarity: _Rarity) -> _Term:
    """Return a word of the prompt with its weight and those of its synonyms."""
    weight = factor * rarity.of(word)
    synonyms = [
        (f" {other} ", _SYNONYM_SHARE * min(weight, rarity.of(other)))
        for other in query.synonyms.get(word, ())
    ]
    floor_share = _DULL_FACTOR if word in _dull_words() else 1.0
    return _Term(word, ((f" {word} ", weight), *synonyms), floor_share)


def _find_floors(query: Query, terms: Iterable[_Term], rarity: _Rarity) -> _Floors:
    """Return the least values of results for a prompt.

    A word that no memory has weighs as much as one that only one memory has.
    """
    weights = [
        term.floor_share * min(term.weight, query.factors[term.word] * rarity.unique)
        for term in terms
    ]
    heaviest = sorted(weights, reverse=True)[:_COVERED_WORDS]
    covered = _COVERED_SHARE * sum(heaviest)
    return _Floors(
        of_rule=max(_RULE_FLOOR_SHARE * rarity.unique, covered),
        of_other=max(_FLOOR_SHARE * rarity.unique, covered),
    )


def _score(
    terms: Iterable[_Term],
    forms: Mapping[str, str],
    pairs: Iterable[tuple[str, str, float]],
    names: frozenset[str],
    document: SearchDocument,
) -> _ScoredMemory | None:
    """Return a memory with its score and parts, ``None`` if it has no word of the prompt.

    ``forms`` are those of the terms by their words without spaces. ``pairs`` are the prompt's
    neighbouring words with their weights, ``names`` the words of names in it.
    """
    text = document.words
    counts = _form_counts(text, forms)
    matched: dict[str, None] = {}  # the words of the prompt that the memory has, in their order
    bm25 = floor_value = 0.0
    for term in terms:
        # Of a word and its synonyms, the one that counts most is used.
        gain = value = 0.0
        for form, weight in term.forms:
            times = counts.get(form)
            if times:
                gain = max(gain, weight * times * (_K1 + 1) / (times + _K1))  # BM25
                is_in_heading = text.find(form, 0, document.heading + 1) >= 0
                factor = 1.0 if is_in_heading else _BODY_FACTOR
                value = max(value, weight * term.floor_share * factor)
        if gain:
            matched[term.word] = None
            bm25 += gain
            floor_value += value
    if not matched:
        return None
    neighbours = [
        weight
        for one, two, weight in pairs
        if one in matched and two in matched and f" {one} {two} " in text
    ]
    begins_with_name = bool(names) and text.split(maxsplit=1)[0] in names
    parts = {
        "bm25": bm25,
        "pairs": _PAIR_SHARE * sum(neighbours),
        "subject": _SUBJECT_BONUS if begins_with_name else 0.0,
    }
    score = round(sum(parts.values()), 6)
    shown_parts = {name: round(part, 6) for name, part in parts.items() if part}
    return _ScoredMemory(document, score, shown_parts, tuple(matched), floor_value)


def _form_counts(text: str, forms: Mapping[str, str]) -> dict[str, int]:
    """Return how often a memory's text has each form, at least for the forms that it has."""
    if len(forms) <= _FEW_FORMS:
        present = list(forms.values())
    else:
        present = [forms[word] for word in forms.keys() & text.split()]
    return {form: text.count(form) for form in present}


@cache
def _dull_words() -> frozenset[str]:
    """Return words that say little about a memory's topic: common words, days and years."""
    return common() | {str(number) for number in (*range(100), *range(1990, 2100))}
