"""Analyse a prompt for the ranker: its words, their synonyms, and names. Pure.

Rules of this file
- Of a long prompt only an excerpt counts (``excerpt``).
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

from memd.text.excerpt import excerpt
from memd.text.words import is_common, list_text, words

_COMMON_FACTOR = 0.6  # of the rarity of the commonest words of the language
_NAME = re.compile(r"(?<=[\w,;:)'\"] )[A-Z][a-z]+\b")
_LONGEST_PHRASE = 4  # words of a phrase in the table

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
    text = excerpt(text)
    prompt_words = words(text)
    names = [words(name) for name in _NAME.findall(text)]
    return Query(
        factors={word: _COMMON_FACTOR if is_common(word) else 1.0 for word in prompt_words},
        synonyms=synonyms(prompt_words),
        pairs=tuple(dict.fromkeys(pairwise(prompt_words))),
        names=frozenset(name[0] for name in names if name),
    )


def synonyms(prompt_words: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    """Return the synonyms of the words of a prompt, by word.

    The synonyms of a phrase belong to each of its words.
    """
    table = _synonym_table()
    found_synonyms: dict[str, dict[str, None]] = {}  # by word, in their order
    # Each run of up to four words may be a phrase of the table.
    for start in range(len(prompt_words)):
        longest = min(_LONGEST_PHRASE, len(prompt_words) - start)
        for length in range(1, longest + 1):
            phrase = tuple(prompt_words[start : start + length])
            if phrase in table:
                for word in phrase:
                    found_synonyms.setdefault(word, {}).update(dict.fromkeys(table[phrase]))
    return {
        word: tuple(other for other in others if other not in prompt_words)
        for word, others in found_synonyms.items()
    }


@cache
def _synonym_table() -> Mapping[Phrase, tuple[str, ...]]:
    """Return the words of all synonyms by phrase, as read from the table of synonyms."""
    table: dict[Phrase, dict[str, None]] = {}
    for line in list_text("synonyms.txt").splitlines():
        equal, _, narrower = line.partition(">")
        group = [_phrase(item) for item in equal.split()]
        for phrase in group:
            others = [other for other in group if other != phrase]
            others += [_phrase(item) for item in narrower.split()]
            words_of_others = [word for other in others for word in other]
            table.setdefault(phrase, {}).update(dict.fromkeys(words_of_others))
    return {phrase: tuple(others) for phrase, others in table.items() if phrase}


def _phrase(item: str) -> Phrase:
    """Return the words of a phrase in the table, where ``_`` joins them."""
    return tuple(words(item.replace("_", " ")))
