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
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from heapq import nsmallest
from typing import Protocol
from zlib import crc32

from memd.state.asking import Asked
from memd.state.words import common

CANDIDATES = 100  # what an engine proposes at least; they hold 95 % of what helps
KEY_BYTES = 4

BELOW_FLOOR = "below the floor"
FAR_BELOW_BEST = "far below the best"
BEYOND_LIMIT = "beyond the limit"

_KEYS_KEPT = 200_000  # about 25 MB at worst
_K1 = 1.2  # BM25's usual saturation; 0.9 to 1.6 differ by less than the noise
_PAIR = 0.3  # what two neighbouring words of the query add when they are neighbours in a memory
_SUBJECT = 1.0  # what a memory gains that begins with a name that the prompt names
_DATE = 2.0  # … that holds a date that the prompt means
_DATE_WORD = 0.5  # what an engine gives a word of such a date
_MODELS = 3  # memories whose headings tell what else may matter
_MODEL_WORDS = 10
_FEEDBACK = 0.1  # of the weight of the prompt, shared by these words
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
class _Plan:
    """What is looked for in every document, by key: word → (the prompt's word, its weight)."""

    asked: Asked
    weights: Mapping[str, float]
    finds: Mapping[int, tuple[tuple[str, float], ...]]
    pairs: Mapping[tuple[int, int], float]
    names: frozenset[int]
    dates: tuple[bytes, ...]


@dataclass(slots=True)
class _Weighed:
    document: Document
    parts: dict[str, float]
    brings: float
    terms: tuple[str, ...]

    @property
    def score(self) -> float:
        return round(sum(self.parts.values()), 6)

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


def pack_key(number: int) -> bytes:
    """Return one number as ``pack`` writes it."""
    return array("I", (number,)).tobytes()


def terms(asked: Asked, statistics: Statistics) -> dict[str, float]:
    """Return what an engine looks for and what each word weighs.

    The prompt's own words come in its order, then what may stand for them, then the words of the
    dates that it means.
    """
    rarities = _Rarities(statistics)
    found = _weights(asked, rarities)
    for word, others in asked.others.items():
        for other, share in others.items():
            weight = share * min(found[word], rarities.of(other))
            if other not in asked.factors:
                found[other] = max(found.get(other, 0.0), weight)
    for mention in asked.dates:
        for word in mention:
            found.setdefault(word, _DATE_WORD * rarities.of(word))
    return found


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
    rarities = _Rarities(statistics)
    plan = _plan(asked, rarities)
    weighed = [item for item in (_weigh(plan, document) for document in documents) if item.terms]
    _feed_back(plan, rarities, weighed)
    weighed.sort(key=lambda item: item.rank)
    least = _least(plan) if floor else 0.0
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
        parts = {name: round(part, 6) for name, part in item.parts.items() if part}
        judged.append(Ranked(item.document.path, item.score, item.terms, parts, cut))
    return tuple(judged)


class _Rarities:
    """How much a word says, by how few memories hold it; each is asked for once."""

    def __init__(self, statistics: Statistics) -> None:
        self._statistics = statistics
        self._count = statistics.count + _BACKGROUND
        self._known: dict[int, float] = {}

    def of(self, word: str) -> float:
        return self.of_key(key(word))

    def of_key(self, number: int) -> float:
        rarity = self._known.get(number)
        if rarity is None:
            holders = self._statistics.holders(number)
            rarity = math.log(1 + (self._count - holders + 0.5) / (holders + 0.5))
            self._known[number] = rarity
        return rarity


def _weights(asked: Asked, rarities: _Rarities) -> dict[str, float]:
    return {word: factor * rarities.of(word) for word, factor in asked.factors.items()}


def _plan(asked: Asked, rarities: _Rarities) -> _Plan:
    weights = _weights(asked, rarities)
    finds: dict[int, dict[str, float]] = {}
    for word, weight in weights.items():
        finds.setdefault(key(word), {})[word] = weight
        for other, share in asked.others.get(word, {}).items():
            least = share * min(weight, rarities.of(other))
            finds.setdefault(key(other), {}).setdefault(word, least)
    return _Plan(
        asked,
        weights,
        {number: tuple(found.items()) for number, found in finds.items()},
        {(key(one), key(two)): weights[one] + weights[two] for one, two in asked.pairs},
        frozenset(map(key, asked.names)),
        tuple(map(pack, asked.dates)),
    )


def _weigh(plan: _Plan, document: Document) -> _Weighed:
    packed = document.words
    numbers = keys(packed)
    gains: dict[str, float] = {}
    brings: dict[str, float] = {}
    matched = plan.finds.keys() & set(numbers)
    for number in matched:
        times = numbers.count(number)
        place = 1.0 if number in numbers[: document.heading] else _BODY
        for word, weight in plan.finds[number]:
            gains[word] = max(gains.get(word, 0.0), weight * saturate(times))
            brings[word] = max(brings.get(word, 0.0), weight * place)
    held = [word for word in plan.weights if word in gains]
    date = max((_DATE for mention in plan.dates if _holds(packed, mention)), default=0.0)
    parts = {
        "bm25": sum(gains[word] for word in held),
        "pairs": _pairs(plan, matched, packed),
        "date": date,
        "subject": _SUBJECT if numbers and numbers[0] in plan.names else 0.0,
    }
    found = (*held, *(word for mention in plan.asked.dates[:1] for word in mention if date))
    return _Weighed(document, parts, sum(brings[word] for word in held) + date, found)


def _pairs(plan: _Plan, matched: Collection[int], packed: bytes) -> float:
    return _PAIR * sum(
        weight
        for (one, two), weight in plan.pairs.items()
        if one in matched and two in matched and _holds(packed, pack_key(one) + pack_key(two))
    )


def _holds(packed: bytes, sequence: bytes) -> bool:
    """Say whether words stand next to each other; a match across the words' bounds is none."""
    at = packed.find(sequence)
    while at >= 0 and at % KEY_BYTES:
        at = packed.find(sequence, at + 1)
    return at >= 0


def _feed_back(plan: _Plan, rarities: _Rarities, weighed: list[_Weighed]) -> None:
    """Add to each score what it shares with the headings of the best (RM3)."""
    best = nsmallest(_MODELS, weighed, key=lambda item: item.rank)
    relevance: dict[int, float] = {}
    for item in best:
        heading = keys(item.document.words)[: item.document.heading]
        for number in heading:
            if number not in plan.finds and number not in _dull():
                gain = item.score / len(heading) * rarities.of_key(number)
                relevance[number] = relevance.get(number, 0.0) + gain
    chosen = nsmallest(_MODEL_WORDS, relevance.items(), key=lambda pair: (-pair[1], pair[0]))
    total = sum(gain for _, gain in chosen)
    scale = _FEEDBACK * sum(plan.weights.values()) / total if total else 0.0
    gains = {number: scale * gain for number, gain in chosen}
    for item in weighed if gains else ():
        numbers = keys(item.document.words)
        item.parts["feedback"] = sum(
            gains[number] * saturate(numbers.count(number))
            for number in sorted(gains.keys() & set(numbers))
        )


def _least(plan: _Plan) -> float:
    heaviest = sorted(plan.weights.values(), reverse=True)[:_COVERED_WORDS]
    return max(_FLOOR_OPEN if plan.asked.opens else _FLOOR, _COVERAGE * sum(heaviest))


@cache
def _dull() -> frozenset[int]:
    """Return the numbers of words from which no memory is told: common ones, days and years."""
    numerals = map(str, (*range(100), *range(1990, 2100)))
    return frozenset(map(key, (*common(), *numerals)))


def _pack(word: str) -> bytes:
    packed = _packed.get(word)
    if packed is None:
        if len(_packed) >= _KEYS_KEPT:
            _packed.clear()
        packed = _packed[word] = pack_key(key(word))
    return packed
