"""Whether a statement says again, corrects, or stands beside one that is known. Pure.

Rules of this file
- What resembles and what contradicts is found by ``text.similarity``; here it is decided what
  follows. A restatement that has all words of the other and more takes its place.
- The same words denied, or the same words with a sign of change ("no longer", "statt"), correct
  what was known.
- Of two prohibitions the shorter one forbids more, so neither stands for the other.
- In doubt both are kept: one too many is merged later, an overwritten one is gone.
"""

from enum import Enum
from functools import lru_cache

from memd.extract.markers import other
from memd.text.similarity import contradiction
from memd.text.statements import Statement, is_telling

_CACHED = 1024  # statements, some 3 MB: those of the last conversations and of what is like them
_SAME = 0.5  # of the words of both, shared: below, the longer one is about more


class Sameness(Enum):
    """What becomes of a statement beside a known one."""

    ADD = "add"
    UPDATE = "update"
    NOTHING = "nothing"


def compare(new: str, old: str) -> Sameness:
    """Return what becomes of ``new`` beside the known ``old``."""
    (one, denials, changes), (two, denied, _) = _statement(new), _statement(old)
    shared = one.words & two.words
    extra, lost = one.words - shared, two.words - shared
    if not shared or len(shared) < _SAME * len(one.words | two.words):
        return Sameness.NOTHING if new == old else Sameness.ADD
    if (extra and lost) or contradiction(one, two):
        # A new value takes the place of the old one, which stood last: "service 4 now uses Redis"
        # is about another service than "service 3 uses Redis".
        last = [token.form for token in two.tokens if is_telling(token)][-len(lost) :]
        exchanged = changes and denials == denied and set(last) == lost
        return Sameness.UPDATE if exchanged else Sameness.ADD
    if extra or lost:
        if denials or denied or len(shared) <= bool(lost):  # one word alone says too little
            return Sameness.ADD
        return Sameness.UPDATE if extra else Sameness.NOTHING
    return Sameness.NOTHING if denials == denied else Sameness.UPDATE


@lru_cache(_CACHED)
def _statement(text: str) -> tuple[Statement, int, bool]:
    """Return a statement without denials and signs of change, and how many and whether it has."""
    plain = text.replace("\u2019", "'")
    denial, change = other("denial"), other("change")
    rest = Statement(denial.sub(" ", change.sub(" ", plain)))
    return rest, len(denial.findall(plain)), change.search(plain) is not None
