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
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from memd.base.values import MemoryType
from memd.recall.query import Query
from memd.state.search import SearchRow
from memd.text.words import stemmed_lists

BELOW_FLOOR = "below the floor"
BEYOND_LIMIT = "beyond the limit"

_K1 = 1.2  # BM25's usual saturation; a long memory is as good as a short one (b = 0)
_SYNONYM_SHARE = 0.45  # of a word's weight
_PAIR_SHARE = 0.3  # of the weight of two neighbouring words, where they are neighbours in a memory
_SUBJECT_BONUS = 1.0  # bonus of a memory that begins with a name in the prompt
ASSUMED_MEMORIES = 50  # memories added to the count, so that rarity works in a small store too
_BODY_FACTOR = 0.5  # factor towards the floor of a word that is only in the body
_DULL_FACTOR = 0.5  # factor towards the floor of a common word or a bare number
_DIGITS = 6  # of a score behind the point
# The floor is a share of the rarity of a word that only one memory has, and at least a share of the
# weight of the prompt's heaviest words. Only some of these count, as a long prompt has several
# topics.
_FLOOR_SHARE = 0.35
_RULE_FLOOR_SHARE = 0.28  # for a rule, whose topic prompts name in a word or two
_COVERED_SHARE = 0.2
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


class Form(NamedTuple):
    """A word of the prompt, or a synonym of one."""

    term: str  # the word of the prompt
    word: str
    spaced: str  # the word between spaces
    weight: float  # in the score
    value: float  # towards the floor


class Terms(Struct, frozen=True):
    """What a prompt is scored with, for a directory."""

    forms: Sequence[Form]  # of its distinct words in their order
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
    memories += ASSUMED_MEMORIES
    rarities = {  # by how many memories have a word
        count: math.log(1 + (memories - min(count, memories) + 0.5) / (min(count, memories) + 0.5))
        for count in {0, 1, *counts.values()}
    }
    unique = rarities[1]
    forms: list[Form] = []
    # The most that each word adds to the value of a memory.
    most = dict.fromkeys(counts, 0.0)
    weight_of, floor_weights = dict[str, float](), list[float]()
    for word, factor in query.factors.items():
        weight_of[word] = weight = factor * rarities[counts.get(word, 0)]
        floor_factor = _DULL_FACTOR if word in _dull_words() else 1.0
        weights = {word: weight}
        for other in query.synonyms.get(word, ()):
            weights[other] = _SYNONYM_SHARE * min(weight, rarities[counts.get(other, 0)])
        for form, each in weights.items():
            value = each * floor_factor
            forms.append(Form(word, form, f" {form} ", each, value))
            if form in most:
                most[form] += value
        # A word that no memory has weighs as much as one that only one memory has.
        floor_weights.append(floor_factor * min(weight, factor * unique))
    covered = _COVERED_SHARE * sum(sorted(floor_weights, reverse=True)[:_COVERED_WORDS])
    rule_floor = max(_RULE_FLOOR_SHARE * unique, covered)
    floor = max(_FLOOR_SHARE * unique, covered)
    # The lightest words cannot reach the floor, not even all together.
    bringing, total = [], 0.0
    for word in sorted(most, key=most.__getitem__):
        total += most[word]
        if total >= _FOLLOWING_SHARE * min(rule_floor, floor):
            bringing.append(word)
    return Terms(
        forms=forms,
        pairs=tuple(
            (one, two, f" {one} {two} ", weight_of[one] + weight_of[two])
            for one, two in query.pairs
        ),
        names=query.names,
        rule_floor=rule_floor,
        floor=floor,
        bringing=tuple(bringing),
    )


def heaviest_first(
    prompt: Terms, ids_of: Mapping[str, Collection[int]], ids: Collection[int]
) -> list[tuple[int, list[Form], float]]:
    """Return ids of memories with the forms that each may have and their weight, the most first.

    ``ids_of`` has the ids of the memories that have each word.
    """
    forms: dict[int, list[Form]] = {id_: [] for id_ in ids}
    weights = dict.fromkeys(ids, 0.0)
    for form in prompt.forms:
        # Any memory may have a word that the search cannot find for its control characters.
        have_it = ids_of.get(form.word, () if form.word.isprintable() else ids)
        for id_ in forms.keys() & have_it:
            forms[id_].append(form)
            weights[id_] += form.weight
    order = sorted(weights, key=weights.__getitem__, reverse=True)
    return [(id_, forms[id_], weights[id_]) for id_ in order]


def score(prompt: Terms, row: SearchRow, forms: Iterable[Form]) -> Ranked | None:
    """Return a memory with the parts of its score, ``None`` if it has no word of the prompt.

    ``forms`` are those that it may have, in the prompt's order.
    """
    text, heading_end = row.words, row.heading + 1
    # By word of the prompt that the memory has, in their order. Of a word and its synonyms, the one
    # that counts most is used.
    gains, values = dict[str, float](), dict[str, float]()
    for term, _, spaced, weight, form_value in forms:
        if times := text.count(spaced):
            gain = weight * times * (_K1 + 1) / (times + _K1)  # BM25
            is_in_heading = text.find(spaced, 0, heading_end) >= 0
            value = form_value if is_in_heading else form_value * _BODY_FACTOR
            gains[term] = max(gain, gains.get(term, 0.0))
            values[term] = max(value, values.get(term, 0.0))
    if not gains:
        return None
    bm25 = sum(gains.values())
    pairs = _PAIR_SHARE * sum(
        [
            weight
            for one, two, spaced, weight in prompt.pairs
            if one in gains and two in gains and spaced in text
        ]
    )
    begins_with_name = bool(prompt.names) and text.split(maxsplit=1)[0] in prompt.names
    subject = _SUBJECT_BONUS if begins_with_name else 0.0
    floor = prompt.rule_floor if row.type == MemoryType.FEEDBACK else prompt.floor
    total = round(bm25 + pairs + subject, _DIGITS)
    value = sum(values.values())
    return Ranked(row, total, bm25, pairs, subject, tuple(gains), value, floor)


def rank(scored: Iterable[Ranked], limit: int, *, floor: bool = True) -> list[Ranked]:
    """Return the results among the memories that were scored, at most ``limit``, the best first.

    Of equal scores the newer comes first. Without ``floor`` none is left out for a low value.
    """
    ranked = sorted(scored, key=lambda item: (-item.score, -item.row.mtime_ns, item.row.path))
    if floor:
        one_reaches = any(item.value >= item.floor for item in ranked)
        share = _FOLLOWING_SHARE if one_reaches else 1.0
        ranked = [item for item in ranked if item.value >= share * item.floor]
    return ranked[: max(limit, 0)]


def with_cuts(scored: Collection[Ranked], limit: int) -> list[Ranked]:
    """Return all memories that were scored, the best first, and why some are no results."""
    above_floor = [item.row.path for item in rank(scored, len(scored))]
    cuts = dict.fromkeys(above_floor, BEYOND_LIMIT) | dict.fromkeys(above_floor[:limit], "")
    return [
        replace(item, cut=cuts.get(item.row.path, BELOW_FLOOR))
        for item in rank(scored, len(scored), floor=False)
    ]


@cache
def _dull_words() -> frozenset[str]:
    """Return words that say little about a memory's topic: common words, days and years."""
    return stemmed_lists().common | {str(number) for number in (*range(100), *range(1990, 2100))}
