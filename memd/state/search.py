"""An inverted index in memory with BM25: which memories fit a prompt.

The port is ``Ranker``; ``SearchIndex`` is the ranker that needs nothing but this process.

Rules of this file
- Same entries and same query give the same answer, in the same order, whatever was added or
  removed in between.
- An entry is known by its fingerprint; giving it again unchanged costs nothing.
- Silence beats noise: below the floor nothing is answered (spec 3.2). Recency decides only
  between equal scores.
- Not for two threads at once: the owner serialises.

What the recipe leaves out did not pay when measured: field weights, length normalisation (b = 0;
0.75 cost 2.8 points of recall@5), number words.
"""

import math
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from heapq import nsmallest
from itertools import pairwise
from typing import Protocol

from memd.core import limits
from memd.state.words import is_common, opens, words

Fingerprint = tuple[int, int, int]

_K1 = 1.2  # BM25's usual saturation; 0.9 to 1.6 differ by less than the noise
_PAIR = 0.3  # what two neighbouring words of the query add when they are neighbours in a memory
_COMMON = 0.6  # weight of the commonest words of the language
_BACKGROUND = 50  # imagined memories without the word: rarity means something in a small store too
_CANDIDATES = 50  # so many get the second look; they hold the best ten in all that was measured
# The floor, in units of rarity: the weight of matched words that a memory must bring.
_FLOOR_OPEN = 1.2  # asking, or beginning work
_FLOOR = 3.0  # carrying on
_BODY = 0.5  # what a word counts that neither the name nor the description holds
_COVERAGE = 0.12  # of the weight of the query's heaviest words
_COVERED_WORDS = 8  # so many of them: a long prompt is about more than one memory can match
_RELATIVE = 0.25  # of the best score


@dataclass(frozen=True, slots=True)
class Entry:
    """What is searched of one memory; ``path`` is its key."""

    path: str
    fingerprint: Fingerprint
    mtime_ns: int
    name: str
    description: str
    type: str
    body: str


@dataclass(frozen=True, slots=True)
class Scored:
    """A memory that fits: its score and the words of the query that it holds."""

    path: str
    score: float
    terms: tuple[str, ...]


class Ranker(Protocol):
    """Whatever can order memories by how well they fit a text."""

    def known(self) -> Mapping[str, Fingerprint]:
        """Return the fingerprint of every entry, by path."""
        ...

    def update(self, entries: Iterable[Entry]) -> None:
        """Add entries, or replace those whose fingerprint changed."""
        ...

    def remove(self, paths: Iterable[str]) -> None:
        """Forget entries; unknown paths are ignored."""
        ...

    def rank(
        self, query: str, limit: int, exclude: Collection[str] = (), *, floor: bool = True
    ) -> tuple[Scored, ...]:
        """Return the entries that fit best, the best first; without ``floor`` all that match."""
        ...


@dataclass(frozen=True, slots=True)
class _Document:
    mtime_ns: int
    sequence: "array[int]"
    head: frozenset[int]


class SearchIndex:
    """The entries of one directory, ranked by BM25 with a bonus for word pairs."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._postings: list[dict[str, int]] = []  # by word id: path → times
        self._documents: dict[str, _Document] = {}
        self._fingerprints: dict[str, Fingerprint] = {}

    def known(self) -> Mapping[str, Fingerprint]:
        """Return the fingerprint of every entry, by path."""
        return self._fingerprints

    def update(self, entries: Iterable[Entry]) -> None:
        """Add entries, or replace those whose fingerprint changed."""
        for entry in entries:
            if self._fingerprints.get(entry.path) == entry.fingerprint:
                continue
            self.remove((entry.path,))
            self._add(entry)

    def remove(self, paths: Iterable[str]) -> None:
        """Forget entries; unknown paths are ignored."""
        for path in paths:
            document = self._documents.pop(path, None)
            if document is not None:
                del self._fingerprints[path]
                for word in set(document.sequence):
                    del self._postings[word][path]

    def rank(
        self, query: str, limit: int, exclude: Collection[str] = (), *, floor: bool = True
    ) -> tuple[Scored, ...]:
        """Return the entries that fit best, the best first; without ``floor`` all that match.

        ``exclude`` are paths that must not come back; they still count for rarity.
        """
        asked = words(query)
        weights = {word: self._weight(word) for word in dict.fromkeys(asked)}
        scores, matched = self._score(weights, frozenset(exclude))
        count = max(_CANDIDATES, 2 * limit)
        best = nsmallest(count, scores, key=lambda path: self._order(path, scores[path]))
        wanted = self._wanted(asked, weights)
        for path in best if wanted else ():
            scores[path] += self._pairs(wanted, path)
        best.sort(key=lambda path: self._order(path, scores[path]))
        least = _least(weights, query) if floor else 0.0
        enough = _RELATIVE * scores[best[0]] if floor and best else 0.0
        return tuple(
            Scored(path, round(scores[path], 6), tuple(matched[path]))
            for path in best
            if scores[path] >= enough and self._brings(path, matched[path], weights) >= least
        )[:limit]

    def _add(self, entry: Entry) -> None:
        heading = words(f"{entry.name}\n{entry.description}")
        rest = words(f"{entry.type}\n{entry.path}\n{entry.body[: limits.MEMORY_BYTES]}")
        head = array("I", map(self._id, heading))
        sequence = head + array("I", map(self._id, rest))
        self._documents[entry.path] = _Document(entry.mtime_ns, sequence, frozenset(head))
        self._fingerprints[entry.path] = entry.fingerprint
        for word, times in Counter(sequence).items():
            self._postings[word][entry.path] = times

    def _id(self, word: str) -> int:
        number = self._ids.setdefault(word, len(self._postings))
        if number == len(self._postings):
            self._postings.append({})
        return number

    def _holders(self, word: str) -> Mapping[str, int]:
        number = self._ids.get(word)
        return {} if number is None else self._postings[number]

    def _weight(self, word: str) -> float:
        holders = len(self._holders(word))
        others = len(self._documents) + _BACKGROUND - holders
        rarity = math.log(1 + (others + 0.5) / (holders + 0.5))
        return rarity * (_COMMON if is_common(word) else 1.0)

    def _score(
        self, weights: Mapping[str, float], exclude: frozenset[str]
    ) -> tuple[dict[str, float], dict[str, list[str]]]:
        scores: dict[str, float] = {}
        matched: dict[str, list[str]] = {}
        for word, weight in weights.items():
            for path, times in self._holders(word).items():
                if path not in exclude:
                    gain = weight * times * (_K1 + 1) / (times + _K1)
                    scores[path] = scores.get(path, 0.0) + gain
                    matched.setdefault(path, []).append(word)
        return scores, matched

    def _wanted(
        self, asked: list[str], weights: Mapping[str, float]
    ) -> dict[tuple[int, int], float]:
        return {
            (self._ids[first], self._ids[second]): weights[first] + weights[second]
            for first, second in dict.fromkeys(pairwise(asked))
            if first in self._ids and second in self._ids
        }

    def _pairs(self, wanted: Mapping[tuple[int, int], float], path: str) -> float:
        held = set(pairwise(self._documents[path].sequence))
        return _PAIR * sum(weight for pair, weight in wanted.items() if pair in held)

    def _brings(self, path: str, matched: list[str], weights: Mapping[str, float]) -> float:
        head = self._documents[path].head
        return sum(weights[word] * (1.0 if self._ids[word] in head else _BODY) for word in matched)

    def _order(self, path: str, score: float) -> tuple[float, int, str]:
        return -round(score, 6), -self._documents[path].mtime_ns, path


def _least(weights: Mapping[str, float], query: str) -> float:
    heaviest = sorted(weights.values(), reverse=True)[:_COVERED_WORDS]
    return max(_FLOOR_OPEN if opens(query) else _FLOOR, _COVERAGE * sum(heaviest))
