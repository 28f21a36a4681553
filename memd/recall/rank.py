"""Rank memories for a prompt, and cut those below a floor. Pure.

The score is BM25 over name, description, type, path and body as one text, with a bonus for
neighbouring words and for a memory that begins with a name in the prompt. docs/recall.md has the
measured value of each part.

Rules of this file
- The result does not depend on the order of the rows.
- No result is better than a poor one: memories below the floor are cut. Of equal scores the newer
  memory comes first.
"""

import math
from collections.abc import Iterable, Mapping
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from memd.base.values import MemoryType
from memd.recall.query import Query
from memd.state.search import SearchRow
from memd.text.words import stemmed_lists

BELOW_FLOOR = "below the floor"
BEYOND_LIMIT = "beyond the limit"

_FEW_FORMS = 12  # so few are counted faster without a set of the words of a memory
_K1 = 1.2  # BM25's usual saturation; a long memory is as good as a short one (b = 0)
_SYNONYM_SHARE = 0.45  # of a word's weight
_PAIR_SHARE = 0.3  # of the weight of two neighbouring words, where they are neighbours in a memory
_SUBJECT_BONUS = 1.0  # bonus of a memory that begins with a name in the prompt
_ASSUMED_MEMORIES = 50  # memories added to the count, so that rarity works in a small store too
_BODY_FACTOR = 0.5  # factor towards the floor of a word that is only in the body
_DULL_FACTOR = 0.5  # factor towards the floor of a common word or a bare number
# The floor is a share of the rarity of a word that only one memory has, and at least a share of the
# weight of the prompt's heaviest words. Only some of these count, as a long prompt has several
# topics.
_FLOOR_SHARE = 0.35
_RULE_FLOOR_SHARE = 0.28  # for a rule, whose topic prompts name in a word or two
_COVERED_SHARE = 0.1
_COVERED_WORDS = 8
_FOLLOWING_SHARE = 0.4  # of the floor, which is enough once another memory reaches all of it


class Ranked(Struct, frozen=True):
    """A ranked memory: its score, the parts of the score, and the words that matched.

    ``value`` is compared with its ``floor``. ``cut`` is the reason why it is not a result, "" if it
    is one.
    """

    row: SearchRow
    score: float  # the sum of the parts
    bm25: float
    pairs: float
    subject: float
    terms: tuple[str, ...]
    value: float
    floor: float
    cut: str = ""

    @property
    def parts(self) -> dict[str, float]:
        """The parts that are not zero, by name."""
        parts = {"bm25": self.bm25, "pairs": self.pairs, "subject": self.subject}
        return {name: round(part, 6) for name, part in parts.items() if part}


class _Term(Struct, frozen=True):
    """A word of the prompt, with its synonyms."""

    word: str
    # The word, then its synonyms, each also between spaces, and with its weight in the score.
    forms: tuple[tuple[str, str, float], ...]
    weight: float  # of the word itself
    floor_factor: float  # of the weights, that counts towards the floor


class Terms(Struct, frozen=True):
    """What a prompt is scored with, for a directory."""

    terms: tuple[_Term, ...]
    forms: frozenset[str]  # the words of all terms and their synonyms
    pairs: tuple[tuple[str, str, float], ...]  # neighbouring words with their weights
    names: frozenset[str]  # words of names
    rule_floor: float  # the least value of a result that is a rule
    floor: float  # the least value of any other result
    # A memory with none of these words is below the floor, whatever other words it has.
    bringing: tuple[str, ...]


def rank(
    terms: Terms, rows: Iterable[SearchRow], limit: int, *, floor: bool = True
) -> list[Ranked]:
    """Return the memories that have a word of the prompt, the best first, and why some are cut.

    At most ``limit`` are not cut. Without ``floor`` none is cut for a low value.
    """
    ranked = [item for row in rows if (item := _score(terms, row)) is not None]
    ranked.sort(key=lambda item: (-item.score, -item.row.mtime_ns, item.row.path))
    one_reaches = any(item.value >= item.floor for item in ranked)
    share = (_FOLLOWING_SHARE if one_reaches else 1.0) if floor else 0.0
    for index, item in enumerate(ranked):
        if item.value < share * item.floor:
            ranked[index] = replace(item, cut=BELOW_FLOOR)
        elif limit <= 0:
            ranked[index] = replace(item, cut=BEYOND_LIMIT)
        else:
            limit -= 1
    return ranked


def weigh(query: Query, counts: Mapping[str, int], memories: int) -> Terms:
    """Return the words of a prompt with their weights, and the floors.

    ``counts`` is how many of all ``memories`` have each word, of those that any has. The fewer have
    a word, the heavier it is.
    """
    memories += _ASSUMED_MEMORIES
    unique = _rarity(1, memories)
    terms = []
    for word, factor in query.factors.items():
        weight = factor * _rarity(counts.get(word, 0), memories)
        synonyms = [
            (
                other,
                f" {other} ",
                _SYNONYM_SHARE * min(weight, _rarity(counts.get(other, 0), memories)),
            )
            for other in query.synonyms.get(word, ())
        ]
        floor_factor = _DULL_FACTOR if word in _dull_words() else 1.0
        forms = ((word, f" {word} ", weight), *synonyms)
        terms.append(_Term(word, forms, weight, floor_factor))
    # A word that no memory has weighs as much as one that only one memory has.
    floor_weights = [
        term.floor_factor * min(term.weight, query.factors[term.word] * unique) for term in terms
    ]
    covered = _COVERED_SHARE * sum(sorted(floor_weights, reverse=True)[:_COVERED_WORDS])
    rule_floor = max(_RULE_FLOOR_SHARE * unique, covered)
    floor = max(_FLOOR_SHARE * unique, covered)
    # The most that each word adds to the value of a memory; the lightest ones cannot reach the
    # floor, not even all together.
    most = dict.fromkeys(counts, 0.0)
    for term in terms:
        for word, _, weight in term.forms:
            if word in most:
                most[word] += weight * term.floor_factor
    bringing, total = [], 0.0
    for word in sorted(most, key=most.__getitem__):
        total += most[word]
        if total >= _FOLLOWING_SHARE * min(rule_floor, floor):
            bringing.append(word)
    weights = {term.word: term.weight for term in terms}
    return Terms(
        terms=tuple(terms),
        forms=query.words,
        pairs=tuple((one, two, weights[one] + weights[two]) for one, two in query.pairs),
        names=query.names,
        rule_floor=rule_floor,
        floor=floor,
        bringing=tuple(bringing),
    )


def _rarity(count: int, memories: int) -> float:
    """Return the rarity of a word that ``count`` of the memories have."""
    count = min(count, memories)
    return math.log(1 + (memories - count + 0.5) / (count + 0.5))


def _score(prompt: Terms, row: SearchRow) -> Ranked | None:
    """Return a memory with the parts of its score, ``None`` if it has no word of the prompt."""
    text = row.words
    many_forms = len(prompt.forms) > _FEW_FORMS
    present = prompt.forms.intersection(text.split()) if many_forms else prompt.forms
    matched: list[str] = []  # the words of the prompt that the memory has, in their order
    bm25 = value = 0.0
    for term in prompt.terms:
        # Of a word and its synonyms, the one that counts most is used.
        gain = term_value = 0.0
        for word, form, weight in term.forms:
            if word in present and (times := text.count(form)):
                gain = max(gain, weight * times * (_K1 + 1) / (times + _K1))  # BM25
                is_in_heading = text.find(form, 0, row.heading + 1) >= 0
                factor = 1.0 if is_in_heading else _BODY_FACTOR
                term_value = max(term_value, weight * term.floor_factor * factor)
        if gain:
            matched.append(term.word)
            bm25 += gain
            value += term_value
    if not matched:
        return None
    pairs = _PAIR_SHARE * sum(
        weight
        for one, two, weight in prompt.pairs
        if one in matched and two in matched and f" {one} {two} " in text
    )
    begins_with_name = bool(prompt.names) and text.split(maxsplit=1)[0] in prompt.names
    subject = _SUBJECT_BONUS if begins_with_name else 0.0
    floor = prompt.rule_floor if row.type == MemoryType.FEEDBACK else prompt.floor
    score = round(bm25 + pairs + subject, 6)
    return Ranked(row, score, bm25, pairs, subject, tuple(matched), value, floor)


@cache
def _dull_words() -> frozenset[str]:
    """Return words that say little about a memory's topic: common words, days and years."""
    return stemmed_lists().common | {str(number) for number in (*range(100), *range(1990, 2100))}
