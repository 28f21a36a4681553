"""Find memories that seem to contradict or repeat each other, or an instruction file. Pure.

They are listed for a person, who decides. The pairs to compare are found by the rare words that two
memories share, so that sentences from one template count little. Frequent words are not used, which
keeps the work in proportion to the text.
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
from memd.text.blocks import FENCE
from memd.text.similarity import RESEMBLING, contradiction, resemblance
from memd.text.statements import Statement, crude_words, statements

CONTRADICT, REPEAT, IN_FILE = "contradict", "repeat", "in_file"
_MOST = 20
_WORK = 300_000  # pairs of memories counted by shared words, the rarest words first
_SHARED = 2  # telling words that memories which repeat each other share, at least
_COMPARED = 500  # pairs that are compared, those with the most words in common
_STATEMENTS = 40  # of one memory
_AGAINST = 0.7  # share of the shorter sentence's words in a contradiction, without differing facts
_RELATED = 0.3  # resemblance of two sentences that may contradict each other, at least
_AGAIN = 0.5  # share of the shorter memory's words that a memory which repeats it has

_FACTS = (MemoryType.PROJECT, MemoryType.REFERENCE)
ComparedText = tuple[str, MemoryType | None, str]  # a path, the type, description and body


def questions(
    memories: Sequence[ComparedText], covered: Covered = in_no_file
) -> tuple[Question, ...]:
    """Return questions for a person: at most 20 contradictions, repetitions and covered memories.

    A person's rules come first, then the most similar pairs. ``covered`` returns the instruction
    file that says all of a text, "" for none.
    """
    rules = {path for path, kind, _ in memories if kind in PERSONAL}

    def rank(scored: tuple[float, Question]) -> tuple[bool, float, tuple[str, str]]:
        score, question = scored
        return question.paths[0] not in rules, -score, question.paths

    ranked = sorted(_score_pairs(memories), key=rank)
    contradictions = [question for _, question in ranked if question.kind == CONTRADICT]
    repetitions = [question for _, question in ranked if question.kind == REPEAT]
    in_files = islice(_covered_memories(memories, covered), _MOST)
    return (*contradictions[:_MOST], *repetitions[:_MOST], *in_files)


def _covered_memories(memories: Sequence[ComparedText], covered: Covered) -> Iterator[Question]:
    """Yield a question about each memory that an instruction file covers."""
    for path, _, text in memories:
        yield_to_requests()
        file = covered(text)
        if file:
            yield Question((path, file), IN_FILE, quoted(text.lstrip().split("\n")[0], SHOWN), "")


def _score_pairs(memories: Sequence[ComparedText]) -> Iterator[tuple[float, Question]]:
    """Yield a question about each contradicting or repeated pair, with its score.

    A fact is not compared with a rule.
    """
    holders: dict[str, list[int]] = defaultdict(list)  # the indexes of memories by word
    for index, (_, _, text) in enumerate(memories):
        yield_to_requests()
        for word in crude_words(text):
            holders[word].append(index)
    parsed: dict[int, list[Statement]] = {}
    for first, second in _likely_pairs(holders, len(memories)):
        yield_to_requests()
        (path, kind, _), (other_path, other_kind, _) = memories[first], memories[second]
        if (kind in _FACTS) == (other_kind in _FACTS):
            for index in {first, second} - parsed.keys():
                parsed[index] = _first_statements(memories[index][2])
            result = _make_question((path, other_path), parsed[first], parsed[second])
            if result is not None:
                yield result


def _likely_pairs(holders: dict[str, list[int]], count: int) -> list[tuple[int, int]]:
    """Return the pairs of memories with the most and rarest common words, 500 at most.

    ``holders`` are the indexes of the memories that have a word; ``count`` is of all memories.
    """
    shared: dict[tuple[int, int], float] = defaultdict(float)
    work = 0
    for indexes in sorted(holders.values(), key=len):
        yield_to_requests()
        # The number of pairs of memories that have this word.
        work += len(indexes) ** 2 // 2
        if work > _WORK:
            break
        for pair in combinations(indexes, 2):
            shared[pair] += log(1 + count / len(indexes))
    return nlargest(_COMPARED, shared, key=lambda pair: (shared[pair], pair))


def _first_statements(text: str) -> list[Statement]:
    """Return the first 40 statements of a text that have words and are no code."""
    every = statements(text)
    return [one for one in every if one.words and not FENCE.match(one.raw)][:_STATEMENTS]


def _make_question(
    paths: tuple[str, str], one: Sequence[Statement], two: Sequence[Statement]
) -> tuple[float, Question] | None:
    """Return a score and the question about two memories, ``None`` if there is nothing to ask.

    ``one`` and ``two`` are their statements.
    """
    if not one or not two:
        return None
    common = {first.key for first in one} & {second.key for second in two}
    pairs = [("", 0.0, one[0], two[0])]  # shown if no two statements are related
    own, others = ([one for one in side if one.key not in common] for side in (one, two))
    pairs += [(*_compare(a, b), a, b) for a in own for b in others if a.words & b.words]
    kind, score, first, second = max(pairs, key=lambda pair: (pair[0] == CONTRADICT, pair[1]))
    if kind != CONTRADICT:
        words, other_words = (
            frozenset[str]().union(*(statement.words for statement in side)) for side in (one, two)
        )
        shared, fewest = len(words & other_words), min(len(words), len(other_words))
        if shared < max(_AGAIN * fewest, min(_SHARED, fewest)):
            return None
        kind, score = REPEAT, shared / fewest
    return score, Question(paths, kind, quoted(first.raw, SHOWN), quoted(second.raw, SHOWN))


def _compare(one: Statement, two: Statement) -> tuple[str, float]:
    """Return ``contradict`` or ``repeat`` with a score, "" and 0 for unrelated statements."""
    share = resemblance(one, two)
    if share < _RELATED or not contradiction(one, two):
        return (REPEAT, share) if share >= RESEMBLING else ("", 0.0)
    kinds = {kind for kind, _ in one.facts - two.facts} & {k for k, _ in two.facts - one.facts}
    rivals = {form for kind, form in one.facts ^ two.facts if kind in kinds}
    left, right = one.words - rivals, two.words - rivals
    shared, least = len(left & right), _AGAINST if rivals else RESEMBLING
    alike = 0 < shared >= least * min(len(left), len(right))
    return (CONTRADICT, shared / len(left | right)) if alike else ("", 0.0)
