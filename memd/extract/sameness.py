"""Decide whether a statement repeats, corrects or adds to a known one. Pure.

Rules of this file
- A statement with all words of the known one and more replaces it.
- The same words negated, or with a sign of change ("no longer", "statt"), correct the known one. So
  do the same words if other ones of them are negated ("always A, never B" and "never A, always B"),
  or if two exchange their places around a negation, a preference or "instead of". Other words that
  exchange their places make another statement.
- Of two prohibitions the shorter one forbids more, so neither replaces the other.
- In doubt both stay: a duplicate can be merged later, an overwritten statement is lost.
"""

import re
from collections import Counter
from enum import Enum
from functools import lru_cache

from memd.extract.markers import has_any, other_list
from memd.text.similarity import contradiction
from memd.text.statements import Statement, is_telling

_CACHED = 1024  # parsed statements, some 3 MB
_SHARED_WORDS = 0.5  # with a smaller share the statements are about different things
_CLAUSE_END = re.compile(  # up to which a negation reaches
    r"[,;:.!?](?=\s|$)|[\uff0c\uff1b\uff1a\u3001\u3002]|\s[\u2013\u2014-]\s"
    r"|\b(?:but|sondern|aber|sino|pero|mais|mas|ma|но)\b",
    re.IGNORECASE,
)
_JOINING = frozenset({"and", "or", "und", "oder", "y", "et", "ou", "и", "или"})  # equal sides
_PREFER = "prefer"  # an order has this word without the marker: "prefer A over B"
_PREFERENCE = frozenset({"preference"})


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
    if not extra and not lost and (reversal := _reversal(new, old)):
        return reversal
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


def _reversal(new: str, old: str) -> Sameness | None:
    """Return what to do with a statement that turns round one in the same words, else ``None``."""
    if _negates_others(new, old):
        return Sameness.UPDATE
    between = _between_exchanged(new, old)
    if _JOINING.issuperset(between):
        return None
    statement, _, has_change_sign = _parse_statement(new)
    is_choice = has_change_sign or _PREFER in statement.words or has_any(new, _PREFERENCE)
    is_denied = other_list("denial").search(" ".join(between)) is not None
    return Sameness.UPDATE if is_choice or is_denied else Sameness.ADD


def _negates_others(new: str, old: str) -> bool:
    """Return whether of two statements in the same words each negates a word more than the other.

    Then it is the opposite; where only one negates more, a comma may be all that differs.
    """
    new_negations, old_negations = _negations_by_word(new), _negations_by_word(old)
    forms = new_negations.keys() | old_negations.keys()
    changes = [new_negations[form] - old_negations[form] for form in forms]
    return min(changes, default=0) < 0 < max(changes, default=0)


def _negations_by_word(text: str) -> Counter[str]:
    """Return for each telling word of a text how many negations stand in its clauses."""
    denial, result = other_list("denial"), Counter[str]()
    for clause in _CLAUSE_END.split(text.replace("\u2019", "'")):
        negations = len(denial.findall(clause))
        for token in Statement(denial.sub(" ", clause)).tokens:
            if is_telling(token):
                result[token.form] += negations
    return result


def _between_exchanged(new: str, old: str) -> tuple[str, ...]:
    """Return the words between two that have exchanged their places, if nothing else differs."""
    new_words = [token.form for token in Statement(new).tokens]
    old_words = [token.form for token in Statement(old).tokens]
    if len(new_words) != len(old_words):
        return ()
    pairs = enumerate(zip(new_words, old_words, strict=True))
    places = [place for place, (one, other) in pairs if one != other]
    if len(places) != 2 or new_words[places[0]] != old_words[places[1]]:  # noqa: PLR2004 - a pair
        return ()
    return tuple(new_words[places[0] + 1 : places[1]])


@lru_cache(_CACHED)
def _parse_statement(text: str) -> tuple[Statement, int, bool]:
    """Return a text's statement without negations and signs of change.

    With it come the number of negations and whether there is a sign of change.
    """
    plain = text.replace("\u2019", "'")
    denial, change = other_list("denial"), other_list("change")
    rest = Statement(denial.sub(" ", change.sub(" ", plain)))
    return rest, len(denial.findall(plain)), change.search(plain) is not None
