"""A prompt, analysed once: its words, what may stand for them, names and dates. Pure.

Rules of this file
- What a prompt says itself counts in full; a synonym, or a word of the same family, counts less
  and never beside the word that it stands for.
- Names are words with a capital letter that do not open the prompt: whom it is about.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise

from memd.state import dates
from memd.state.stance import Stance, stance
from memd.state.synonyms import synonyms
from memd.state.words import ROOT, is_common, root, words

_COMMON = 0.6  # weight of the commonest words of the language
_SYNONYM = 0.45
_FAMILY = 0.3
_NAME = re.compile(r"(?<=[\w,;:)'\"] )[A-Z][a-z]+\b")


@dataclass(frozen=True, slots=True)
class Asked:
    """A prompt as scoring uses it.

    ``factors`` holds its distinct words in their order and what each counts beside its rarity;
    ``others`` what may stand for a word, and the share that it then counts; ``pairs`` neighbouring
    words; ``names`` whom or what it names; ``dates`` the dates it means, as neighbouring words;
    ``stance`` what it is after.
    """

    factors: Mapping[str, float]
    others: Mapping[str, Mapping[str, float]]
    pairs: tuple[tuple[str, str], ...]
    names: tuple[str, ...]
    dates: tuple[tuple[str, ...], ...]
    stance: Stance


def ask(query: str, today: date | None = None) -> Asked:
    """Return a prompt as scoring uses it; without ``today`` "last May" is only a month."""
    found = words(query)
    return Asked(
        factors={word: _COMMON if is_common(word) else 1.0 for word in found},
        others=_others(found),
        pairs=tuple(dict.fromkeys(pairwise(found))),
        names=tuple(dict.fromkeys(_first(_NAME.findall(query)))),
        dates=tuple(tuple(words(" ".join(mention))) for mention in dates.mentioned(query, today)),
        stance=stance(query),
    )


def _others(found: Sequence[str]) -> dict[str, dict[str, float]]:
    others: dict[str, dict[str, float]] = {}
    for word in dict.fromkeys(found):
        short = root(word)
        family = {ROOT + short: _FAMILY}
        if short != word:
            family[short] = _FAMILY
        others[word] = family
    for word, more in synonyms(found).items():
        others[word] |= dict.fromkeys(more, _SYNONYM)
    return others


def _first(names: Iterable[str]) -> Iterable[str]:
    for name in names:
        yield from words(name)[:1]
