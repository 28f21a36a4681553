"""Other words for what a prompt says: a table of our own, general, of coding, and Chinese.

A line of the table is a group of words that stand for each other; what stands behind ``>`` is
found for the words before it, never the other way round. ``_`` joins the words of a phrase.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from memd.state.words import words

Phrase = tuple[str, ...]
_LONGEST = 4


def synonyms(found: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    """Return other words for the words of a prompt, as ``words`` gives them, by the word.

    The words of a phrase that has another name share it.
    """
    table = _table()
    others: dict[str, dict[str, None]] = {}
    for at in range(len(found)):
        for length in range(1, min(_LONGEST, len(found) - at) + 1):
            phrase = tuple(found[at : at + length])
            for word in phrase if phrase in table else ():
                others.setdefault(word, {}).update(dict.fromkeys(table[phrase]))
    return {
        word: tuple(other for other in more if other not in found) for word, more in others.items()
    }


@cache
def _table() -> Mapping[Phrase, tuple[str, ...]]:
    table: dict[Phrase, dict[str, None]] = {}
    text = files("memd.state").joinpath("english", "synonyms.txt").read_text("utf-8")
    for line in text.splitlines():
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
