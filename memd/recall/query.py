"""Analyse a prompt for the ranker: its words, their synonyms, and names. Pure.

Rules of this file
- Of a long prompt only an excerpt counts (``excerpt``).
- The prompt's own words count in full. A synonym counts less, and not if the prompt has it itself.
- Names are words with a capital letter within a prompt.
- A line of the table of synonyms is a group of words with one meaning. Words behind ``>`` are
  synonyms of those before it, but not the other way round. ``_`` joins the words of a phrase.
"""

import re
from collections.abc import Mapping
from itertools import pairwise

from msgspec import Struct

from memd.text.excerpt import excerpt
from memd.text.words import stemmed_lists, words

_COMMON_FACTOR = 0.6  # of the rarity of the commonest words of the language
_NAME = re.compile(r"(?<=[\w,;:)'\"] )[A-Z][a-z]+\b")
_LONGEST_PHRASE = 4  # words of a phrase in the table


class Query(Struct, frozen=True):
    """An analysed prompt.

    ``factors`` are its distinct words in order, each with the factor of its rarity. ``synonyms``
    are other words for some of them, ``pairs`` neighbouring words, ``names`` words of names, and
    ``words`` all distinct words and synonyms.
    """

    factors: Mapping[str, float]
    synonyms: Mapping[str, tuple[str, ...]]
    pairs: tuple[tuple[str, str], ...]
    names: frozenset[str]
    words: frozenset[str]


def parse(text: str) -> Query:
    """Return an analysed prompt. May read word lists at the first call."""
    text = excerpt(text)
    prompt_words = words(text)
    names = [words(name) for name in _NAME.findall(text)]
    lists = stemmed_lists()
    # By word, in their order. The synonyms of a phrase belong to each of its words.
    other_words: dict[str, dict[str, None]] = {}
    # Each run of up to four words may be a phrase of the table.
    for start in range(len(prompt_words)):
        for length in range(1, min(_LONGEST_PHRASE, len(prompt_words) - start) + 1):
            run = prompt_words[start : start + length]
            phrase = " ".join(run)
            for number in lists.places.get(phrase, ()):
                phrases = [other for other in lists.groups[number] if other != phrase]
                others = dict.fromkeys(" ".join(phrases).split())
                for word in run:
                    other_words.setdefault(word, {}).update(others)
    known = frozenset(prompt_words)
    synonyms = {
        word: tuple(other for other in others if other not in known)
        for word, others in other_words.items()
    }
    return Query(
        factors={word: _COMMON_FACTOR if word in lists.common else 1.0 for word in prompt_words},
        synonyms=synonyms,
        pairs=tuple(dict.fromkeys(pairwise(prompt_words))),
        names=frozenset(name[0] for name in names if name),
        words=known.union(*synonyms.values()),
    )
