"""Whether a statement says again, corrects, or stands beside one that is known. Pure.

Rules of this file
- What each statement has a word for that the other lacks is two things: both are kept.
- A restatement is one whose words lie within the other's, in the same order (a clause moved to the
  front is none the worse); it adds to the known statement or adds nothing.
- A correction needs the same words and a sign of change ("instead", "no longer", "改成"): then a
  number, a day or a denial may differ, and after a strong sign one expression. The same words
  denied are a correction without a sign: both cannot hold.
- A statement that puts something in the place of what a known one is about, and leaves none of
  its words out, corrects it: "use ruff instead of black" beside "use black".
- In doubt two memories are kept: one too many is merged later, an overwritten one is gone.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache, lru_cache
from itertools import islice

from memd.extract import cues
from memd.extract.cues import Language
from memd.text.words import words

NOT_MARKED, NOW, INSTEAD = range(3)  # how clearly a sentence says that something changed

_NEAR = 0.5  # of the words of two statements: below, the longer one is about more
# The longest expression that a correction exchanges, in terms; a Chinese term is a character.
_LONGEST = 2
_LONGEST_ZH = 5
_ANCHOR_ZH = 2  # characters that both sides share
_CACHED = 3072  # statements, some 4 MB: what 1,500 memories say, and the last conversations
_DATE = r"\d{4}-\d\d(?:-\d\d)?|\d{4}-Q\d"
_WEEK_OF = re.compile(r"\((?:week of )?(?=\d{4}-)")
_ARTICLE = re.compile(r"^\W*(?:(?:the|our|an?)\s)?", re.IGNORECASE)
_CLAUSE = re.compile(r"[,;.:\uff0c\u3002\uff1b]")
_CJK = "\u3400-\u4dbf\u4e00-\u9fff"
_TERM = re.compile(rf"{_DATE}|[{_CJK}]|[^\s,;:!?()\"`{_CJK}\uff0c\u3002\uff1a\uff1b\uff01\uff1f]+")
_SYMBOLIC = re.compile(r"[A-Za-z]\w{0,3}[+#]+|[B-HJ-Z]|.*\d.*")
_NAMES = frozenset({"Go", "US", "IT"})  # in lower case they are words that say nothing
_DIGIT = re.compile(r"\d")
_DAY = re.compile(r"(?:mon|tues|wednes|thurs|fri|satur|sun)(?:day|dai)s?|\d{4}-[\dQ-]+")
_DAY_ZH = frozenset("周期拜")
_VALUE = re.compile(
    rf".*\d.*|{_DAY.pattern}|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
    "|[一二三四五六七八九十两日零百千万]"
)


_NOTHING: frozenset[str] = frozenset()  # one for all: thousands of statements are kept


class Sameness(Enum):
    """What becomes of a statement beside a known one."""

    ADD = "add"
    UPDATE = "update"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class ComparedStatement:
    """A statement as it is compared: its terms in order, and those that are denied.

    ``replaced`` are terms that something else is put for; ``subject`` is whether it opens with what
    it is about ("Alice owns …", not "use …").
    """

    terms: tuple[str, ...]
    words: frozenset[str]
    denied: frozenset[str]
    replaced: frozenset[str]
    subject: bool
    language: str


@lru_cache(_CACHED)
def said(text: str) -> ComparedStatement:
    """Return a statement's terms; each text is looked at once."""
    language = cues.of(text)
    plain = _WEEK_OF.sub("(", language.change.sub(_unmarked, text.replace("\u2019", "'")))
    terms: list[str] = []
    denied: set[str] = set()
    start, denies = 0, False
    for end in (*language.negations.finditer(plain), None):
        result = list(_terms(plain[start : end.start() if end else len(plain)], language))
        if denies and result:
            denied.add(result[0])
        terms += result
        denies = (denies and not result) or end is not None
        start = end.end() if end else start
    ordered = tuple(dict.fromkeys(terms))
    first = list(_terms((_ARTICLE.sub("", plain).split() or [""])[0], language))
    subject = language.name == "en" and bool(first)
    return ComparedStatement(
        ordered,
        frozenset(ordered),
        frozenset(denied) or _NOTHING,
        _replaced(plain, language) or _NOTHING,
        subject,
        language.name,
    )


def _replaced(text: str, language: Language) -> frozenset[str]:
    """Return the first terms behind "instead of": what the statement puts something else for."""
    result: set[str] = set()
    for match in language.replaces.finditer(text):
        result.update(islice(_terms(_CLAUSE.split(text[match.end() :])[0], language), _LONGEST))
    return frozenset(result)


def marked(text: str) -> int:
    """Return how clearly a person's sentence says that something is not as it was."""
    result = [match.lastgroup for match in cues.of(text).change.finditer(text)]
    if "strong" in result:
        return INSTEAD
    return NOW if result else NOT_MARKED


def compare(new: ComparedStatement, old: ComparedStatement, change: int = NOT_MARKED) -> Sameness:
    """Return what becomes of ``new`` beside the known ``old``; ``change`` is from ``marked``."""
    shared = new.words & old.words
    extra, lost = new.words - shared, old.words - shared
    if not shared:
        return Sameness.NOTHING if new.terms == old.terms else Sameness.ADD
    replaces = bool(new.replaced & old.words - old.denied - old.replaced and not lost and extra)
    if replaces or not _same_order(new, old, shared):
        return Sameness.UPDATE if replaces else Sameness.ADD
    near = len(shared) >= _NEAR * len(new.words | old.words)
    if new.denied & shared != old.denied & shared:
        corrects = not (extra or lost) or (change == INSTEAD and near and not extra)
        return Sameness.UPDATE if corrects else Sameness.ADD
    if extra and lost:
        return Sameness.UPDATE if _exchanged(new, old, shared, change) else Sameness.ADD
    if not near:
        return Sameness.ADD
    return Sameness.UPDATE if extra else Sameness.NOTHING


def _exchanged(
    new: ComparedStatement, old: ComparedStatement, shared: frozenset[str], change: int
) -> bool:
    """Return whether one expression took another's place in an otherwise equal statement."""
    if change == NOT_MARKED:
        return False
    sides = [_Swap(side, shared) for side in (new, old)]
    if all(side.values for side in sides):
        return all(side.last or side.days for side in sides)
    if change == NOW or any(side.numbered for side in sides):
        return False
    return all(side.small and not side.opens for side in sides)


class _Swap:
    """What of a statement stands where another has something else."""

    def __init__(self, side: ComparedStatement, shared: frozenset[str]) -> None:
        places = [place for place, term in enumerate(side.terms) if term not in shared]
        terms = [side.terms[place] for place in places]
        before = [side.terms[place - 1] if place else "" for place in places]
        self.values = all(_VALUE.fullmatch(term) for term in terms)
        self.numbered = any(_DIGIT.search(term) for term in terms)
        # "Service 3 …" beside "service 4 …" is another service; a value comes last, a day anywhere.
        self.last = places[-1] == len(side.terms) - 1
        self.days = all(
            _DAY.fullmatch(term) or one in _DAY_ZH for term, one in zip(terms, before, strict=True)
        )
        self.opens = side.subject and places[0] == 0
        zh = side.language == "zh"
        most = _LONGEST_ZH * (len(shared) >= _ANCHOR_ZH) if zh else min(len(shared), _LONGEST)
        self.small = places[-1] - places[0] == len(places) - 1 and len(places) <= most


def _same_order(new: ComparedStatement, old: ComparedStatement, shared: frozenset[str]) -> bool:
    one = [term for term in new.terms if term in shared]
    other = [term for term in old.terms if term in shared]
    if one == other or len(one) <= 2:  # noqa: PLR2004 - two terms in a ring have no order
        return one == other
    return one in ([*other[at:], *other[:at]] for at in range(len(other)))


def _terms(text: str, language: Language) -> Iterator[str]:
    """Yield the words that say what a stretch is about, without inflection."""
    if language.name == "zh":
        for filler in _fillers(language.name):
            text = text.replace(filler, " ")
    for place, piece in enumerate(_TERM.findall(text)):
        bare = piece.strip("'*_.")
        lowered = bare.lower()
        if bare in _NAMES:
            yield f"={bare}"
        elif _symbol(bare, place) or lowered in language.statement:
            yield lowered
        elif bare and lowered not in language.stop and lowered not in language.light:
            yield from words(lowered) or (lowered,)


def _symbol(bare: str, place: int) -> bool:
    """Return whether a piece is no English word, so that it counts as it stands."""
    return bool(_SYMBOLIC.fullmatch(bare)) or (bare == "A" and place > 0) or not bare.isascii()


@cache
def _fillers(name: str) -> tuple[str, ...]:
    result = cues.language(name).stop | cues.language(name).light
    return tuple(sorted(result, key=lambda word: (-len(word), word)))


def _unmarked(match: re.Match[str]) -> str:
    """Return what is left of a sign of change: its denial."""
    return {"no longer": " not ", "不再": " 不 "}.get(match.group().lower(), " ")
