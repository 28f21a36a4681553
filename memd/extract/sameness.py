"""Decide whether a statement repeats, corrects or adds to a known one. Pure.

Rules of this file
- A statement with all words of the known one and more replaces it.
- The same words negated, or with a sign of change ("no longer", "statt"), correct the known one.
- Of two prohibitions the shorter one forbids more, so neither replaces the other.
- In doubt both stay: a duplicate can be merged later, an overwritten statement is lost.
"""

from enum import Enum
from functools import lru_cache

from memd.extract.markers import other
from memd.text.similarity import contradiction
from memd.text.statements import Statement, is_telling

_CACHED = 1024  # parsed statements, some 3 MB
_SAME = 0.5  # share of common words; with a smaller one the statements are about different things


class Sameness(Enum):
    """What to do with a statement beside a known one: add it, update the known one or nothing."""

    ADD = "add"
    UPDATE = "update"
    NOTHING = "nothing"


def compare(new: str, old: str) -> Sameness:
    """Return what to do with the statement ``new`` beside the known statement ``old``."""
    (one, denials, changes), (two, denied, _) = _parse_statement(new), _parse_statement(old)
    shared = one.words & two.words
    extra, lost = one.words - shared, two.words - shared
    if not shared or len(shared) < _SAME * len(one.words | two.words):
        return Sameness.NOTHING if new == old else Sameness.ADD
    if (extra and lost) or contradiction(one, two):
        # A changed value has to be the last words of the old statement: "service 4 now uses Redis"
        # does not correct "service 3 uses Redis".
        last = [token.form for token in two.tokens if is_telling(token)][-len(lost) :]
        exchanged = changes and denials == denied and set(last) == lost
        return Sameness.UPDATE if exchanged else Sameness.ADD
    if extra or lost:
        if denials or denied or len(shared) <= bool(lost):  # one word alone says too little
            return Sameness.ADD
        return Sameness.UPDATE if extra else Sameness.NOTHING
    return Sameness.NOTHING if denials == denied else Sameness.UPDATE


@lru_cache(_CACHED)
def _parse_statement(text: str) -> tuple[Statement, int, bool]:
    """Return a text's statement without negations and signs of change.

    With it come the number of negations and whether there is a sign of change.
    """
    plain = text.replace("\u2019", "'")
    denial, change = other("denial"), other("change")
    rest = Statement(denial.sub(" ", change.sub(" ", plain)))
    return rest, len(denial.findall(plain)), change.search(plain) is not None
