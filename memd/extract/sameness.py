"""Decide whether a statement repeats, corrects or adds to a known one. Pure.

Rules of this file
- A statement with all words of the known one and more replaces it.
- The same words negated, or with a sign of change ("no longer", "statt"), correct the known one.
- Of two prohibitions the shorter one forbids more, so neither replaces the other.
- In doubt both stay: a duplicate can be merged later, an overwritten statement is lost.
"""

from enum import Enum
from functools import lru_cache

from memd.extract.markers import other_list
from memd.text.similarity import contradiction
from memd.text.statements import Statement, is_telling

_CACHED = 1024  # parsed statements, some 3 MB
_SHARED_WORDS = 0.5  # with a smaller share the statements are about different things


class Sameness(Enum):
    """What to do with a statement beside a known one: add it, update the known one or nothing."""

    ADD = "add"
    UPDATE = "update"
    NOTHING = "nothing"


def compare(new: str, old: str) -> Sameness:
    """Return what to do with the statement ``new`` beside the known statement ``old``."""
    new_statement, new_denials, has_change_sign = _parse_statement(new)
    old_statement, old_denials, _ = _parse_statement(old)
    shared = new_statement.words & old_statement.words
    extra, lost = new_statement.words - shared, old_statement.words - shared
    all_words = new_statement.words | old_statement.words
    if not shared or len(shared) < _SHARED_WORDS * len(all_words):
        return Sameness.NOTHING if new == old else Sameness.ADD
    if (extra and lost) or contradiction(new_statement, old_statement):
        # A changed value has to be the last words of the old statement: "service 4 now uses Redis"
        # does not correct "service 3 uses Redis".
        old_words = [token.form for token in old_statement.tokens if is_telling(token)]
        lost_are_last = set(old_words[-len(lost) :]) == lost
        is_correction = has_change_sign and new_denials == old_denials and lost_are_last
        return Sameness.UPDATE if is_correction else Sameness.ADD
    if extra or lost:
        too_little = lost and len(shared) <= 1  # the new statement is one word
        if new_denials or old_denials or too_little:
            return Sameness.ADD
        return Sameness.UPDATE if extra else Sameness.NOTHING
    return Sameness.NOTHING if new_denials == old_denials else Sameness.UPDATE


@lru_cache(_CACHED)
def _parse_statement(text: str) -> tuple[Statement, int, bool]:
    """Return a text's statement without negations and signs of change.

    With it come the number of negations and whether there is a sign of change.
    """
    plain = text.replace("\u2019", "'")
    denial, change = other_list("denial"), other_list("change")
    rest = Statement(denial.sub(" ", change.sub(" ", plain)))
    return rest, len(denial.findall(plain)), change.search(plain) is not None
