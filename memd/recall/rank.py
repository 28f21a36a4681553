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
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from memd.base.values import MemoryType
from memd.recall.query import Query
from memd.state.search import SearchRow
from memd.text.words import stemmed_lists

BELOW_FLOOR = "below the floor"
BEYOND_LIMIT = "beyond the limit"

_FEW_WORDS = 12  # so few are counted faster without a set of the words of a memory
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


class _Form(NamedTuple):
    """A word of the prompt, or a synonym of one."""

    word: str
    spaced: str  # the word between spaces
    weight: float  # in the score
    value: float  # towards the floor


class Terms(Struct, frozen=True):
    """What a prompt is scored with, for a directory."""

    terms: Mapping[str, Sequence[_Form]]  # by word of the prompt: it and its synonyms
    words: frozenset[str]  # of all forms
    # Neighbouring words, the two between spaces, and their weights.
    pairs: tuple[tuple[str, str, str, float], ...]
    names: frozenset[str]  # words of names
    rule_floor: float  # the least value of a result that is a rule
    floor: float  # the least value of any other result
    # A memory with none of these words is below the floor, whatever other words it has.
    bringing: tuple[str, ...]


def weigh(query: Query, counts: Mapping[str, int], memories: int) -> Terms:
    """Return the words of a prompt with their weights, and the floors.

    ``counts`` is how many of all ``memories`` have each word, of those that any has. The fewer have
    a word, the heavier it is.
    """
    memories += _ASSUMED_MEMORIES
    rarities = {  # by how many memories have a word
        count: math.log(1 + (memories - min(count, memories) + 0.5) / (min(count, memories) + 0.5))
        for count in {0, 1, *counts.values()}
    }
    unique = rarities[1]
    terms: dict[str, list[_Form]] = {}
    floor_weights = []
    for word, factor in query.factors.items():
        weight = factor * rarities[counts.get(word, 0)]
        floor_factor = _DULL_FACTOR if word in _dull_words() else 1.0
        weights = {word: weight}
        for other in query.synonyms.get(word, ()):
            weights[other] = _SYNONYM_SHARE * min(weight, rarities[counts.get(other, 0)])
        terms[word] = [
            _Form(form, f" {form} ", each, each * floor_factor) for form, each in weights.items()
        ]
        # A word that no memory has weighs as much as one that only one memory has.
        floor_weights.append(floor_factor * min(weight, factor * unique))
    covered = _COVERED_SHARE * sum(sorted(floor_weights, reverse=True)[:_COVERED_WORDS])
    rule_floor = max(_RULE_FLOOR_SHARE * unique, covered)
    floor = max(_FLOOR_SHARE * unique, covered)
    # The most that each word adds to the value of a memory; the lightest ones cannot reach the
    # floor, not even all together.
    most = dict.fromkeys(counts, 0.0)
    for form in chain.from_iterable(terms.values()):
        if form.word in most:
            most[form.word] += form.value
    bringing, total = [], 0.0
    for word in sorted(most, key=most.__getitem__):
        total += most[word]
        if total >= _FOLLOWING_SHARE * min(rule_floor, floor):
            bringing.append(word)
    return Terms(
        terms=terms,
        words=query.words,
        pairs=tuple(
            (one, two, f" {one} {two} ", terms[one][0].weight + terms[two][0].weight)
            for one, two in query.pairs
        ),
        names=query.names,
        rule_floor=rule_floor,
        floor=floor,
        bringing=tuple(bringing),
    )


def score(prompt: Terms, rows: Iterable[SearchRow]) -> list[Ranked]:
    """Return the memories that have a word of the prompt, with the parts of their scores."""
    result = []
    many_words = len(prompt.words) > _FEW_WORDS
    for row in rows:
        text, heading_end = row.words, row.heading + 1
        present = prompt.words.intersection(text.split()) if many_words else prompt.words
        matched: list[str] = []  # the words of the prompt that the memory has, in their order
        bm25 = value = 0.0
        for word, forms in prompt.terms.items():
            # Of a word and its synonyms, the one that counts most is used.
            gain = term_value = 0.0
            for form, spaced, weight, form_value in forms:
                if form in present and (times := text.count(spaced)):
                    gain = max(gain, weight * times * (_K1 + 1) / (times + _K1))  # BM25
                    is_in_heading = text.find(spaced, 0, heading_end) >= 0
                    factor = 1.0 if is_in_heading else _BODY_FACTOR
                    term_value = max(term_value, form_value * factor)
            if gain:
                matched.append(word)
                bm25 += gain
                value += term_value
        if not matched:
            continue
        pairs = _PAIR_SHARE * sum(
            [
                weight
                for one, two, spaced, weight in prompt.pairs
                if one in matched and two in matched and spaced in text
            ]
        )
        begins_with_name = bool(prompt.names) and text.split(maxsplit=1)[0] in prompt.names
        subject = _SUBJECT_BONUS if begins_with_name else 0.0
        floor = prompt.rule_floor if row.type == MemoryType.FEEDBACK else prompt.floor
        total = round(bm25 + pairs + subject, 6)
        result.append(Ranked(row, total, bm25, pairs, subject, tuple(matched), value, floor))
    return result


def rank(scored: Iterable[Ranked], limit: int, *, floor: bool = True) -> list[Ranked]:
    """Return the memories that ``score`` returned, the best first, and why some are cut.

    Of equal scores the newer comes first. At most ``limit`` are not cut. Without ``floor`` none is
    cut for a low value.
    """
    ranked = sorted(scored, key=lambda item: (-item.score, -item.row.mtime_ns, item.row.path))
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


def highest_score(terms: Terms, words: Collection[str]) -> float:
    """Return what no memory scores more than that has none but these words of the prompt."""
    heaviest = {
        word: max((form.weight for form in forms if form.word in words), default=0.0)
        for word, forms in terms.terms.items()
    }
    pairs = sum(weight for one, two, _, weight in terms.pairs if heaviest[one] and heaviest[two])
    subject = _SUBJECT_BONUS if terms.names else 0.0
    return (_K1 + 1) * sum(heaviest.values()) + _PAIR_SHARE * pairs + subject


@cache
def _dull_words() -> frozenset[str]:
    """Return words that say little about a memory's topic: common words, days and years."""
    return stemmed_lists().common | {str(number) for number in (*range(100), *range(1990, 2100))}
