"""When two texts say the same, and which of their sentences the other lacks. Pure.

Rules of this file
- Two texts are alike when nearly all runs of three words are the same, or when one text lies
  within the other. Chinese, Japanese and Korean characters count as words.
- Two sentences are the same only when they are equal apart from case, white space, emphasis and
  the full stop. Symbols count: ``C++`` is not ``C#``.
- A contradiction is not a duplicate. Where two sentences resemble each other and each has a
  number, a name or a day that the other lacks, or just one has a "not", the texts are kept apart.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

SHINGLE_WORDS = 3
ALIKE = 0.82  # of the shingles of both; one changed word in forty still passes
WITHIN = 0.82  # of the shingles of the shorter text
WITHIN_SHINGLES = 8  # a shorter text than this lies within others by chance
_RESEMBLING = 0.5  # of the words of two sentences that speak of the same thing
_LABEL_CHARACTERS = 40

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORD = re.compile(rf"[{_CJK}]|(?:(?![{_CJK}])[^\W_])+(?:[.':/_-](?:(?![{_CJK}])[^\W_])+)*")
FENCE = re.compile(r" {0,3}(```|~~~)")
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+")
_HEADING = re.compile(r"#{1,6}[ \t]|[^\n]*[:\uff1a]$")
_ALONE = re.compile(r"[ \t]*(?:#{1,6}[ \t]|\||>)")  # headings, rows and quotes stand alone
# "**Why:** it broke" has a label, "**Never** mock it" has none.
_LABEL = re.compile(rf"\*\*[^*\n]{{1,{_LABEL_CHARACTERS}}}(?:[:\uff1a]\*\*|\*\*[:\uff1a])[ \t]+")
_SENTENCE = re.compile(r"(?<=[.!?])[ \t\r\n]+|(?<=[\u3002\uff01\uff1f])[ \t\r\n]*")
_EMPHASIS = re.compile(r"\*\*|__|`")


@dataclass(frozen=True, slots=True)
class Unit:
    """A paragraph, list item, heading or code block: its bytes and its sentences.

    ``lead`` is what stands before the sentences (a bullet, a bold label).
    """

    raw: str
    lead: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence as it is held against others: its words, and those that name something."""

    words: frozenset[str]
    facts: frozenset[str]


class Text:
    """A text with what is compared of it, each worked out once."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words in order, without regard to case."""
        return words(self.text)

    @cached_property
    def shingles(self) -> frozenset[tuple[str, ...]]:
        """All runs of three words; of a shorter text the one run that it is."""
        found = self.words
        if not found:
            return frozenset()
        last = max(1, len(found) - SHINGLE_WORDS + 1)
        return frozenset(found[start : start + SHINGLE_WORDS] for start in range(last))

    @cached_property
    def units(self) -> tuple[Unit, ...]:
        """The parts of the text."""
        return tuple(_units(self.text))

    @cached_property
    def sentences(self) -> dict[str, str]:
        """The sentences by what they are compared by."""
        return {key(raw): raw for unit in self.units for raw in unit.sentences if key(raw)}


def words(text: str) -> tuple[str, ...]:
    """Return the words of a text, folded; a CJK character is a word."""
    folded = unicodedata.normalize("NFKC", text).casefold().replace("\u2019", "'")
    return tuple(_WORD.findall(folded))


_QUALIFIERS = frozenset(
    words(
        "not no never none nor neither without cannot can't don't doesn't didn't isn't aren't "
        "wasn't won't wouldn't shouldn't mustn't unless except only avoid stop "
        "不 没 沒 無 无 未 别 別 勿 非 莫"
    )
)
_LITTLE = frozenset(
    words("a an the of to in on at for by and is are was with how what when where which why it")
)
_DAYS = frozenset(
    words(
        "monday tuesday wednesday thursday friday saturday sunday january february march april "
        "may june july august september october november december 一 二 三 四 五 六 七 八 九 十"
    )
)


def key(sentence: str) -> str:
    """Return what two sentences have in common exactly when they say the same."""
    if FENCE.match(sentence):
        return sentence  # in code, case and white space mean something
    plain = _EMPHASIS.sub("", unicodedata.normalize("NFKC", sentence)).casefold()
    return " ".join(plain.split()).rstrip(".。 ")


def alike(first: Text, second: Text, shared: int) -> bool:
    """Whether two texts with so many shingles in common are near-duplicates by their shingles."""
    sizes = len(first.shingles), len(second.shingles)
    if shared >= ALIKE * (sum(sizes) - shared):
        return shared > 0
    return min(sizes) >= WITHIN_SHINGLES and shared >= WITHIN * min(sizes)


def contradict(first: Text, second: Text) -> bool:
    """Whether a sentence that only one text has resembles one of the other and denies it.

    A heading that only one has gives what follows it another meaning: that counts as well.
    """
    own = [raw for name, raw in first.sentences.items() if name not in second.sentences]
    other = [raw for name, raw in second.sentences.items() if name not in first.sentences]
    if any(_HEADING.match(raw) for raw in (*own, *other)):
        return True
    others = [claim(raw) for raw in other]
    return any(denies(one, two) for one in map(claim, own) for two in others)


def missing(text: Text, known: Iterable[str]) -> str:
    """Return the units of a text with the sentences that are not among ``known`` keys."""
    present = set(known)
    kept = []
    for unit in text.units:
        fresh = [raw for raw in unit.sentences if key(raw) and key(raw) not in present]
        present.update(key(raw) for raw in fresh)
        whole = len(fresh) == len(unit.sentences)
        if fresh:
            kept.append(unit.raw if whole else unit.lead + " ".join(fresh))
    return "\n\n".join(kept)


def covered(sentence: str, text: Text) -> bool:
    """Whether a text has all words that say something in a sentence: it need not be repeated."""
    return set(words(sentence)) - _LITTLE <= set(text.words)


def claim(sentence: str) -> Claim:
    """Return what a sentence is held against others by."""
    return Claim(frozenset(words(sentence)), frozenset(_facts(sentence)))


def denies(one: Claim, two: Claim) -> bool:
    """Whether two sentences resemble each other, and one says what the other does not allow."""
    left, right = one.words, two.words
    if len(left & right) < _RESEMBLING * len(left | right):
        return False
    if (left & _QUALIFIERS) != (right & _QUALIFIERS):
        return True
    return bool(one.facts - right) and bool(two.facts - left)


def _facts(sentence: str) -> set[str]:
    """Return the words that name something: with a digit, a capital, in code, or a day."""
    named: set[str] = set()
    for place, found in enumerate(re.finditer(r"\S+", sentence)):
        word = found.group()
        capital = place > 0 and any(letter.isupper() for letter in word)
        if capital or "`" in word or any(letter.isdigit() for letter in word):
            named.update(words(word))
    return named | (set(words(sentence)) & _DAYS)


def _units(text: str) -> Iterator[Unit]:
    """Split a text; the units' bytes leave out only blank lines between them."""
    part: list[str] = []
    fence = ""
    for line in text.splitlines():
        mark = FENCE.match(line)
        if fence:
            part.append(line)
            if mark and mark.group(1) == fence:
                yield _code(part)
                part, fence = [], ""
            continue
        if mark or not line.strip() or _ITEM.match(line) or _ALONE.match(line):
            yield from _paragraph(part)
            part = []
        if mark:
            fence = mark.group(1)
        if line.strip():
            part.append(line)
        if _ALONE.match(line) and not mark:
            yield from _paragraph(part)
            part = []
    if fence:
        yield _code(part)
    else:
        yield from _paragraph(part)


def _code(lines: list[str]) -> Unit:
    raw = "\n".join(lines).rstrip()
    return Unit(raw, "", (raw,))


def _paragraph(lines: list[str]) -> Iterator[Unit]:
    raw = "\n".join(lines)
    if not raw:
        return
    lead = "".join(match.group() for match in [_ITEM.match(raw)] if match)
    label = _LABEL.match(raw, len(lead))
    if label:
        lead += label.group()
    sentences = [part.strip() for part in _SENTENCE.split(raw[len(lead) :])]
    yield Unit(raw, lead, tuple(part for part in sentences if part))
