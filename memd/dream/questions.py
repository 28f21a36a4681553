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
from memd.core.text import SAID
from memd.core.values import PERSONAL, MemoryType
from memd.core.yielding import yield_to_requests
from memd.dream.values import SHOWN, Question, quoted
from memd.text.blocks import FENCE
from memd.text.similarity import RESEMBLING, contradiction, resemblance
from memd.text.statements import Statement, crude_words, statements

CONTRADICT, REPEAT, IN_FILE = "contradict", "repeat", "in_file"
_MOST_QUESTIONS = 20  # of each kind
_MOST_COUNTED_PAIRS = 300_000  # of memories with a common word, the rarest words first
_MOST_COMPARED_PAIRS = 500  # those with the most words in common
_MOST_STATEMENTS = 40  # of one memory
_SHARED_WORDS = 2  # at least, that a memory has in common with one that it repeats
_REPEATED_SHARE = 0.5  # of the shorter memory's words, that a memory which repeats it has
_CONTRADICTING_RESEMBLANCE = 0.3  # at least, of two sentences that contradict each other
# Of the shorter sentence's words without differing facts, in two that contradict each other.
_CONTRADICTING_SHARE = 0.7

_FACT_TYPES = (MemoryType.PROJECT, MemoryType.REFERENCE)  # other types are rules
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
        """Return the key by which questions are sorted."""
        score, question = scored
        return question.paths[0] not in rules, -score, question.paths

    compared = [(path, kind, _without_quotations(text)) for path, kind, text in memories]
    ranked = sorted(_score_pairs(compared), key=rank)
    contradictions = [question for _, question in ranked if question.kind == CONTRADICT]
    repetitions = [question for _, question in ranked if question.kind == REPEAT]
    in_files = islice(_covered_memories(memories, covered), _MOST_QUESTIONS)
    return (*contradictions[:_MOST_QUESTIONS], *repetitions[:_MOST_QUESTIONS], *in_files)


def _without_quotations(text: str) -> str:
    """Return a text without the lines that quote the person: their label and date are alike."""
    return "\n".join(line for line in text.split("\n") if not line.startswith(SAID))


def _covered_memories(memories: Sequence[ComparedText], covered: Covered) -> Iterator[Question]:
    """Yield a question about each memory that an instruction file covers."""
    for path, _, text in memories:
        yield_to_requests()
        file = covered(text)
        if file:
            yield Question((path, file), IN_FILE, quoted(text.lstrip().split("\n")[0], SHOWN), "")


def _score_pairs(memories: Sequence[ComparedText]) -> Iterator[tuple[float, Question]]:
    """Yield a question about each contradicting or repeated pair, with its score.

    A fact is not compared with a rule. Only the pairs that ``_likely_pairs`` returns are compared.
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
        if (kind in _FACT_TYPES) == (other_kind in _FACT_TYPES):
            for index in {first, second} - parsed.keys():
                parsed[index] = _first_statements(memories[index][2])
            result = _make_question((path, other_path), parsed[first], parsed[second])
            if result is not None:
                yield result


def _likely_pairs(holders: dict[str, list[int]], count: int) -> list[tuple[int, int]]:
    """Return the pairs of memories with the most and rarest common words, 500 at most.

    ``holders`` are by word the indexes of the memories that have it; ``count`` is the number of all
    memories.
    """
    weights: dict[tuple[int, int], float] = defaultdict(float)  # of the common words of a pair
    counted_pairs = 0
    for indexes in sorted(holders.values(), key=len):
        yield_to_requests()
        counted_pairs += len(indexes) ** 2 // 2
        if counted_pairs > _MOST_COUNTED_PAIRS:
            break
        for pair in combinations(indexes, 2):
            weights[pair] += log(1 + count / len(indexes))
    return nlargest(_MOST_COMPARED_PAIRS, weights, key=lambda pair: (weights[pair], pair))


def _first_statements(text: str) -> list[Statement]:
    """Return the first 40 statements of a text that have words and are no code."""
    prose = [
        statement
        for statement in statements(text)
        if statement.words and not FENCE.match(statement.raw)
    ]
    return prose[:_MOST_STATEMENTS]


def _make_question(
    paths: tuple[str, str],
    first_statements: Sequence[Statement],
    second_statements: Sequence[Statement],
) -> tuple[float, Question] | None:
    """Return a score and the question about two memories, ``None`` if there is nothing to ask.

    ``first_statements`` and ``second_statements`` are their statements.
    """
    if not first_statements or not second_statements:
        return None
    common_keys = {first.key for first in first_statements} & {
        second.key for second in second_statements
    }
    only_first = [statement for statement in first_statements if statement.key not in common_keys]
    only_second = [statement for statement in second_statements if statement.key not in common_keys]
    # The first statements are shown if no two statements are related.
    pairs = [("", 0.0, first_statements[0], second_statements[0])]
    pairs += [(*_compare(a, b), a, b) for a in only_first for b in only_second if a.words & b.words]
    kind, score, first, second = max(pairs, key=lambda pair: (pair[0] == CONTRADICT, pair[1]))
    if kind != CONTRADICT:
        words_one = frozenset[str]().union(*(statement.words for statement in first_statements))
        words_two = frozenset[str]().union(*(statement.words for statement in second_statements))
        shared, fewest = len(words_one & words_two), min(len(words_one), len(words_two))
        if shared < max(_REPEATED_SHARE * fewest, min(_SHARED_WORDS, fewest)):
            return None
        kind, score = REPEAT, shared / fewest
    return score, Question(paths, kind, quoted(first.raw, SHOWN), quoted(second.raw, SHOWN))


def _compare(one: Statement, two: Statement) -> tuple[str, float]:
    """Return ``contradict`` or ``repeat`` with a score, "" and 0 for unrelated statements."""
    share = resemblance(one, two)
    if share < _CONTRADICTING_RESEMBLANCE or not contradiction(one, two):
        return (REPEAT, share) if share >= RESEMBLING else ("", 0.0)
    # Facts of a kind in which both differ, as two dates; the other words must agree.
    kinds_one = {kind for kind, _ in one.facts - two.facts}
    kinds_two = {kind for kind, _ in two.facts - one.facts}
    differing = {f for kind, f in one.facts ^ two.facts if kind in kinds_one & kinds_two}
    words_one, words_two = one.words - differing, two.words - differing
    shared = len(words_one & words_two)
    least_share = _CONTRADICTING_SHARE if differing else RESEMBLING
    if shared == 0 or shared < least_share * min(len(words_one), len(words_two)):
        return "", 0.0
    return CONTRADICT, shared / len(words_one | words_two)
