"""Whether a statement says again, corrects, or stands beside one that is known. Pure.

Rules of this file
- The words are those that search counts (``text.words``), in their order.
- A restatement has all words of the other, in the same order and with the same denials: the fuller
  one stays. The same words denied, or the same words with a sign of change ("no longer",
  "statt"), correct what was known.
- In doubt both are kept: one too many is merged later, an overwritten one is gone.
"""

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from memd.extract.markers import other
from memd.text.words import words

_CACHED = 3072  # statements, some 4 MB: what 1,500 memories say, and the last conversations
_SAME = 0.5  # of the words of both, shared: below, the longer one is about more


class Sameness(Enum):
    """What becomes of a statement beside a known one."""

    ADD = "add"
    UPDATE = "update"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class ComparedStatement:
    """A statement as it is compared: its words in order, its denials, whether something changed."""

    terms: tuple[str, ...]
    words: frozenset[str]
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
        terms, frozenset(terms), len(denial.findall(plain)), change.search(plain) is not None
    )


def compare(new: ComparedStatement, old: ComparedStatement) -> Sameness:
    """Return what becomes of ``new`` beside the known ``old``."""
    shared = new.words & old.words
    if len(shared) < _SAME * len(new.words | old.words) or not _in_order(new, old, shared):
        return Sameness.ADD
    extra, lost = new.words - shared, old.words - shared
    if extra and lost:
        return Sameness.UPDATE if _exchanges(new, old, lost) else Sameness.ADD
    if new.denials % 2 != old.denials % 2:
        return Sameness.UPDATE if not extra and not lost else Sameness.ADD
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
