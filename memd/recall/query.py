"""Analyse a prompt for the ranker: its words, their synonyms, and names. Pure.

Rules of this file
- Of a long prompt only an excerpt counts (``excerpt``).
- The prompt's own words count in full. A synonym counts less, and not if the prompt has it itself.
- Names are words with a capital letter within a prompt.
- A line of the table of synonyms is a group of words with one meaning. Words behind ``>`` are
  synonyms of those before it, but not the other way round. ``_`` joins the words of a phrase.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import chain, pairwise

from msgspec import Struct

from memd.text.excerpt import excerpt
from memd.text.words import common, list_text, words

_COMMON_FACTOR = 0.6  # of the rarity of the commonest words of the language
_NAME = re.compile(r"(?<=[\w,;:)'\"] )[A-Z][a-z]+\b")
_BETWEEN = "qqq"  # a word that no item of the table has
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

    @property
    def words(self) -> frozenset[str]:
        """The words of the prompt and their synonyms."""
        return frozenset(self.factors).union(*self.synonyms.values())


def parse(text: str) -> Query:
    """Return an analysed prompt. May read word lists at the first call."""
    text = excerpt(text)
    prompt_words = words(text)
    names = [words(name) for name in _NAME.findall(text)]
    commonest = common()
    return Query(
        factors={word: _COMMON_FACTOR if word in commonest else 1.0 for word in prompt_words},
        synonyms=_synonyms(prompt_words),
        pairs=tuple(dict.fromkeys(pairwise(prompt_words))),
        names=frozenset(name[0] for name in names if name),
    )


def _synonyms(prompt_words: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    """Return the synonyms of the words of a prompt, by word.

    The synonyms of a phrase belong to each of its words.
    """
    table = _synonym_table()
    synonyms: dict[str, dict[str, None]] = {}  # by word, in their order
    # Each run of up to four words may be a phrase of the table.
    for start in range(len(prompt_words)):
        longest = min(_LONGEST_PHRASE, len(prompt_words) - start)
        for length in range(1, longest + 1):
            phrase = tuple(prompt_words[start : start + length])
            for line in table.get(phrase, ()):
                others = dict.fromkeys(chain.from_iterable(each for each in line if each != phrase))
                for word in phrase:
                    synonyms.setdefault(word, {}).update(others)
    return {
        word: tuple(other for other in others if other not in prompt_words)
        for word, others in synonyms.items()
    }


@cache
def _synonym_table() -> Mapping[Phrase, list[list[Phrase]]]:
    """Return the lines of the table of synonyms by each phrase that has synonyms on them."""
    lines = [line.split() for line in list_text("synonyms.txt").splitlines()]
    phrase_of = _phrases(dict.fromkeys(chain.from_iterable(lines)))
    table: dict[Phrase, list[list[Phrase]]] = {}
    for line in lines:
        phrases = [phrase_of[item] for item in line]
        end = line.index(">") if ">" in line else len(line)
        for phrase in dict.fromkeys(phrases[:end]):
            table.setdefault(phrase, []).append(phrases)
    return table


def _phrases(items: Iterable[str]) -> dict[str, Phrase]:
    """Return the words of each item of the table, where ``_`` joins them.

    All are analysed at once: the first prompt waits for it, and one by one takes five times longer.
    """
    words_of_items: list[list[str]] = [[]]
    for word in words(f" {_BETWEEN} ".join(items).replace("_", " ")):
        if word == _BETWEEN:
            words_of_items.append([])
        else:
            words_of_items[-1].append(word)
    return dict(zip(items, map(tuple, words_of_items), strict=True))
