"""Whether a statement says again, corrects, or stands beside one that is known. Pure.

Rules of this file
- The words are those that search counts (``text.words``), in their order.
- A restatement has all words of the other, in the same order and with the same denials: the fuller
  one stays. The same words denied, or the same words with a sign of change ("no longer",
  "statt"), correct what was known.
- Of two prohibitions the shorter one forbids more, so neither stands for the other. Nor do two
  statements that differ in a small word in one place ("before", "after").
- In doubt both are kept: one too many is merged later, an overwritten one is gone.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from memd.extract.markers import other
from memd.text.words import words

_CACHED = 3072  # statements, some 4 MB: what 1,500 memories say, and the last conversations
_TOKEN = re.compile(r"\w+")
_SAME = 0.5  # of the words of both, shared: below, the longer one is about more


class Sameness(Enum):
    """What becomes of a statement beside a known one."""

    ADD = "add"
    UPDATE = "update"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class ComparedStatement:
    """A statement as it is compared: its words in order, its denials, whether something changed.

    ``particles`` are the small words that do not count, each with the word that it stands before.
    """

    terms: tuple[str, ...]
    words: frozenset[str]
    particles: frozenset[tuple[str, str]]
    denials: int
    changes: bool


@lru_cache(_CACHED)
def statement(text: str) -> ComparedStatement:
    """Return a text as it is compared; each text is looked at once."""
    plain = text.replace("\u2019", "'")
    denial, change = other("denial"), other("change")
    rest = denial.sub(" ", change.sub(" ", plain))
    terms = tuple(dict.fromkeys(words(rest))) or (plain.strip().lower(),)
    return ComparedStatement(
        terms,
        frozenset(terms),
        frozenset(_particles(rest.casefold())),
        len(denial.findall(plain)),
        change.search(plain) is not None,
    )


def _particles(plain: str) -> Iterator[tuple[str, str]]:
    behind = ""
    for token in reversed(_TOKEN.findall(plain)):
        term = _term(token)
        if not term:
            yield behind, token
        behind = term or behind


@lru_cache(_CACHED)
def _term(token: str) -> str:
    return next(iter(words(token)), "")


def compare(new: ComparedStatement, old: ComparedStatement) -> Sameness:
    """Return what becomes of ``new`` beside the known ``old``."""
    shared = new.words & old.words
    if len(shared) < _SAME * len(new.words | old.words) or not _in_order(new, old, shared):
        return Sameness.ADD
    extra, lost = new.words - shared, old.words - shared
    if extra and lost:
        return Sameness.UPDATE if _exchanges(new, old, lost) else Sameness.ADD
    if extra or lost:
        if new.denials or old.denials:
            return Sameness.ADD
    elif new.denials != old.denials:
        return Sameness.UPDATE
    exchanged = dict(new.particles - old.particles).keys() & dict(old.particles - new.particles)
    if exchanged:
        return Sameness.ADD
    return Sameness.UPDATE if extra else Sameness.NOTHING


def _exchanges(new: ComparedStatement, old: ComparedStatement, lost: frozenset[str]) -> bool:
    """Return whether a new value takes the place of the old one, which stood last.

    "Service 4 now uses Redis" is about another service than "service 3 uses Redis".
    """
    return new.changes and new.denials == old.denials and set(old.terms[-len(lost) :]) == lost


def _in_order(new: ComparedStatement, old: ComparedStatement, shared: frozenset[str]) -> bool:
    """Return whether the shared words follow each other alike, counted as a ring.

    A clause that moved to the front is none the worse; "Ann pays Ben" is not "Ben pays Ann".
    """
    one = [term for term in new.terms if term in shared]
    other = [term for term in old.terms if term in shared]
    if len(one) <= 2:  # noqa: PLR2004 - two terms in a ring have no order
        return one == other
    return one in ([*other[at:], *other[:at]] for at in range(len(other)))
