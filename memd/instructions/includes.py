"""What an instruction file includes by ``@path``, and its text as a model gets it. Pure.

Rules of this file
- ``@path`` counts at the start of a line or after white space, outside of code and of comments
  (tests/instructions/test_includes.py::test_where_a_path_counts).
- A comment that begins a line is removed for the model; one within a line or in code stays
  (tests/instructions/test_includes.py::test_comments_of_blocks_are_removed).
- One pass from left to right; each search forward is remembered until the pass has come there, so
  that the work grows with the text (tests/instructions/test_includes.py::test_work_is_linear).
"""

import posixpath
import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache

from memd.instructions.values import LONG_CHARACTERS

_MARKER = r"[ \t>]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t]++)?+"  # of a quotation or a list
_FENCE = re.compile(r"^[ \t>]*+(`{3,}+|~{3,}+)[ \t]*+$", re.MULTILINE)
_TICKS = re.compile(r"`+")
# What ends a paragraph, and with it a code span: the beginning of the next block.
_BLOCK = re.compile(
    r"\n(?=[ \t\r]*+(?:\n|\Z|```|~~~|(?:[-*+]|\d{1,9}[.)])[ \t]|\#{1,6}[ \t]|>|<!--))"
)
_TOKEN = re.compile(
    rf"""
      ^{_MARKER}(?P<fence>`{{3,}}+(?=[^`\n]*+$)|~{{3,}}+)
    | ^[ ]{{0,3}}(?P<block><!--)
    | (?P<inline><!--)
    | (?P<ticks>`++)
    | (?<![^\s\ufeff])@(?P<path>(?:[^\s\\]|\\[ ])++)
    """,
    re.MULTILINE | re.VERBOSE,
)
_REST_OF_LINE = re.compile(r"[ \t\r]*+(?:\n|\Z)")
_NEXT_COMMENT = re.compile(r"[ \t]*+<!--")
_START, _END = "<!--", "-->"
_PATH = re.compile(r"[\w./~-]")  # how a path begins; "@@", "@#" and the like are no includes


@dataclass(frozen=True, slots=True)
class ParsedText:
    """``includes`` are the paths that a text includes, as written, each once, in their order.

    ``text`` is what a model gets: without the comments that are blocks.
    """

    includes: tuple[str, ...]
    text: str


def target(name: str, path: str, home: str) -> str:
    """Return the path that an include names in the file of a path."""
    name = f"{home}{name[1:]}" if name.startswith("~/") else name
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), name))


def parsed(text: str) -> ParsedText:
    """Return what a text includes and what a model gets of it."""
    if "@" not in text and _START not in text:
        return ParsedText((), text)
    return _remembered(text) if len(text) <= LONG_CHARACTERS else _Pass(text).result()


@lru_cache(maxsize=512)  # as many as the disk remembers
def _remembered(text: str) -> ParsedText:
    return _Pass(text).result()


class _Pass:
    """One pass over a text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._paths: dict[str, None] = {}
        self._pieces: list[str] = []
        self._copied = 0  # up to here the text is in the pieces, or was removed
        self._block_end = self._comment_end = -1
        self._runs: dict[int, list[int]] | None = None

    def result(self) -> ParsedText:
        """Return what the pass finds."""
        at = 0
        while token := _TOKEN.search(self._text, at):
            at = self._after(token)
        self._pieces.append(self._text[self._copied :])
        return ParsedText(tuple(self._paths), "".join(self._pieces))

    def _after(self, token: re.Match[str]) -> int:
        """Take a token in, and return where the pass goes on."""
        start, end = token.span(token.lastgroup or 0)
        match token.lastgroup:
            case "fence":
                return self._after_fence(token["fence"], end)
            case "block":
                return self._after_block_comment(token.start(), end)
            case "inline":
                return self._after_inline_comment(end)
            case "ticks":
                return self._after_ticks(start, end)
            case _:
                path = token["path"].replace("\\ ", " ")
                if _PATH.match(path):
                    self._paths[path] = None
                return end

    def _after_fence(self, fence: str, start: int) -> int:
        """Return where fenced code ends: with a fence at least as long, or with the text."""
        for closing in _FENCE.finditer(self._text, start):
            if closing[1][0] == fence[0] and len(closing[1]) >= len(fence):
                return closing.end()
        return len(self._text)

    def _after_block_comment(self, line: int, start: int) -> int:
        """Remove the comments that begin a line; the line too if nothing stands behind them."""
        end = self._end_of_comment(start)
        if end < 0:
            return len(self._text)  # without an end it goes to the end, and stays
        following = _NEXT_COMMENT.match(self._text, end)
        while following and (later := self._end_of_comment(following.end())) >= 0:
            end = later
            following = _NEXT_COMMENT.match(self._text, end)
        rest = _REST_OF_LINE.match(self._text, end)
        self._pieces.append(self._text[self._copied : line])
        self._copied = rest.end() if rest else end
        return self._copied

    def _after_inline_comment(self, start: int) -> int:
        """Return where a comment within a line ends, which is no later than its paragraph."""
        end = self._end_of_comment(start)
        return end if 0 <= end <= self._end_of_block(start) else start

    def _after_ticks(self, start: int, end: int) -> int:
        """Return where a code span ends; if it has no end, it is none."""
        if self._runs is None:
            self._runs = {}
            for run in _TICKS.finditer(self._text):
                self._runs.setdefault(len(run[0]), []).append(run.start())
        length = end - start
        runs = self._runs.get(length, [])
        index = bisect_right(runs, start)
        if index < len(runs) and runs[index] < self._end_of_block(end):
            return runs[index] + length
        return end

    def _end_of_block(self, at: int) -> int:
        if self._block_end < at:
            following = _BLOCK.search(self._text, at)
            self._block_end = following.start() if following else len(self._text)
        return self._block_end

    def _end_of_comment(self, at: int) -> int:
        """Return where the next comment ends, -1 if none does."""
        if self._comment_end < at:
            position = self._text.find(_END, at)
            self._comment_end = position if position >= 0 else len(self._text)
        return self._comment_end + len(_END) if self._comment_end < len(self._text) else -1
