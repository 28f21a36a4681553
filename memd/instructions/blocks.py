"""Find the parts of a Markdown text that can include files, and remove its comments. Pure.

Code, HTML, comments and lists are recognised as Claude Code 2.1.329 does (docs/decisions.md).
Fenced and indented code, blocks of HTML and definitions of links include no files.

Rules of this file
- A line is read once for each quotation or list around it, and at most ``_DEEPEST`` of these count.
  So the work is linear (tests/net/test_instruction_files.py).
"""

import re
from collections.abc import Callable, Iterator
from enum import Enum

from msgspec import Struct

_DEEPEST = 6  # quotations and lists that are nested deeper are read as paragraphs
_COMMENT_START, _COMMENT_END = "<!--", "-->"
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
      | (?P<comment>{_COMMENT_START})
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
# From the beginning of a block of raw HTML to its end.
_RAW_ENDS = {"<?": "?>", "<!": ">", "<![cdata[": "]]>"}
_RAW_TAG = re.compile(r"</(?:script|pre|style|textarea)>", re.IGNORECASE)
# Lines of these kinds continue a paragraph, although they begin a block elsewhere.
_CONTINUING_KINDS = frozenset({"", "code", "tag", "definition"})


class Leaf(Enum):
    """How the text of a block is searched for includes."""

    INLINE = "inline"  # without what stands in code spans
    LISTED = "listed"  # both with and without it
    RAW = "raw"  # with all of it


class MarkdownBlocks(Struct, frozen=True):
    """The texts that can include files (``leaves``), in order, and the text without comments."""

    leaves: tuple[tuple[Leaf, str], ...]
    text: str


def blocks(text: str) -> MarkdownBlocks:
    """Return the parts of a text that can include files, and the text that a model gets."""
    lines = text.split("\n")
    lines_to_read = [line.rstrip("\r") for line in lines] if "\r" in text else lines
    reading = _Reading()
    reading.read(lines_to_read, 0, Leaf.INLINE)
    return MarkdownBlocks(tuple(reading.leaves), "\n".join(reading.without_comments(lines)))


class _Reading:
    """One reading of a text, line by line."""

    def __init__(self) -> None:
        self.leaves: list[tuple[Leaf, str]] = []
        # Of each comment: the indexes of its first line and of the line behind it, and the text
        # that stands behind it on its last line.
        self._comments: list[tuple[int, int, str]] = []

    def without_comments(self, lines: list[str]) -> Iterator[str]:
        """Yield the lines without the comments that were found."""
        at = 0
        for first, behind, rest in self._comments:
            yield from lines[at:first]
            if rest.strip():
                yield rest
            at = behind
        yield from lines[at:]

    def read(self, lines: list[str], depth: int, leaf: Leaf) -> None:
        """Add the blocks of some lines; ``leaf`` is how their paragraphs are searched.

        ``depth`` is the number of quotations and lists around the lines.
        """
        at = 0
        while at < len(lines):
            kind = _kind(lines[at])
            if kind == "comment":
                at = self._read_comment(lines, at, depth)
            elif kind in _SKIPPED_BLOCKS:
                at = _SKIPPED_BLOCKS[kind](lines, at)
            elif kind in _NESTED_BLOCKS and depth < _DEEPEST:
                at, inner_lines = _NESTED_BLOCKS[kind](lines, at)
                self.read(inner_lines, depth + 1, Leaf.LISTED if kind == "item" else Leaf.INLINE)
            elif kind == "heading":
                self.leaves.append((Leaf.INLINE, lines[at]))
                at += 1
            else:
                first = at
                at = _first_index_after(lines, at + 1, _continues)
                self.leaves.append((leaf, "\n".join(lines[first:at])))

    def _read_comment(self, lines: list[str], at: int, depth: int) -> int:
        """Add a comment that begins a line, with all others up to the end of its last line.

        Return the index of the line behind it. A comment without an end is not removed.
        """
        first, rest = at, lines[at].partition(_COMMENT_START)[2]
        while _COMMENT_END not in rest:
            at += 1
            if at == len(lines):
                return at
            rest = lines[at]
        rest = _without_comments(rest.partition(_COMMENT_END)[2])
        if not depth:
            self._comments.append((first, at + 1, rest))
        self.leaves.append((Leaf.RAW, rest))
        return at + 1


def _kind(line: str) -> str:
    """Return the kind of block that a line begins, "" for a paragraph."""
    if line[:1].isalpha():  # most lines, and this is quick
        return ""
    opening = _OPENING.match(line)
    return (opening.lastgroup or "") if opening else ""


def _continues(line: str) -> bool:
    """Return whether a line continues a paragraph."""
    opening = None if line[:1].isalpha() else _OPENING.match(line)
    if opening is None or opening.lastgroup in _CONTINUING_KINDS:
        return True
    # A list ends a paragraph only if its first item has a text and no number but 1.
    is_empty = opening.end() == len(line)
    return bool(opening["item"]) and (is_empty or opening["number"] not in (None, "1"))


def _first_index_after(lines: list[str], at: int, is_inside: Callable[[str], object]) -> int:
    """Return the index of the first line, from ``at`` on, for which ``is_inside`` is false."""
    while at < len(lines) and is_inside(lines[at]):
        at += 1
    return at


def _index_behind_fence(lines: list[str], at: int) -> int:
    """Return the index of the line behind fenced code, whose end is at least as long a fence."""
    fence = lines[at].strip()
    size = len(fence) - len(fence.lstrip(fence[0]))

    def is_open(line: str) -> bool:
        """Return whether the block goes on after a line."""
        closing = _CLOSING.match(line)
        return not (closing and closing[1][0] == fence[0] and len(closing[1]) >= size)

    return _first_index_after(lines, at + 1, is_open) + 1


def _index_behind_raw(lines: list[str], at: int) -> int:
    """Return the index of the line behind raw HTML, which ends with a closing tag or a sign."""
    beginning = lines[at].lstrip().lower()
    end = next((end for start, end in _RAW_ENDS.items() if beginning.startswith(start)), "")

    def is_open(line: str) -> bool:
        """Return whether the block goes on after a line."""
        return end not in line if end else not _RAW_TAG.search(line)

    return _first_index_after(lines, at, is_open) + 1


def _quotation(lines: list[str], at: int) -> tuple[int, list[str]]:
    """Return the index behind a quotation, and its lines without their signs."""
    inner_lines: list[str] = []
    in_paragraph = False  # a paragraph may go on in lines without a sign
    while at < len(lines):
        opening = _OPENING.match(lines[at])
        if opening and opening["quote"]:
            inner_lines.append(lines[at][opening.end() :])
            in_paragraph = _kind(inner_lines[-1]) in ("", "item", "quote")
        elif in_paragraph and _continues(lines[at]):
            inner_lines.append(lines[at])
        else:
            break
        at += 1
    return at, inner_lines


def _list_item(lines: list[str], at: int) -> tuple[int, list[str]]:
    """Return the index behind an item of a list, and its lines without sign and indentation."""
    offset = _text_offset(lines[at])
    inner_lines = [lines[at][offset:]]
    in_paragraph = True  # a paragraph may go on in lines without the indentation
    for number in range(at + 1, len(lines)):
        line = lines[number]
        is_indented = line[:1] in (" ", "\t")
        if not line or (is_indented and line.isspace()):
            inner_lines.append("")
            in_paragraph = False
            continue
        text = line.lstrip(" \t") if is_indented else line
        indentation = line[: len(line) - len(text)].expandtabs(4) if is_indented else ""
        if len(indentation) >= offset:
            inner_lines.append(indentation[offset:] + text)
        elif in_paragraph and _kind(line) in _CONTINUING_KINDS:
            inner_lines.append(line)
        else:
            break
        in_paragraph = True
    return at + len(inner_lines), inner_lines


def _text_offset(line: str) -> int:
    """Return the column at which the text of a list item begins, also in the lines below."""
    opening = _OPENING.match(line)
    end = opening.end() if opening else 0
    sign_end = len(line[:end].rstrip())
    has_text_near = sign_end < end <= sign_end + 4 and end < len(line)
    return end if has_text_near else sign_end + 1


def _without_comments(text: str) -> str:
    """Return a text without the comments that begin and end in it."""
    pieces, at = [], 0
    while (start := text.find(_COMMENT_START, at)) >= 0:
        end = text.find(_COMMENT_END, start + len(_COMMENT_START))
        if end < 0:
            break
        pieces.append(text[at:start])
        at = end + len(_COMMENT_END)
    return "".join((*pieces, text[at:]))


# For kinds of blocks that include no files: a function for the index behind the block.
_SKIPPED_BLOCKS: dict[str, Callable[[list[str], int], int]] = {
    "blank": lambda _, at: at + 1,
    "rule": lambda _, at: at + 1,
    "definition": lambda _, at: at + 1,
    "code": lambda lines, at: _first_index_after(
        lines, at, lambda line: _kind(line) in ("code", "blank")
    ),
    "html": lambda lines, at: _first_index_after(lines, at, str.strip),
    "tag": lambda lines, at: _first_index_after(lines, at, str.strip),
    "fence": _index_behind_fence,
    "raw": _index_behind_raw,
}
# For kinds of blocks that consist of blocks: a function for the index behind it and its lines.
_NESTED_BLOCKS = {"quote": _quotation, "item": _list_item}
