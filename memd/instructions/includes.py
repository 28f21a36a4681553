"""Find the files that an instruction file includes by ``@path``, and the text for the model. Pure.

What counts is what Claude Code 2.1.329 includes (docs/decisions.md).

Rules of this file
- ``@path`` counts after white space and where a text begins: that of a block, of what is
  emphasised or linked, and what stands behind these, behind a tag or code. It ends at white space,
  at ``#``, at a backslash that escapes no space, and where the text ends
  (tests/instructions/test_includes.py::test_what_is_included).
- One pass over a block; each search forward is remembered until the pass has come there, so that
  the work grows with the text (tests/instructions/test_includes.py::test_work_is_linear).
"""

import posixpath
import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache

from msgspec import Struct

from memd.instructions.blocks import Leaf, blocks
from memd.instructions.values import LONG_CHARACTERS

_PATH_CHARACTERS = 1024
_SPACE = (
    r"\t-\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"  # as JavaScript has it
)
_MENTION = re.compile(rf"(?<![^{_SPACE}])@((?:[^{_SPACE}\\#]|\\ )++)")
_PATH = re.compile(r"\./|~/|/.|[A-Za-z0-9._-]")  # how a path begins
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")
_TICKS = re.compile(r"`+")
_INLINE = re.compile(
    r"""
      (?P<escape>\\[!-/:-@\[-`{-~])
    | (?P<ticks>`++)
    | (?P<comment><!--)
    | (?P<tag></?[A-Za-z][A-Za-z0-9-]*+(?:\s[^<>]*+)?/?>|<[A-Za-z][A-Za-z0-9+.-]*+[:@][^\s<>]*+>)
    | (?P<image>!\[[^\[\]]*+\]\([^()\n]*+\))
    | (?P<link>\[(?=[^\[\]]*+(?P<target>\]\([^()\n]*+\))))
    | (?P<linked>\]\([^()\n]*+\))
    | (?P<run>\*++|_++)
    """,
    re.VERBOSE,
)
_BREAK = "\n"  # stands where one text ends and another begins


class ParsedText(Struct, frozen=True):
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
    if "@" not in text and "<!--" not in text:
        return ParsedText((), text)
    return _remembered(text) if len(text) <= LONG_CHARACTERS else _parsed(text)


@lru_cache(maxsize=512)  # as many as the disk remembers
def _remembered(text: str) -> ParsedText:
    """Return a text's includes; the latest texts are cached."""
    return _parsed(text)


def _parsed(text: str) -> ParsedText:
    """Return the paths that a text includes, and the text without its comments."""
    parts = blocks(text)
    paths = (path for leaf, part in parts.leaves if "@" in part for path in _paths(leaf, part))
    return ParsedText(tuple(dict.fromkeys(paths)), parts.text)


def _paths(leaf: Leaf, text: str) -> Iterator[str]:
    """Yield the paths that a block includes."""
    if leaf is not Leaf.INLINE:
        yield from _mentioned(text)
    if leaf is not Leaf.RAW:
        yield from _mentioned(_Inline(text).texts())


def _mentioned(text: str) -> Iterator[str]:
    """Yield the paths that are written as ``@path`` in a text."""
    for mention in _MENTION.finditer(text):
        path = mention[1].replace("\\ ", " ")
        if _PATH.match(path) and len(path) <= _PATH_CHARACTERS:
            yield path


class _Inline:
    """One pass over the text of a block, for comments, code and emphasis."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._pieces: list[str] = []
        # By sign, the pieces that may begin emphasis, and how many signs they have.
        self._open: dict[str, list[tuple[int, int]]] = {"*": [], "_": []}
        self._runs: dict[int, list[int]] = {}
        self._comment_end = self._target = 0

    def texts(self) -> str:
        """Return the text with a break for what is none, and where emphasis and links begin."""
        at = 0
        while token := _INLINE.search(self._text, at):
            self._pieces.append(self._text[at : token.start()])
            at = self._after(token)
        return "".join((*self._pieces, self._text[at:]))

    def _after(self, token: re.Match[str]) -> int:
        """Take a token in, and return where the pass goes on."""
        start, end = token.span()
        match token.lastgroup:
            case "ticks":
                closing = self._closing_ticks(start, end - start)
            case "comment":
                closing = self._end_of_comment(end)
            case "link":
                self._target = token.start("target")
                closing = end
            case "linked":
                closing = end if start == self._target else 0
            case "run":
                self._emphasis(token[0], start, end)
                return end
            case _:
                closing = end
        self._pieces.append(_BREAK if closing else token[0])
        return closing or end

    def _closing_ticks(self, start: int, length: int) -> int:
        """Return where a code span ends, 0 if it is none."""
        if not self._runs:
            for run in _TICKS.finditer(self._text):
                self._runs.setdefault(len(run[0]), []).append(run.start())
        runs = self._runs.get(length, [])
        index = bisect_right(runs, start)
        return runs[index] + length if index < len(runs) else 0

    def _end_of_comment(self, at: int) -> int:
        """Return where a comment ends, 0 if it does not."""
        if 0 <= self._comment_end < at:
            self._comment_end = self._text.find("-->", at)
        return self._comment_end + 3 if self._comment_end >= 0 else 0

    def _emphasis(self, run: str, start: int, end: int) -> None:
        """Let a run of signs begin emphasis, or end what such a run began."""
        before, after = self._text[start - 1 : start] or " ", self._text[end : end + 1] or " "
        loose, tight = _is_loose(before), _is_loose(after)
        within_word = run[0] == "_" and not loose and not tight
        opens = not after.isspace() and (not tight or loose) and not within_word
        closes = not before.isspace() and (not loose or tight) and not within_word
        waiting, left = self._open[run[0]], len(run)
        while closes and waiting and left:
            piece, size = waiting.pop()
            if size > left:  # the rest of it still waits
                waiting.append((piece, size - left))
                break
            left -= size
            self._pieces[piece] = _BREAK
        if opens and left == len(run):
            waiting.append((len(self._pieces), left))
        self._pieces.append(run if left == len(run) else _BREAK)


def _is_loose(character: str) -> bool:
    """Return whether a character is white space or punctuation."""
    return character.isspace() or _PUNCTUATION.match(character) is not None
