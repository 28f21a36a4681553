"""When two texts say the same, and which of their sentences the other lacks. Pure.

Rules of this file
- Two texts are alike when nearly all runs of three words are the same, when one text lies within
  the other, or when they have nearly all sentences in common, in whatever order. Chinese, Japanese
  and Korean characters count as words.
- Two sentences are the same only when they are equal apart from case, white space, emphasis, the
  full stop and the marks between clauses. Symbols count: ``C++`` is not ``C#``. In code case
  counts too. A sentence under a bold label says it of that label; "Why" and "How to apply" are
  parts of every memory and no such labels.
- A contradiction is not a duplicate. Where two sentences resemble each other and each has a word
  that says something and that the other lacks, or just one has a "not", the texts are kept apart:
  such a word may be a synonym or the opposite, and nothing here understands which.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from memd.core.yielding import yield_to_requests
from memd.dream.wording import AT_ONCE, QUALIFIERS, short, words
from memd.text.normal import normal

SHINGLE_WORDS = 3
ALIKE = 0.82  # of the shingles of both; one changed word in forty still passes
WITHIN = 0.82  # of the shingles of the shorter text
WITHIN_SHINGLES = 8  # a shorter text than this lies within others by chance
_RESEMBLING = 0.5  # of the words of two sentences that speak of the same thing
_SPEAKING_OF = 0.3  # of their words that say something: enough to keep two texts apart
_LABEL_CHARACTERS = 40

FENCE = re.compile(r" {0,3}(```|~~~)")
ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+")
_HEADING = re.compile(r"#{1,6}[ \t]|[^\n]*[:\uff1a]$")
_ALONE = re.compile(r"[ \t]*(?:#{1,6}[ \t]|\||>)")  # headings, rows and quotes stand alone
# "**Why:** it broke" has a label, "**Never** mock it" has none.
_LABEL = re.compile(rf"\*\*[^*\n]{{1,{_LABEL_CHARACTERS}}}(?:[:\uff1a]\*\*|\*\*[:\uff1a])[ \t]+")
_SENTENCE = re.compile(r"(?<=[.!?])[ \t\r\n]+|(?<=[\u3002\uff01\uff1f])[ \t\r\n]*")
_PARTS = re.compile(r"\W*(?:why|how to apply)\W*", re.IGNORECASE)  # of every memory
_EMPHASIS = re.compile(
    r"\*\*|__|(?<![\w*])\*(?=[^\s*])[^*\n]*[^\s*]\*(?![\w*])|(?<!\w)_(?=[^\s_])[^_\n]*[^\s_]_(?!\w)"
)
_BETWEEN = re.compile(r"[,;:!]+(?=\s|$)|(?<=\s)[\u2013\u2014](?=\s)")  # marks between clauses


@dataclass(frozen=True, slots=True)
class Unit:
    """A paragraph, list item, heading or code block: its bytes and its sentences.

    ``lead`` is what stands before the sentences (a bullet, a bold label). ``keys`` are what the
    sentences are compared by, each with the label that it stands under.
    """

    raw: str
    lead: str
    sentences: tuple[str, ...]
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence as it is held against others: its words, and those that name something."""

    words: frozenset[str]
    facts: frozenset[str]


class Prose:
    """A text with what is compared of it, each worked out once."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words in order, without regard to case."""
        return words(self.text)

    @cached_property
    def shingles(self) -> frozenset[int]:
        """All runs of three words, as numbers; of a shorter text the one run that it is."""
        result = self.words
        if not result:
            return frozenset()
        last = max(1, len(result) - SHINGLE_WORDS + 1)
        runs: set[int] = set()
        for first in range(0, last, AT_ONCE):
            yield_to_requests()
            starts = range(first, min(first + AT_ONCE, last))
            runs.update(run(result[start : start + SHINGLE_WORDS]) for start in starts)
        return frozenset(runs)

    @cached_property
    def units(self) -> tuple[Unit, ...]:
        """The parts of the text."""
        return tuple(_units(self.text))

    @cached_property
    def sentences(self) -> dict[str, str]:
        """The sentences by what they are compared by."""
        return {
            name: raw
            for unit in self.units
            for name, raw in zip(unit.keys, unit.sentences, strict=True)
            if name
        }

    @cached_property
    def weights(self) -> dict[str, int]:
        """How many words each sentence has, by what it is compared by."""
        result = {}
        for name, raw in self.sentences.items():
            yield_to_requests()
            result[name] = len(words(raw))
        return result


def run(of: tuple[str, ...]) -> int:
    """Return the number of a run of words, the same within one process."""
    return hash(of)


_EMPTY = frozenset(
    words("the of to in on at for by and is are was with how what when where which why it")
)
_ONE = frozenset(("a", "an", "one"))
_DAYS = frozenset(
    words(
        "monday tuesday wednesday thursday friday saturday sunday january february march april "
        "may june july august september october november december 一 二 三 四 五 六 七 八 九 十"
    )
)


def fenced(text: str) -> list[str]:
    """Return the parts of a text in turn: the odd ones are code blocks, all others are prose."""
    parts: list[str] = [""]
    fence = ""
    for line in text.splitlines(keepends=True):
        mark = FENCE.match(line)
        if mark and not fence:
            fence = mark.group(1)
            parts += [line, ""]
        elif fence:
            parts[-2] += line
            fence = "" if mark and mark.group(1) == fence else fence
        else:
            parts[-1] += line
    return parts


def key(sentence: str) -> str:
    """Return what two sentences have in common exactly when they say the same."""
    if FENCE.match(sentence):
        return sentence  # in code, case and white space mean something
    parts = normal(sentence).split("`")
    if len(parts) % 2 == 0:  # a mark without its twin
        parts = ["".join(parts)]
    parts[::2] = [_EMPHASIS.sub(_bare, part).casefold() for part in parts[::2]]
    return " ".join(_BETWEEN.sub(" ", "".join(parts)).split()).rstrip(".。 ")


def alike(first: Prose, second: Prose, shared: int) -> bool:
    """Whether two texts with so many shingles in common are near-duplicates."""
    sizes = len(first.shingles), len(second.shingles)
    if shared >= ALIKE * (sum(sizes) - shared):
        return shared > 0
    if shared and _restated(first, second):
        return True
    return min(sizes) >= WITHIN_SHINGLES and shared >= WITHIN * min(sizes)


def contradict(first: Prose, second: Prose) -> bool:
    """Whether a sentence that only one text has resembles one of the other and denies it.

    A heading that only one has gives what follows it another meaning: that counts as well.
    """
    own = [raw for name, raw in first.sentences.items() if name not in second.sentences]
    other = [raw for name, raw in second.sentences.items() if name not in first.sentences]
    if any(_HEADING.match(raw) for raw in (*own, *other)):
        return True
    others = [claim(raw) for raw in other]
    for one in map(claim, own):
        yield_to_requests()
        if any(denies(one, two) or _swapped(one, two) for two in others):
            return True
    return False


def missing(text: Prose, known: Iterable[str]) -> str:
    """Return the units of a text with the sentences that are not among ``known`` keys."""
    present = set(known)
    retained = []
    for unit in text.units:
        fresh = []
        for name, raw in zip(unit.keys, unit.sentences, strict=True):
            if name and name not in present:
                fresh.append(raw)
                present.add(name)
        if fresh:
            whole = len(fresh) == len(unit.sentences)
            retained.append(unit.raw if whole else unit.lead + " ".join(fresh))
    return "\n\n".join(retained)


def claim(sentence: str) -> Claim:
    """Return what a sentence is held against others by."""
    return Claim(frozenset(words(sentence)), frozenset(_facts(sentence)))


def denies(one: Claim, two: Claim) -> bool:
    """Whether two sentences resemble each other, and one says what the other does not allow."""
    left, right = one.words, two.words
    if len(left & right) < _RESEMBLING * len(left | right):
        return False
    if (left & QUALIFIERS) != (right & QUALIFIERS):
        return True
    return bool(one.facts - right) and bool(two.facts - left)


def _restated(first: Prose, second: Prose) -> bool:
    """Whether nearly all that the shorter text says, the other says in the same sentences."""
    shorter, longer = sorted((first.weights, second.weights), key=lambda w: sum(w.values()))
    size = sum(shorter.values())
    same = sum(weight for name, weight in shorter.items() if name in longer)
    if shorter.keys() == longer.keys():
        return bool(size)
    return size >= WITHIN_SHINGLES + SHINGLE_WORDS - 1 and same >= WITHIN * size


def _swapped(one: Claim, two: Claim) -> bool:
    """Whether two sentences speak of the same thing and each has a word that the other lacks."""
    left, right = (_stems(side.words - _EMPTY) for side in (one, two))
    if len(left & right) <= _SPEAKING_OF * len(left | right):
        return False
    return bool(left - right) and bool(right - left)


def _stems(result: Iterable[str]) -> set[str]:
    """Return words in their short form; "an hour" is one."""
    return {"one" if word in _ONE else short(word) for word in result}


def _bare(match: re.Match[str]) -> str:
    return match.group().strip("*_")


def _facts(sentence: str) -> set[str]:
    """Return the words that name something: with a digit, a capital, in code, or a day."""
    named: set[str] = set()
    for place, result in enumerate(re.finditer(r"\S+", sentence)):
        word = result.group()
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
        yield_to_requests()
        if mark or not line.strip() or ITEM.match(line) or _ALONE.match(line):
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
    return Unit(raw, "", (raw,), (raw,))


def _paragraph(lines: list[str]) -> Iterator[Unit]:
    raw = "\n".join(lines)
    if not raw:
        return
    lead = "".join(match.group() for match in [ITEM.match(raw)] if match)
    label = _LABEL.match(raw, len(lead))
    said = ""
    if label:
        lead += label.group()
        said = "" if _PARTS.fullmatch(label.group()) else key(label.group()) + ": "
    sentences = [part.strip() for part in _SENTENCE.split(raw[len(lead) :])]
    sentences = [part for part in sentences if part]
    keys = tuple(said + name if name else "" for name in map(key, sentences))
    yield Unit(raw, lead, tuple(sentences), keys)
