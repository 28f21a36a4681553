"""Which memories seem to contradict or to repeat each other: named for a person, never decided.

Pure. Words that few memories have weigh most, so that what two sentences of one template share
counts for little. The work grows with the text: a word that many memories have finds nobody.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from heapq import nlargest
from itertools import combinations
from math import log

from memd.core.values import PERSONAL, MemoryType
from memd.core.yielding import yield_to_requests
from memd.dream.values import SHOWN, Question, quoted
from memd.text.similarity import contradiction
from memd.text.statements import FENCE, Statement, crude, crude_words, statements

CONTRADICT, REPEAT = "contradict", "repeat"
_MOST = 20
_WORK = 300_000  # pairs that words name, the rarest words first
_SHARED = 2  # telling words that two memories share
_COMPARED = 500  # pairs, those with the most words in common
_STATEMENTS = 40  # of one memory
_AGAINST = 0.7  # of the weight of the shorter sentence, facts that differ aside
_RELATED = 0.3  # of the weight of the shorter sentence, whatever differs
_AGAIN = 0.5  # of the weight of the shorter memory

Said = tuple[str, MemoryType | None, str]  # a path, the type, description and body


def questions(memories: Sequence[Said]) -> tuple[Question, ...]:
    """Return the pairs that a person should look at: rules first, then the likeliest."""
    rules = {path for path, kind, _ in memories if kind in PERSONAL}
    ranked = sorted(
        _weighed(memories), key=lambda one: (one[1].paths[0] not in rules, -one[0], one[1].paths)
    )
    return tuple(
        question
        for kind in (CONTRADICT, REPEAT)
        for question in [question for _, question in ranked if question.kind == kind][:_MOST]
    )


def _weighed(memories: Sequence[Said]) -> Iterator[tuple[float, Question]]:
    holders: dict[str, list[int]] = defaultdict(list)
    for number, (_, _, text) in enumerate(memories):
        yield_to_requests()
        for word in crude_words(text):
            holders[word].append(number)
    table = {word: log(1 + len(memories) / len(n)) for word, n in holders.items()}
    weights = _Weights(table)
    said: dict[int, list[Statement]] = {}
    for first, second in _near(holders, table):
        yield_to_requests()
        if _comparable(memories[first][1], memories[second][1]):
            for number in (first, second):
                if number not in said:
                    said[number] = _statements(memories[number][2])
            paths = memories[first][0], memories[second][0]
            result = _question(paths, said[first], said[second], weights)
            if result is not None:
                yield result


def _near(holders: dict[str, list[int]], table: dict[str, float]) -> list[tuple[int, int]]:
    """Return the pairs of memories whose common words weigh most."""
    shared: dict[tuple[int, int], float] = defaultdict(float)
    work = 0
    for word, numbers in sorted(holders.items(), key=lambda one: (len(one[1]), one[0])):
        yield_to_requests()
        work += len(numbers) ** 2 // 2
        if work > _WORK:
            break
        for pair in combinations(numbers, 2):
            shared[pair] += table[word]
    return nlargest(_COMPARED, shared, key=lambda pair: (shared[pair], pair))


def _statements(text: str) -> list[Statement]:
    every = statements(text)
    return [one for one in every if one.words and not FENCE.match(one.raw)][:_STATEMENTS]


def _comparable(one: MemoryType | None, two: MemoryType | None) -> bool:
    """Whether memories of two types are held against each other: all but facts and rules."""
    facts = (MemoryType.PROJECT, MemoryType.REFERENCE)
    return (one in facts) == (two in facts)


class _Weights:
    """How much words weigh; the table goes by words without their endings."""

    def __init__(self, weights: dict[str, float]) -> None:
        self._weights = weights

    def share(self, one: frozenset[str], two: frozenset[str]) -> float:
        """Return which part of the lighter set both have."""
        least = min(self._of(one), self._of(two))
        return self._of(one & two) / least if least else 0.0

    def equality(self, one: frozenset[str], two: frozenset[str]) -> float:
        """Return which part of all their words both have."""
        return self._of(one & two) / (self._of(one | two) or 1.0)

    def _of(self, words: frozenset[str]) -> float:
        return sum(self._weights.get(crude(word), 1.0) for word in words)


def _question(
    paths: tuple[str, str], one: Sequence[Statement], two: Sequence[Statement], weights: _Weights
) -> tuple[float, Question] | None:
    if not one or not two:
        return None
    best = (0.0, "", one[0], two[0])
    both = {first.key for first in one} & {second.key for second in two}
    for first in (a for a in one if a.key not in both):
        for second in (b for b in two if b.key not in both):
            if first.words & second.words:
                kind, score = _compared(first, second, weights)
                if (kind == CONTRADICT, score) > (best[1] == CONTRADICT, best[0]):
                    best = score, kind, first, second
    if best[1] != CONTRADICT:
        left, right = (frozenset[str]().union(*(s.words for s in side)) for side in (one, two))
        score = weights.share(left, right)
        if score < _AGAIN or len(left & right) < min(_SHARED, len(left), len(right)):
            return None
        best = score, REPEAT, *best[2:]
    score, kind, first, second = best
    return score, Question(paths, kind, quoted(first.raw, SHOWN), quoted(second.raw, SHOWN))


def _compared(one: Statement, two: Statement, weights: _Weights) -> tuple[str, float]:
    """Return how two statements stand to each other, "" where they have nothing to do."""
    share = weights.share(one.words, two.words)
    if share >= _RELATED and contradiction(one, two):
        rivals = frozenset(form for _, form in _rivals(one, two))
        bare = weights.share(one.words - rivals, two.words - rivals)
        least = _AGAINST if rivals else _AGAIN
        score = weights.equality(one.words - rivals, two.words - rivals)
        return (CONTRADICT, score) if bare >= least else ("", 0.0)
    return (REPEAT, share) if share >= _AGAIN else ("", 0.0)


def _rivals(one: Statement, two: Statement) -> Iterator[tuple[str, str]]:
    """Yield the facts that only one has, where the other one has another of that kind."""
    first, second = one.facts - two.facts, two.facts - one.facts
    for kind in {kind for kind, _ in first} & {kind for kind, _ in second}:
        yield from (fact for fact in first | second if fact[0] == kind)
