"""A prompt as the ranker uses it: its words, what may stand for them, and names. Pure.

Rules of this file
- What a prompt says itself counts in full; a synonym counts less and never beside the word that
  it stands for.
- Names are words with a capital letter that do not open the prompt: whom it is about.
- A line of the table of synonyms is a group of words that stand for each other; what stands
  behind ``>`` is found for the words before it, never the other way round. ``_`` joins the words
  of a phrase.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from memd.text.words import is_common, list_text, words

_COMMON = 0.6  # weight of the commonest words of the language
_NAME = re.compile(r"(?<=[\w,;:)'\"] )[A-Z][a-z]+\b")
_CHARACTERS = 16_000  # of a prompt that count: who pastes a file into it asks at its beginning
_WORDS = 400
_LONGEST = 4  # words of a phrase in the table

Phrase = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Query:
    """A prompt, analysed once.

    ``factors`` holds its distinct words in their order and what each counts beside its rarity;
    ``synonyms`` other words for some of them; ``pairs`` neighbouring words; ``names`` whom or what
    it names.
    """

    factors: Mapping[str, float]
    synonyms: Mapping[str, tuple[str, ...]]
    pairs: tuple[tuple[str, str], ...]
    names: frozenset[str]


def parse(text: str) -> Query:
    """Return a prompt as the ranker uses it. May read word lists at its first use."""
    text = text[:_CHARACTERS]
    result = words(text)[:_WORDS]
    return Query(
        factors={word: _COMMON if is_common(word) else 1.0 for word in result},
        synonyms=synonyms(result),
        pairs=tuple(dict.fromkeys(pairwise(result))),
        names=frozenset(word for name in _NAME.findall(text) for word in words(name)[:1]),
    )


def synonyms(result: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    """Return other words for the words of a prompt, by the word.

    The words of a phrase that has another name share it.
    """
    table = _table()
    others: dict[str, dict[str, None]] = {}
    for at in range(len(result)):
        for length in range(1, min(_LONGEST, len(result) - at) + 1):
            phrase = tuple(result[at : at + length])
            for word in phrase if phrase in table else ():
                others.setdefault(word, {}).update(dict.fromkeys(table[phrase]))
    return {
        word: tuple(other for other in more if other not in result) for word, more in others.items()
    }


@cache
def _table() -> Mapping[Phrase, tuple[str, ...]]:
    table: dict[Phrase, dict[str, None]] = {}
    for line in list_text("synonyms.txt").splitlines():
        equal, _, narrower = line.partition(">")
        group = [_phrase(item) for item in equal.split()]
        for phrase in group:
            more = [other for other in group if other != phrase]
            more += [_phrase(item) for item in narrower.split()]
            table.setdefault(phrase, {}).update(
                dict.fromkeys(word for other in more for word in other)
            )
    return {phrase: tuple(more) for phrase, more in table.items() if phrase}


def _phrase(item: str) -> Phrase:
    return tuple(words(item.replace("_", " ")))
