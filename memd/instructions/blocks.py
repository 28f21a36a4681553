"""Find the parts of a Markdown text that can include files, and remove its comments. Pure.

What counts is what Claude Code 2.1.329 takes for code, HTML, comments and lists
(docs/decisions.md). Fenced and indented code, blocks of HTML and definitions of links hold nothing.

Rules of this file
- Lines are taken in once for each quotation or list around them, of which ``_DEPTH`` count; so the
  work grows with the text (tests/instructions/test_includes.py::test_work_is_linear).
"""

import re
from collections.abc import Callable, Iterator
from enum import Enum

from msgspec import Struct

_DEPTH = 6  # what is quoted or listed deeper is a paragraph of the deepest
_START, _END = "<!--", "-->"
_TAGS = (
    "address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details"
    "|dialog|dir|div|dl|dt|fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head"
    "|header|hr|html|iframe|legend|li|link|main|menu|menuitem|meta|nav|noframes|ol|optgroup|option"
    "|p|param|search|section|summary|table|tbody|td|tfoot|th|thead|title|tr|track|ul"
)
_OPENING = re.compile(
    rf"""
      (?P<blank>[ \t]*+$)
    | (?P<code>[ ]{{4}}|[ ]{{0,3}}\t)
    | [ ]{{0,3}}+(?:
        (?P<fence>`{{3,}}+(?=[^`]*+$)|~{{3,}}+)
      | (?P<comment>{_START})
      | (?P<raw><(?:script|pre|style|textarea)(?:[\s>]|$)|<\?|<![A-Za-z]|<!\[CDATA\[)
      | (?P<html></?(?:{_TAGS})(?:[\s>]|/>|$))
      | (?P<tag></?[A-Za-z][A-Za-z0-9-]*+(?:\s[^<>]*+)?/?>[ \t]*+$)
      | (?P<heading>\#{{1,6}}+(?:[ \t]|$))
      | (?P<quote>>[ ]?)
      | (?P<rule>(?:(?:\*[ \t]*+){{3,}}+|(?:-[ \t]*+){{3,}}+|(?:_[ \t]*+){{3,}}+)$)
      | (?P<item>(?:[-*+]|(?P<number>\d{{1,9}})[.)])(?:[ \t]+|$))
      | (?P<definition>\[[^\]]++\]:)
    )""",
    re.VERBOSE | re.IGNORECASE,
)
_CLOSING = re.compile(r" {0,3}(`{3,}+|~{3,}+)[ \t]*+$")
# What ends a block of raw HTML, by how it begins.
_RAW_ENDS = {"<?": "?>", "<!": ">", "<![cdata[": "]]>"}
_RAW_TAG = re.compile(r"</(?:script|pre|style|textarea)>", re.IGNORECASE)
# A paragraph goes on with these, although they begin a block elsewhere.
_CONTINUING = frozenset({"", "code", "tag", "definition"})


class Leaf(Enum):
    """How the text of a block is read: with or without code spans hiding something, or both."""

    INLINE = "inline"
    LISTED = "listed"
    RAW = "raw"


class MarkdownBlocks(Struct, frozen=True):
    """The texts that can include files, in order, and the whole text without comments."""

    leaves: tuple[tuple[Leaf, str], ...]
    text: str


def blocks(text: str) -> MarkdownBlocks:
    """Return what of a text can include files, and what a model gets of it."""
    lines = text.split("\n")
    plain = [line.rstrip("\r") for line in lines] if "\r" in text else lines
    reading = _Reading()
    reading.read(plain, 0, Leaf.INLINE)
    return MarkdownBlocks(tuple(reading.leaves), "\n".join(reading.without(lines)))


class _Reading:
    """One reading of a text, line by line."""

    def __init__(self) -> None:
        self.leaves: list[tuple[Leaf, str]] = []
        self._comments: list[tuple[int, int, str]] = []  # first line, line behind, what is left

    def without(self, lines: list[str]) -> Iterator[str]:
        """Yield the lines without the comments that were found."""
        at = 0
        for first, behind, left in self._comments:
            yield from lines[at:first]
            if left.strip():
                yield left
            at = behind
        yield from lines[at:]

    def read(self, lines: list[str], depth: int, leaf: Leaf) -> None:
        """Take in the blocks of some lines; ``leaf`` is how their paragraphs are read."""
        at = 0
        while at < len(lines):
            kind = _kind(lines[at])
            if kind == "comment":
                at = self._comment(lines, at, depth)
            elif kind in _BEHIND:
                at = _BEHIND[kind](lines, at)
            elif kind in _INNER and depth < _DEPTH:
                at, inner = _INNER[kind](lines, at)
                self.read(inner, depth + 1, Leaf.LISTED if kind == "item" else Leaf.INLINE)
            else:
                first = at
                at = at + 1 if kind == "heading" else _index_after(lines, at + 1, _continues)
                how = Leaf.INLINE if kind == "heading" else leaf
                self.leaves.append((how, "\n".join(lines[first:at])))

    def _comment(self, lines: list[str], at: int, depth: int) -> int:
        """Take in a comment that begins a line, with all others to the end of its last line."""
        first, left = at, lines[at].partition(_START)[2]
        while _END not in left:
            at += 1
            if at == len(lines):
                return at  # without an end it goes to the end, and stays
            left = lines[at]
        left = _without_comments(left.partition(_END)[2])
        if not depth:
            self._comments.append((first, at + 1, left))
        self.leaves.append((Leaf.RAW, left))
        return at + 1


def _kind(line: str) -> str:
    """Return what kind of block a line begins, "" for a paragraph."""
    if line[:1].isalpha():  # most lines, and this is quick
        return ""
    opening = _OPENING.match(line)
    return (opening.lastgroup or "") if opening else ""


def _continues(line: str) -> bool:
    """Return whether a paragraph goes on with a line."""
    opening = None if line[:1].isalpha() else _OPENING.match(line)
    if opening is None or opening.lastgroup in _CONTINUING:
        return True
    # A list that begins in the middle of a paragraph begins with 1, and not with nothing.
    empty = opening.end() == len(line)
    return bool(opening["item"]) and (empty or opening["number"] not in (None, "1"))


def _index_after(lines: list[str], at: int, goes_on: Callable[[str], object]) -> int:
    """Return the index of the first line, from ``at`` on, for which ``goes_on`` is false."""
    while at < len(lines) and goes_on(lines[at]):
        at += 1
    return at


def _behind_fence(lines: list[str], at: int) -> int:
    """Return the index of the line behind fenced code: its fence is at least as long."""
    fence = lines[at].strip()
    size = len(fence) - len(fence.lstrip(fence[0]))

    def is_open(line: str) -> bool:
        """Return whether the block goes on after a line."""
        closing = _CLOSING.match(line)
        return not (closing and closing[1][0] == fence[0] and len(closing[1]) >= size)

    return _index_after(lines, at + 1, is_open) + 1


def _behind_raw(lines: list[str], at: int) -> int:
    """Return the index of the line behind raw HTML, which ends with a certain tag or sign."""
    beginning = lines[at].lstrip().lower()
    end = next((end for start, end in _RAW_ENDS.items() if beginning.startswith(start)), "")

    def is_open(line: str) -> bool:
        """Return whether the block goes on after a line."""
        return end not in line if end else not _RAW_TAG.search(line)

    return _index_after(lines, at, is_open) + 1


def _quoted(lines: list[str], at: int) -> tuple[int, list[str]]:
    """Return the index behind a quotation, and its lines without their signs."""
    inner: list[str] = []
    lazy = False
    while at < len(lines):
        opening = _OPENING.match(lines[at])
        if opening and opening["quote"]:
            inner.append(lines[at][opening.end() :])
            lazy = _kind(inner[-1]) in ("", "item", "quote")
        elif lazy and _continues(lines[at]):
            inner.append(lines[at])
        else:
            break
        at += 1
    return at, inner


def _list_item(lines: list[str], at: int) -> tuple[int, list[str]]:
    """Return the index behind an item of a list, and its lines without sign and indentation."""
    offset = _offset(lines[at])
    inner = [lines[at][offset:]]
    lazy = True
    for number in range(at + 1, len(lines)):
        line = lines[number]
        indented = line[:1] in (" ", "\t")
        if not line or (indented and line.isspace()):
            inner.append("")
            lazy = False
            continue
        text = line.lstrip(" \t") if indented else line
        indentation = line[: len(line) - len(text)].expandtabs(4) if indented else ""
        if len(indentation) >= offset:
            inner.append(indentation[offset:] + text)
        elif lazy and _kind(line) in _CONTINUING:
            inner.append(line)
        else:
            break
        lazy = True
    return at + len(inner), inner


def _offset(line: str) -> int:
    """Return where the text of an item begins, in its first line and in those below."""
    opening = _OPENING.match(line)
    end = opening.end() if opening else 0
    sign = len(line[:end].rstrip())
    return end if sign < end <= sign + 4 and end < len(line) else sign + 1


def _without_comments(text: str) -> str:
    """Return a text without the comments that begin and end in it."""
    pieces, at = [], 0
    while (start := text.find(_START, at)) >= 0:
        end = text.find(_END, start + len(_START))
        if end < 0:
            break
        pieces.append(text[at:start])
        at = end + len(_END)
    return "".join((*pieces, text[at:]))


# By kind, the index behind a block that holds nothing, and what a block of blocks holds.
_BEHIND: dict[str, Callable[[list[str], int], int]] = {
    "blank": lambda _, at: at + 1,
    "rule": lambda _, at: at + 1,
    "definition": lambda _, at: at + 1,
    "code": lambda lines, at: _index_after(
        lines, at, lambda line: _kind(line) in ("code", "blank")
    ),
    "html": lambda lines, at: _index_after(lines, at, str.strip),
    "tag": lambda lines, at: _index_after(lines, at, str.strip),
    "fence": _behind_fence,
    "raw": _behind_raw,
}
_INNER = {"quote": _quoted, "item": _list_item}
