"""Statements that are known, found by their words: a new one meets only what may be like it. Pure.

Rules of this file
- The rarest words of a statement are looked up first, and at most ``_LOOKED_AT`` places in all:
  what one statement costs does not grow with how many are known.
- What was said in exactly these words before is always met.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable
from typing import Generic, TypeVar

from memd.extract.sameness import ComparedStatement

_LOOKED_AT = 512  # entries of the word index that one statement may cost
_MOST = 8  # that are compared in full: those that share most words

Item = TypeVar("Item", bound=Hashable)


class InvertedIndex(Generic[Item]):
    """Items by the words of their statements; ``compared`` counts those that were handed out."""

    def __init__(self) -> None:
        self._by_word: defaultdict[str, list[Item]] = defaultdict(list)
        self._by_words: dict[frozenset[str], Item] = {}
        self.compared = 0

    def put(self, said: ComparedStatement, item: Item) -> None:
        """Add a statement of an item; an item may have several."""
        for word in said.words:
            self._by_word[word].append(item)
        self._by_words.setdefault(said.words, item)

    def plausible(self, said: ComparedStatement) -> tuple[Item, ...]:
        """Return the items that may speak of the same thing, the likeliest first."""
        shared: Counter[Item] = Counter()
        if said.words in self._by_words:
            shared[self._by_words[said.words]] += len(said.words)
        left = _LOOKED_AT
        for word in sorted(said.words, key=lambda word: (len(self._by_word.get(word, ())), word)):
            # The newest first: what was said last is what is corrected.
            result = self._by_word.get(word, [])[-left:] if left else []
            shared.update(reversed(result))
            left -= len(result)
        likely = tuple(item for item, _ in shared.most_common(_MOST))
        self.compared += len(likely)
        return likely
