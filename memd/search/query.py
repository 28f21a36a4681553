"""Analyse a prompt for the ranker: its words, their synonyms, and names. Pure.

Rules of this file
- The prompt's own words count in full. A synonym counts less, and not if the prompt has it itself.
- Names are words with a capital letter within a prompt.
- A line of the table of synonyms is a group of words with one meaning. Words behind ``>`` are
  synonyms of those before it, but not the other way round. ``_`` joins the words of a phrase.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise

from msgspec import Struct

from memd.text.words import is_common, list_text, words

_COMMON = 0.6  # weight of the commonest words of the language
_NAME = re.compile(r"(?<=[\w,;:)'\"] )[A-Z][a-z]+\b")
_CHARACTERS = 16_000  # of a prompt that are used; a question stands before a pasted file
_WORDS = 400
_LONGEST = 4  # words of a phrase in the table

Phrase = tuple[str, ...]


class Query(Struct, frozen=True):
    """An analysed prompt.

    ``factors`` are its distinct words in order, each with the factor of its rarity. ``synonyms``
    are other words for some of them, ``pairs`` neighbouring words, ``names`` words of names.
    """

    factors: Mapping[str, float]
    synonyms: Mapping[str, tuple[str, ...]]
    pairs: tuple[tuple[str, str], ...]
    names: frozenset[str]


def parse(text: str) -> Query:
    """Return an analysed prompt. May read word lists at the first call."""
    text = text[:_CHARACTERS]
    prompt_words = words(text)[:_WORDS]
    return Query(
        factors={word: _COMMON if is_common(word) else 1.0 for word in prompt_words},
        synonyms=synonyms(prompt_words),
        pairs=tuple(dict.fromkeys(pairwise(prompt_words))),
        names=frozenset(word for name in _NAME.findall(text) for word in words(name)[:1]),
    )


def synonyms(prompt_words: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    """Return the synonyms of the words of a prompt, by word.

    The synonyms of a phrase belong to each of its words.
    """
    table = _table()
    others: dict[str, dict[str, None]] = {}
    # Each run of up to four words may be a phrase of the table.
    for at in range(len(prompt_words)):
        for length in range(1, min(_LONGEST, len(prompt_words) - at) + 1):
            phrase = tuple(prompt_words[at : at + length])
            for word in phrase if phrase in table else ():
                others.setdefault(word, {}).update(dict.fromkeys(table[phrase]))
    return {
        word: tuple(other for other in more if other not in prompt_words)
        for word, more in others.items()
    }


@cache
def _table() -> Mapping[Phrase, tuple[str, ...]]:
    """Return the words of all synonyms by phrase, as read from the table of synonyms."""
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
    """Return the words of a phrase in the table, where ``_`` joins them."""
    return tuple(words(item.replace("_", " ")))
