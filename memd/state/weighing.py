"""One memory against one prompt: what it gains, and for what. Pure.

``state/scoring.py`` decides what of it is answered. What the recipe leaves out did not pay when
measured: field weights, length normalisation (b = 0; 0.75 cost 2.8 points of recall@5).
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from heapq import nsmallest
from typing import Protocol

from memd.state.asking import Asked
from memd.state.keys import KEY_BYTES, key, keys, pack, pack_key
from memd.state.words import common

_K1 = 1.2  # BM25's usual saturation; 0.9 to 1.6 differ by less than the noise
_PAIR = 0.3  # what two neighbouring words of the query add when they are neighbours in a memory
_SUBJECT = 1.0  # what a memory gains that begins with a name that the prompt names
_DATE = 2.0  # … that holds a date that the prompt means
_MODELS = 3  # memories whose headings tell what else may matter
_MODEL_WORDS = 10
_FEEDBACK = 0.1  # of the weight of the prompt, shared by these words
_BACKGROUND = 50  # imagined memories without the word: rarity means something in a small store too
_BODY = 0.5  # what a word counts towards the floor that only the body holds
_DULL = 0.5  # … that is common, or a bare number
_FEW = 48  # words that are sooner searched for one by one than by making a set of a memory's words


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


# The number as packed, and the words of the prompt for which it stands, each with its weight and
# what of it counts towards the floor.
Find = tuple[bytes, tuple[tuple[str, float, float], ...]]


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
class Plan:
    """What is looked for in every document.

    ``finds`` holds what is looked for by a word's number; ``pairs`` neighbours as packed, and their
    weight; ``shares`` how much of a word counts towards the floor.
    """

    asked: Asked
    weights: Mapping[str, float]
    finds: Mapping[int, Find]
    pairs: Mapping[tuple[int, int], tuple[bytes, float]]
    shares: Mapping[str, float]
    names: frozenset[bytes]
    dates: tuple[bytes, ...]


@dataclass(slots=True)
class Weighed:
    """A memory that holds something of the prompt.

    ``brings`` is what counts towards the floor; ``rank`` is its place in the order: its score,
    negative, then the newer, then the path.
    """

    document: Document
    bm25: float
    pairs: float
    date: float
    subject: float
    brings: float
    terms: tuple[str, ...]
    feedback: float = 0.0
    rank: tuple[float, int, str] = (0.0, 0, "")

    @property
    def parts(self) -> dict[str, float]:
        """What the score is made of; parts without a share are left out."""
        parts = {
            "bm25": self.bm25,
            "pairs": self.pairs,
            "date": self.date,
            "subject": self.subject,
            "feedback": self.feedback,
        }
        return {name: round(part, 6) for name, part in parts.items() if part}

    def settle(self) -> None:
        """Compute the place in the order from what is known by now."""
        score = self.bm25 + self.pairs + self.date + self.subject + self.feedback
        document = self.document
        self.rank = (-round(score, 6), -document.mtime_ns, document.path)


def saturate(times: int) -> float:
    """Return by what a word's weight is multiplied that stands so many times in a memory."""
    return times * (_K1 + 1) / (times + _K1)


class Rarities:
    """How much a word says, by how few memories hold it; each is asked for once."""

    def __init__(self, statistics: Statistics) -> None:
        self._statistics = statistics
        self._count = statistics.count + _BACKGROUND
        self._known: dict[int, float] = {}
        self._unheld = math.log(1 + (self._count + 0.5) / 0.5)

    def of(self, word: str) -> float:
        """Return the rarity of a word."""
        return self.of_key(key(word))

    def unique(self) -> float:
        """Return the rarity of a word that one memory holds."""
        return math.log(1 + (self._count - 0.5) / 1.5)

    def held(self, number: int) -> bool:
        """Say whether any memory holds a word."""
        return self.of_key(number) < self._unheld

    def of_key(self, number: int) -> float:
        """Return the rarity of a word by its number."""
        rarity = self._known.get(number)
        if rarity is None:
            holders = self._statistics.holders(number)
            rarity = math.log(1 + (self._count - holders + 0.5) / (holders + 0.5))
            self._known[number] = rarity
        return rarity


def weights(asked: Asked, rarities: Rarities) -> dict[str, float]:
    """Return what each of the prompt's own words weighs."""
    return {word: factor * rarities.of(word) for word, factor in asked.factors.items()}


def plan(asked: Asked, rarities: Rarities) -> Plan:
    """Return what is looked for, computed once for all documents."""
    weighs = weights(asked, rarities)
    finds: dict[int, dict[str, float]] = {}
    for word, weight in weighs.items():
        finds.setdefault(key(word), {})[word] = weight
        for other, share in asked.others.get(word, {}).items():
            least = share * min(weight, rarities.of(other))
            finds.setdefault(key(other), {}).setdefault(word, least)
    shares = {word: _DULL if key(word) in _dull() else 1.0 for word in weighs}
    return Plan(
        asked,
        weighs,
        {
            number: (
                pack_key(number),
                tuple((word, weight, weight * shares[word]) for word, weight in found.items()),
            )
            for number, found in finds.items()
            if rarities.held(number)
        },
        {
            (key(one), key(two)): (pack((one, two)), weighs[one] + weighs[two])
            for one, two in asked.pairs
        },
        shares,
        frozenset(pack((name,)) for name in asked.names),
        tuple(map(pack, asked.dates)),
    )


def weigh(planned: Plan, document: Document) -> Weighed | None:
    """Return what a memory gains, or ``None`` when it holds nothing of the prompt."""
    packed = document.words
    meant = None
    if planned.dates:
        meant = next((at for at, day in enumerate(planned.dates) if _holds(packed, day)), None)
    date = 0.0 if meant is None else _DATE
    found: list[int] = []
    gains: dict[str, float] = {}
    brings: dict[str, float] = {}
    bounds = document.heading * KEY_BYTES
    finds = planned.finds
    for number, (one, wanted) in (finds if len(finds) <= _FEW else _held(finds, packed)).items():
        first = packed.find(one)
        if first < 0:
            continue
        times = 1
        if first % KEY_BYTES or packed.find(one, first + KEY_BYTES) >= 0:
            first, times = _count(packed, one)
            if not times:
                continue
        found.append(number)
        gain, place = 1.0 if times == 1 else _gain(times), 1.0 if first < bounds else _BODY
        for word, weight, counts in wanted:
            if weight * gain >= gains.get(word, 0.0):
                gains[word] = weight * gain
            if counts * place >= brings.get(word, 0.0):
                brings[word] = counts * place
    if not found and meant is None:
        return None
    terms = [word for word in planned.weights if word in gains] if len(gains) > 1 else list(gains)
    weighed = Weighed(
        document=document,
        bm25=sum([gains[word] for word in terms]),
        pairs=_pairs(planned.pairs, found, packed) if planned.pairs and len(found) > 1 else 0.0,
        date=date,
        subject=_SUBJECT if planned.names and packed[:KEY_BYTES] in planned.names else 0.0,
        brings=sum([brings[word] for word in terms]) + date,
        terms=tuple(terms) if meant is None else (*terms, *planned.asked.dates[meant]),
    )
    weighed.settle()
    return weighed


def _held(finds: Mapping[int, Find], packed: bytes) -> Mapping[int, Find]:
    """Return, of many words that are looked for, those that are there."""
    held = finds.keys() & frozenset(keys(packed))
    return {number: find for number, find in finds.items() if number in held}


@cache
def _gain(times: int) -> float:
    return saturate(times)


def _count(packed: bytes, word: bytes) -> tuple[int, int]:
    """Return where a word stands first, in bytes, -1 for nowhere, and how many times."""
    first, times = -1, 0
    at = packed.find(word)
    while at >= 0:
        if at % KEY_BYTES:
            at = packed.find(word, at + 1)
            continue
        first, times = (at if first < 0 else first), times + 1
        at = packed.find(word, at + KEY_BYTES)
    return first, times


def _pairs(
    pairs: Mapping[tuple[int, int], tuple[bytes, float]], found: Collection[int], packed: bytes
) -> float:
    total = 0.0
    for (one, two), (beside, weight) in pairs.items():
        if one in found and two in found and _holds(packed, beside):
            total += weight
    return _PAIR * total


def _holds(packed: bytes, sequence: bytes) -> bool:
    """Say whether words stand next to each other; a match across the words' bounds is none."""
    at = packed.find(sequence)
    while at >= 0 and at % KEY_BYTES:
        at = packed.find(sequence, at + 1)
    return at >= 0


def most_feedback(planned: Plan) -> float:
    """Return what ``feed_back`` adds to a score at most."""
    return _FEEDBACK * sum(planned.weights.values()) * (_K1 + 1)


def feed_back(
    planned: Plan, rarities: Rarities, weighed: Sequence[Weighed], least: float = 0.0
) -> None:
    """Add to the scores, the best first, what they share with the headings of the best (RM3).

    A score below ``least`` is not worth the look.
    """
    relevance: dict[int, float] = {}
    for item in weighed[:_MODELS]:
        heading = keys(item.document.words)[: item.document.heading]
        for number in heading:
            if number not in planned.finds and number not in _dull():
                gain = -item.rank[0] / len(heading) * rarities.of_key(number)
                relevance[number] = relevance.get(number, 0.0) + gain
    chosen = nsmallest(_MODEL_WORDS, relevance.items(), key=lambda pair: (-pair[1], pair[0]))
    told = [(pack_key(number), gain) for number, gain in chosen]
    total = sum(gain for _, gain in chosen)
    scale = _FEEDBACK * sum(planned.weights.values()) / total if total else 0.0
    for item in weighed if chosen else ():
        if -item.rank[0] < least:
            continue
        packed = item.document.words
        shared = [
            gain * _gain(_count(packed, number)[1]) for number, gain in told if number in packed
        ]
        if shared:
            item.feedback = scale * sum(shared)
            item.settle()


@cache
def _dull() -> frozenset[int]:
    """Return the numbers of words from which no memory is told: common ones, days and years."""
    numerals = map(str, (*range(100), *range(1990, 2100)))
    return frozenset(map(key, (*common(), *numerals)))
