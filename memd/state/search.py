"""An inverted index in memory: which memories ``scoring`` shall weigh for a prompt.

The port is ``Ranker``; ``SearchIndex`` is the ranker that needs nothing but this process.

Rules of this file
- Same entries and same query give the same answer, in the same order, whatever was added or
  removed in between.
- An entry is known by its fingerprint; giving it again unchanged costs nothing.
- Not for two threads at once: the owner serialises.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from heapq import heapify, heappop
from typing import Protocol

from memd.core import limits
from memd.state import scoring
from memd.state.asking import Asked, ask
from memd.state.scoring import Document, Ranked
from memd.state.words import indexed

Fingerprint = tuple[int, int, int]
Skip = Callable[[str], bool]


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


def nothing(path: str) -> bool:  # noqa: ARG001 - the shape of a predicate
    """Skip no path."""
    return False


class Ranker(Protocol):
    """Whatever can order memories by how well they fit a text."""

    def known(self) -> Mapping[str, Fingerprint]:
        """Return the fingerprint of every entry, by path."""
        ...

    def has(self, path: str, fingerprint: Fingerprint) -> bool:
        """Say whether an entry is there with this fingerprint; costs the same at any size."""
        ...

    def update(self, entries: Iterable[Entry]) -> None:
        """Add entries, or replace those whose fingerprint changed."""
        ...

    def remove(self, paths: Iterable[str]) -> None:
        """Forget entries; unknown paths are ignored."""
        ...

    def rank(
        self,
        query: str,
        limit: int,
        skip: Skip = nothing,
        *,
        floor: bool = True,
        today: date | None = None,
    ) -> tuple[Ranked, ...]:
        """Return the entries that fit best, the best first; without ``floor`` all that match.

        ``skip`` names paths that must not come back; they still count for rarity. ``today`` is what
        "yesterday" and "last May" are told from.
        """
        ...

    def explain(
        self, query: str, limit: int, skip: Skip = nothing, *, today: date | None = None
    ) -> tuple[Ranked, ...]:
        """Return what ``rank`` weighs, the best first: the answer and what was cut, and why."""
        ...


def candidates(limit: int) -> int:
    """Return how many entries are worth a look where ``limit`` are wanted."""
    return max(scoring.CANDIDATES, 2 * limit)


def analyse(entry: Entry) -> Document:
    """Return an entry as scoring sees it."""
    heading = indexed(f"{entry.description}\n{entry.name}")
    rest = indexed(f"{entry.type}\n{entry.path}\n{entry.body[: limits.MEMORY_BYTES]}")
    packed = scoring.pack((*heading, *rest))
    return Document(entry.path, entry.mtime_ns, packed, len(heading))


class Ordering(ABC):
    """What every engine does with its proposals: ``scoring`` orders them."""

    @property
    @abstractmethod
    def count(self) -> int:
        """How many entries there are."""

    @abstractmethod
    def holders(self, key: int) -> int:
        """Return how many entries hold a word."""

    @abstractmethod
    def _proposed(self, asked: Asked, limit: int, skip: Skip) -> list[Document]:
        """Return what may be among the best ``limit``."""

    def rank(
        self,
        query: str,
        limit: int,
        skip: Skip = nothing,
        *,
        floor: bool = True,
        today: date | None = None,
    ) -> tuple[Ranked, ...]:
        """Return the entries that fit best, the best first; without ``floor`` all that match.

        ``skip`` names paths that must not come back; they still count for rarity. ``today`` is what
        "yesterday" and "last May" are told from.
        """
        asked = ask(query, today)
        found = self._proposed(asked, limit, skip)
        return scoring.order(asked, self, found, limit, floor=floor)

    def explain(
        self, query: str, limit: int, skip: Skip = nothing, *, today: date | None = None
    ) -> tuple[Ranked, ...]:
        """Return what ``rank`` weighs, the best first: the answer and what was cut, and why."""
        asked = ask(query, today)
        found = self._proposed(asked, limit, skip)
        return scoring.judge(asked, self, found, limit, floor=True)


class SearchIndex(Ordering):
    """The entries of one directory, wholly in memory."""

    def __init__(self) -> None:
        self._postings: dict[int, dict[str, int]] = {}  # by a word's key: path → times
        self._documents: dict[str, Document] = {}
        self._fingerprints: dict[str, Fingerprint] = {}

    @property
    def count(self) -> int:
        """How many entries there are."""
        return len(self._documents)

    def holders(self, key: int) -> int:
        """Return how many entries hold a word."""
        return len(self._postings.get(key, ()))

    def known(self) -> Mapping[str, Fingerprint]:
        """Return the fingerprint of every entry, by path."""
        return self._fingerprints

    def has(self, path: str, fingerprint: Fingerprint) -> bool:
        """Say whether an entry is there with this fingerprint."""
        return self._fingerprints.get(path) == fingerprint

    def update(self, entries: Iterable[Entry]) -> None:
        """Add entries, or replace those whose fingerprint changed."""
        for entry in entries:
            if not self.has(entry.path, entry.fingerprint):
                self.remove((entry.path,))
                self._add(entry)

    def remove(self, paths: Iterable[str]) -> None:
        """Forget entries; unknown paths are ignored."""
        for path in paths:
            document = self._documents.pop(path, None)
            if document is not None:
                del self._fingerprints[path]
                for key in set(scoring.keys(document.words)):
                    holders = self._postings[key]
                    del holders[path]
                    if not holders:
                        del self._postings[key]

    def _proposed(self, asked: Asked, limit: int, skip: Skip) -> list[Document]:
        return self.propose(scoring.terms(asked, self), candidates(limit), skip)

    def entry(self, path: str) -> tuple[Document, Fingerprint] | None:
        """Return what is kept of an entry."""
        document = self._documents.get(path)
        return None if document is None else (document, self._fingerprints[path])

    def propose(self, weights: Mapping[str, float], most: int, skip: Skip) -> list[Document]:
        """Return the entries that hold the heaviest words of ``scoring.terms``."""
        scores: dict[str, float] = {}
        for word, weight in weights.items():
            for path, times in self._postings.get(scoring.key(word), {}).items():
                scores[path] = scores.get(path, 0.0) + weight * scoring.saturate(times)
        heap = [
            (-round(score, 6), -self._documents[path].mtime_ns, path)
            for path, score in scores.items()
        ]
        heapify(heap)
        found: list[Document] = []
        while heap and len(found) < most:  # only of the best is it asked whether they may come
            path = heappop(heap)[2]
            if not skip(path):
                found.append(self._documents[path])
        return found

    def _add(self, entry: Entry) -> None:
        document = self._documents[entry.path] = analyse(entry)
        self._fingerprints[entry.path] = entry.fingerprint
        for key, times in Counter(scoring.keys(document.words)).items():
            self._postings.setdefault(key, {})[entry.path] = times
