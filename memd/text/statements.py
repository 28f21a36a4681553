"""A text as statements: its sentences, each with what it stands under, ready to be compared. Pure.

Rules of this file
- A statement has a context (a heading, a line with a colon, the list item above, a bold label):
  the same words below another heading are another statement.
- Two statements are equal if they have the same words in the same order. Case, emphasis and
  punctuation do not count, except for a question mark; code does to the letter.
- A detail is a number, date, address, path or piece of code.
"""

import re
from collections.abc import Iterator
from functools import cached_property, lru_cache

from memd.text.blocks import FENCE, blocks
from memd.text.bounds import CJK_DENIALS, DENIAL, LIMITS, MARKED
from memd.text.normal import normal

_LABEL = r"\*\*([^*\n]{1,40})(?:[:\uff1a]\*\*|\*\*[:\uff1a])"
# The parts of each memory: they are no context.
_MEMORY_PARTS = r"(?i)(?:why|how to apply|said)"
_SENTENCE = r"(?<=[.!?])[ \t]+(?=\S)|(?<=[\u3002\uff01\uff1f])\s*(?=\S)"
_EMPHASIS = r"\*\*|__|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)"
_PUNCTUATION = r"[,;:!.\u3002\uff0c\uff1b\uff1a]+(?=\s|$)|(?<=\s)[\u2013\u2014|-](?=\s)"
_LIMIT_WORD = r"\w+(?:'\w+)?"
_EDGES = "()[]{}<>'\"*,;:!?.\u2026\u201c\u201d\u2018\u2019\u3002\uff0c"  # no part of a detail
# A digit, a slash, an at-sign, an underscore, a flag, or a dot within a word.
_DETAIL = r"\d|\w/|/\w|@|\w_|_\w|^--\w|[^\W\d_]{2}\.[^\W\d_]{2}"
_CACHED_TEXTS = 20_000


class Statement:
    """A sentence, list item, row or block of code, with what it stands under."""

    def __init__(self, raw: str, context: str = "", *, step: bool = False) -> None:
        self.raw = raw
        self.context = context
        self.step = step  # of a numbered list: its place counts

    @cached_property
    def key(self) -> str:
        """A text that is equal for two statements exactly if they say the same."""
        if FENCE.match(self.raw):
            return self.raw
        folded = _fold(self.raw)
        return f"{_fold(self.context)}>{folded}" if self.context else folded

    @cached_property
    def limits(self) -> frozenset[str]:
        """What denies, bounds or doubts it, as the values of ``bounds.LIMITS``."""
        return limits(f"{self.context}, {self.raw}" if self.context else self.raw)


def statements(text: str) -> list[Statement]:
    """Return the statements of a text in their order."""
    return list(_statements(text))


def keys(text: str) -> frozenset[str]:
    """Return the keys of the statements of a text, without those that have no word."""
    return frozenset(statement.key for statement in _statements(text)) - {""}


def limits(text: str) -> frozenset[str]:
    """Return what denies, bounds or doubts a text, as the values of ``bounds.LIMITS``."""
    prose = " ".join(_parts_at_backticks(_plain(text))[::2])
    result = set(re.findall(MARKED, prose))
    for word in re.findall(_LIMIT_WORD, prose.casefold()):
        result.add(DENIAL if word.endswith("n't") else LIMITS.get(word, ""))
    if not prose.isascii() and re.search(CJK_DENIALS, prose):
        result.add(DENIAL)
    return frozenset(result - {""})


def details(text: str) -> Iterator[str]:
    """Yield the numbers, dates, addresses, paths and pieces of code of a text."""
    parts = _parts_at_backticks(_plain(text))
    for piece in parts[1::2]:
        yield from (line.strip() for line in piece.splitlines() if line.strip())
    for part in parts[::2]:
        for word in part.split():
            plain = word.strip(_EDGES)
            if re.search(_DETAIL, plain):
                yield plain


def has_detail(text: str, detail: str) -> bool:
    """Return whether a detail stands in a text, and not only as a part of a longer one."""
    pattern = rf"(?<![^\W_]){re.escape(detail)}(?![^\W_])"
    return re.search(pattern, _plain(text)) is not None


def _plain(text: str) -> str:
    """Return a text with the signs of its normal form."""
    return normal(text).replace("\u2019", "'")


def _parts_at_backticks(text: str) -> list[str]:
    """Return the parts of a text in turn: prose at even indices, code in backticks at odd ones.

    A text with a backtick that is never closed is all prose.
    """
    parts = text.split("`")
    return parts if len(parts) % 2 == 1 else [" ".join(parts)]


def _statements(text: str) -> Iterator[Statement]:
    """Yield the statements of a text, with a bold label as context of what follows it."""
    for block in blocks(text):
        if block.whole:
            yield Statement(block.raw, block.context)
            continue
        label_match = re.match(_LABEL, block.raw)
        label = label_match.group(1) if label_match else ""
        if re.match(_MEMORY_PARTS, label):
            label = ""
        for number, sentence in enumerate(re.split(_SENTENCE, block.raw)):
            label_above = label if number > 0 else ""  # the first sentence has the label itself
            context = ", ".join(filter(None, (block.context, label_above)))
            yield Statement(sentence.strip(), context, step=block.step)


@lru_cache(_CACHED_TEXTS)
def _fold(text: str) -> str:
    """Return a text for comparing: in lower case, without punctuation, emphasis and backticks."""
    parts = _parts_at_backticks(_plain(text))
    parts[::2] = [
        re.sub(_PUNCTUATION, " ", re.sub(_EMPHASIS, "", part)).casefold() for part in parts[::2]
    ]
    return " ".join("".join(parts).split())
