"""Whether a statement says again, corrects, or stands beside one that is known. Pure.

Rules of this file
- The words are those that search counts (``text.words``), in their order.
- A restatement has all words of the other, in the same order and with the same denials: the fuller
  one stays. The same words denied, or the same words with a sign of change ("no longer",
  "statt"), correct what was known.
- In doubt both are kept: one too many is merged later, an overwritten one is gone.
"""

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from memd.text.words import words

_CACHED = 3072  # statements, some 4 MB: what 1,500 memories say, and the last conversations
_SAME = 0.5  # of the words of both, shared: below, the longer one is about more
# "Not" and "no longer" in ten languages; what is denied is compared apart from what is said.
_DENIAL = re.compile(
    r"\b(?:not|no|never|without|don'?t|doesn'?t|isn'?t|aren'?t|won'?t|can'?t|shouldn'?t|stop|avoid"
    r"|nicht|kein\w*|nie|ohne|nunca|sin|ne|pas|jamais|sans|não|sem|non|mai|senza|не|нет|без|никогда)\b"
    r"|不|别|没|无|禁止|ない|ません|やめ|안 |않|없|말고|마세요",
    re.IGNORECASE,
)
_CHANGE = re.compile(
    r"\b(?:now|no longer|not anymore|any ?more|instead|rather than|moved|changed|switch\w*|new"
    r"|actually|correction|statt|anstatt|jetzt|nicht mehr|ahora|ya no|en vez|en lugar|maintenant|ne \w+ plus"
    r"|au lieu|agora|não \w+ mais|em vez|ora|non \w+ più|invece|теперь|больше не|вместо)\b"
    r"|现在|不再|改|换成|而不是|代わり|変更|もう|이제|더 이상|대신|바꿨",
    re.IGNORECASE,
)


class Sameness(Enum):
    """What becomes of a statement beside a known one."""

    ADD = "add"
    UPDATE = "update"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class ComparedStatement:
    """A statement as it is compared: its words in order, how often it denies, whether it changes."""

    terms: tuple[str, ...]
    words: frozenset[str]
    denials: int
    changes: bool


@lru_cache(_CACHED)
def statement(text: str) -> ComparedStatement:
    """Return a text as it is compared; each text is looked at once."""
    changed = _CHANGE.search(text) is not None
    plain = _CHANGE.sub(" ", text.replace("\u2019", "'"))
    terms = tuple(dict.fromkeys(words(_DENIAL.sub(" ", plain)))) or (plain.strip().lower(),)
    return ComparedStatement(terms, frozenset(terms), len(_DENIAL.findall(plain)), changed)


def compare(new: ComparedStatement, old: ComparedStatement) -> Sameness:
    """Return what becomes of ``new`` beside the known ``old``."""
    shared = new.words & old.words
    if len(shared) < _SAME * len(new.words | old.words) or not _in_order(new, old, shared):
        return Sameness.ADD
    extra, lost = new.words - shared, old.words - shared
    if extra and lost:
        return Sameness.UPDATE if new.changes and len(extra) <= len(shared) else Sameness.ADD
    if new.denials % 2 != old.denials % 2:
        return Sameness.UPDATE if not extra and not lost else Sameness.ADD
    return Sameness.UPDATE if extra else Sameness.NOTHING


def _in_order(new: ComparedStatement, old: ComparedStatement, shared: frozenset[str]) -> bool:
    """Return whether the shared words follow each other alike, counted as a ring.

    A clause that moved to the front is none the worse; "Ann pays Ben" is not "Ben pays Ann".
    """
    one = [term for term in new.terms if term in shared]
    other = [term for term in old.terms if term in shared]
    if len(one) <= 2:  # noqa: PLR2004 - two terms in a ring have no order
        return one == other
    return one in ([*other[at:], *other[:at]] for at in range(len(other)))
