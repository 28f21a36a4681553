"""The one home of the order: which of the memories that an engine proposes fit a prompt. Pure.

An engine (``state/search.py`` in memory, another one on disk) proposes candidates by the weights
that ``terms`` gives; ``order`` decides among them. Both see a memory as the numbers of its words.

Rules of this file
- Same prompt, statistics and documents give the same answer, in whatever order they come.
- Silence beats noise: below the floor nothing is answered (spec 3.2). Recency decides only
  between equal scores.
- A word is known by a number of 32 bits, the same in every process; two words that share one count
  as the same, which in a hundred thousand memories happens to about one pair.

What the recipe leaves out did not pay when measured: field weights, length normalisation (b = 0;
0.75 cost 2.8 points of recall@5), number words.
"""

import math
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol
from zlib import crc32

from memd.state.words import is_common, opens, words

CANDIDATES = 100  # what an engine proposes at least; they hold 95 % of what helps
KEY_BYTES = 4

BELOW_FLOOR = "below the floor"
FAR_BELOW_BEST = "far below the best"
BEYOND_LIMIT = "beyond the limit"

_KEYS_KEPT = 200_000  # about 25 MB at worst
_K1 = 1.2  # BM25's usual saturation; 0.9 to 1.6 differ by less than the noise
_PAIR = 0.3  # what two neighbouring words of the query add when they are neighbours in a memory
_COMMON = 0.6  # weight of the commonest words of the language
_BACKGROUND = 50  # imagined memories without the word: rarity means something in a small store too
# The floor, in units of rarity: the weight of matched words that a memory must bring.
_FLOOR_OPEN = 1.2  # asking, or beginning work
_FLOOR = 3.0  # carrying on
_BODY = 0.5  # what a word counts that neither the name nor the description holds
_COVERAGE = 0.12  # of the weight of the query's heaviest words
_COVERED_WORDS = 8  # so many of them: a long prompt is about more than one memory can match
_RELATIVE = 0.25  # of the best score

_packed: dict[str, bytes] = {}


@dataclass(frozen=True, slots=True)
class Document:
    """A memory as scoring sees it.

    ``words`` is what ``pack`` made of its words, those of the name and the description first;
    ``heading`` says how many words these are.
    """

    path: str
    mtime_ns: int
    words: bytes
    heading: int


class Statistics(Protocol):
    """What an engine knows about all its memories."""

    @property
    def count(self) -> int:
        """How many memories there are."""
        ...

    def holders(self, key: int) -> int:
        """Return how many memories hold a word."""
        ...


@dataclass(frozen=True, slots=True)
class Asked:
    """A prompt, analysed once.

    ``factors`` holds its distinct words in their order and what each counts beside its rarity;
    ``pairs`` its neighbours; ``opens`` whether it asks something or begins a piece of work.
    """

    factors: Mapping[str, float]
    pairs: tuple[tuple[str, str], ...]
    opens: bool


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
class _Weighed:
    document: Document
    bm25: float
    pairs: float
    brings: float
    terms: tuple[str, ...]

    @property
    def score(self) -> float:
        return round(self.bm25 + self.pairs, 6)

    @property
    def rank(self) -> tuple[float, int, str]:
        return -self.score, -self.document.mtime_ns, self.document.path


def key(word: str) -> int:
    """Return the number of a word, of 32 bits and the same in every process."""
    return crc32(word.encode())


def pack(found: Iterable[str]) -> bytes:
    """Return the numbers of words, one after the other, as this machine writes them."""
    return b"".join(map(_pack, found))


def keys(packed: bytes) -> "array[int]":
    """Return the numbers that ``pack`` has written."""
    return array("I", packed)


def ask(query: str) -> Asked:
    """Return a prompt as scoring uses it."""
    found = words(query)
    return Asked(
        factors={word: _COMMON if is_common(word) else 1.0 for word in found},
        pairs=tuple(dict.fromkeys(pairwise(found))),
        opens=opens(query),
    )


def terms(asked: Asked, statistics: Statistics) -> dict[str, float]:
    """Return what an engine looks for: words and what each weighs, in the prompt's order."""
    return {
        word: factor * _rarity(statistics.count, statistics.holders(key(word)))
        for word, factor in asked.factors.items()
    }


def saturate(times: int) -> float:
    """Return by what a word's weight is multiplied that stands so many times in a memory."""
    return times * (_K1 + 1) / (times + _K1)


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
    judged = judge(asked, statistics, documents, limit, floor=floor)
    return tuple(ranked for ranked in judged if not ranked.cut)


def judge(
    asked: Asked,
    statistics: Statistics,
    documents: Iterable[Document],
    limit: int,
    *,
    floor: bool,
) -> tuple[Ranked, ...]:
    """Return every proposed memory that holds a word, the best first, and why some are cut."""
    weights = terms(asked, statistics)
    weighed = [_weigh(asked, weights, document) for document in documents]
    weighed = sorted((item for item in weighed if item.terms), key=lambda item: item.rank)
    least = _least(asked, weights) if floor else 0.0
    enough = _RELATIVE * weighed[0].score if floor and weighed else 0.0
    answered = 0
    judged = []
    for item in weighed:
        if item.brings < least:
            cut = BELOW_FLOOR
        elif item.score < enough:
            cut = FAR_BELOW_BEST
        elif answered >= limit:
            cut = BEYOND_LIMIT
        else:
            cut = ""
            answered += 1
        parts = {"bm25": round(item.bm25, 6), "pairs": round(item.pairs, 6)}
        judged.append(Ranked(item.document.path, item.score, item.terms, parts, cut))
    return tuple(judged)


def _weigh(asked: Asked, weights: Mapping[str, float], document: Document) -> _Weighed:
    bm25 = brings = 0.0
    places: dict[str, list[int]] = {}
    for word, weight in weights.items():
        found = _places(document.words, _pack(word))
        if found:
            places[word] = found
            bm25 += weight * saturate(len(found))
            brings += weight * (1.0 if found[0] < document.heading else _BODY)
    pairs = sum(
        weights[first] + weights[second]
        for first, second in asked.pairs
        if first in places and second in places and _neighbours(places[first], places[second])
    )
    return _Weighed(document, bm25, _PAIR * pairs, brings, tuple(places))


def _places(packed: bytes, word: bytes) -> list[int]:
    found = []
    at = packed.find(word)
    while at >= 0:
        place, off = divmod(at, KEY_BYTES)
        if not off:
            found.append(place)
        at = packed.find(word, at + 1)
    return found


def _neighbours(first: list[int], second: list[int]) -> bool:
    return any(place + 1 in second for place in first)


def _least(asked: Asked, weights: Mapping[str, float]) -> float:
    heaviest = sorted(weights.values(), reverse=True)[:_COVERED_WORDS]
    return max(_FLOOR_OPEN if asked.opens else _FLOOR, _COVERAGE * sum(heaviest))


def _rarity(count: int, holders: int) -> float:
    return math.log(1 + (count + _BACKGROUND - holders + 0.5) / (holders + 0.5))


def _pack(word: str) -> bytes:
    packed = _packed.get(word)
    if packed is None:
        if len(_packed) >= _KEYS_KEPT:
            _packed.clear()
        packed = _packed[word] = array("I", (key(word),)).tobytes()
    return packed
