"""Which memories seem to contradict or repeat each other, or to repeat an instruction file. Pure.

They are named for a person, and nothing is decided. Words that few memories have name the pairs
that are compared, so that what two sentences of one template share counts for little. The work
grows with the text: a word that many memories have finds nobody.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from heapq import nlargest
from itertools import combinations, islice
from math import log

from memd.core.covered import Covered, in_no_file
from memd.core.values import PERSONAL, MemoryType
from memd.core.yielding import yield_to_requests
from memd.dream.values import SHOWN, Question, quoted
from memd.text.similarity import RESEMBLING, contradiction, resemblance
from memd.text.statements import FENCE, Statement, crude_words, statements

CONTRADICT, REPEAT, IN_FILE = "contradict", "repeat", "in_file"
_MOST = 20
_WORK = 300_000  # pairs that words name, the rarest words first
_SHARED = 2  # telling words that two memories share
_COMPARED = 500  # pairs, those with the most words in common
_STATEMENTS = 40  # of one memory
_AGAINST = 0.7  # of the telling words of the shorter sentence, facts that differ aside
_RELATED = 0.3  # of the telling words of the shorter sentence, whatever differs
_AGAIN = 0.5  # of the telling words of the shorter memory

_FACTS = (MemoryType.PROJECT, MemoryType.REFERENCE)
Said = tuple[str, MemoryType | None, str]  # a path, the type, description and body


def questions(memories: Sequence[Said], covered: Covered = in_no_file) -> tuple[Question, ...]:
    """Return the pairs that a person should look at: rules first, then the likeliest.

    The last ones are memories with the instruction file that says all of it, by ``covered``.
    """
    rules = {path for path, kind, _ in memories if kind in PERSONAL}
    ranked = sorted(
        _weighed(memories), key=lambda one: (one[1].paths[0] not in rules, -one[0], one[1].paths)
    )
    pairs = (
        question
        for kind in (CONTRADICT, REPEAT)
        for question in [question for _, question in ranked if question.kind == kind][:_MOST]
    )
    return (*pairs, *islice(_in_files(memories, covered), _MOST))


def _in_files(memories: Sequence[Said], covered: Covered) -> Iterator[Question]:
    for path, _, text in memories:
        yield_to_requests()
        file = covered(text)
        if file:
            yield Question((path, file), IN_FILE, quoted(text.lstrip().split("\n")[0], SHOWN), "")


def _weighed(memories: Sequence[Said]) -> Iterator[tuple[float, Question]]:
    holders: dict[str, list[int]] = defaultdict(list)
    for number, (_, _, text) in enumerate(memories):
        yield_to_requests()
        for word in crude_words(text):
            holders[word].append(number)
    said: dict[int, list[Statement]] = {}
    for first, second in _near(holders, len(memories)):
        yield_to_requests()
        (one, kind, _), (two, other, _) = memories[first], memories[second]
        if (kind in _FACTS) == (other in _FACTS):  # all but a fact and a rule
            for number in {first, second} - said.keys():
                said[number] = _statements(memories[number][2])
            result = _question((one, two), said[first], said[second])
            if result is not None:
                yield result


def _near(holders: dict[str, list[int]], count: int) -> list[tuple[int, int]]:
    """Return the pairs of memories whose common words are the rarest and the most."""
    shared: dict[tuple[int, int], float] = defaultdict(float)
    work = 0
    for numbers in sorted(holders.values(), key=len):
        yield_to_requests()
        work += len(numbers) ** 2 // 2
        if work > _WORK:
            break
        for pair in combinations(numbers, 2):
            shared[pair] += log(1 + count / len(numbers))
    return nlargest(_COMPARED, shared, key=lambda pair: (shared[pair], pair))


def _statements(text: str) -> list[Statement]:
    every = statements(text)
    return [one for one in every if one.words and not FENCE.match(one.raw)][:_STATEMENTS]


def _question(
    paths: tuple[str, str], one: Sequence[Statement], two: Sequence[Statement]
) -> tuple[float, Question] | None:
    if not one or not two:
        return None
    both = {first.key for first in one} & {second.key for second in two}
    pairs = [("", 0.0, one[0], two[0])]
    left, right = ([one for one in side if one.key not in both] for side in (one, two))
    pairs += [(*_compared(a, b), a, b) for a in left for b in right if a.words & b.words]
    kind, score, first, second = max(pairs, key=lambda pair: (pair[0] == CONTRADICT, pair[1]))
    if kind != CONTRADICT:
        mine, theirs = (frozenset[str]().union(*(s.words for s in side)) for side in (one, two))
        shared, fewest = len(mine & theirs), min(len(mine), len(theirs))
        if shared < max(_AGAIN * fewest, min(_SHARED, fewest)):
            return None
        kind, score = REPEAT, shared / fewest
    return score, Question(paths, kind, quoted(first.raw, SHOWN), quoted(second.raw, SHOWN))


def _compared(one: Statement, two: Statement) -> tuple[str, float]:
    """Return how two statements stand to each other, "" where they have nothing to do."""
    share = resemblance(one, two)
    if share < _RELATED or not contradiction(one, two):
        return (REPEAT, share) if share >= RESEMBLING else ("", 0.0)
    kinds = {kind for kind, _ in one.facts - two.facts} & {k for k, _ in two.facts - one.facts}
    rivals = {form for kind, form in one.facts ^ two.facts if kind in kinds}
    left, right = one.words - rivals, two.words - rivals
    shared, least = len(left & right), _AGAINST if rivals else RESEMBLING
    alike = 0 < shared >= least * min(len(left), len(right))
    return (CONTRADICT, shared / len(left | right)) if alike else ("", 0.0)
