"""Find the files that an instruction file includes by ``@path``, and the text for the model. Pure.

Includes are found as Claude Code 2.1.329 does (docs/decisions.md).

Rules of this file
- ``@path`` counts after white space and at the beginning of a text. A text begins with a block,
  with an emphasised or linked part, and behind such a part, a tag or code. The path ends at white
  space, at ``#``, at a backslash that escapes no space, and at the end of the text
  (tests/net/test_instruction_files.py).
- A block is read in one pass, and the result of each search forward is used until the pass has
  reached it. So the work is linear (tests/net/test_instruction_files.py).
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
_TEXT_BREAK = "\n"  # separates two texts


class ParsedText(Struct, frozen=True):
    """``includes`` are the paths that a text includes, as written, each once, in their order.

    ``text`` is the text that a model gets: without the comments that are blocks.
    """

    includes: tuple[str, ...]
    text: str


def target(name: str, path: str, home: str) -> str:
    """Return the path of the file that an include in the file at ``path`` names."""
    name = f"{home}{name[1:]}" if name.startswith("~/") else name
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), name))


def parsed(text: str) -> ParsedText:
    """Return the paths that a text includes, and the text that a model gets."""
    if "@" not in text and "<!--" not in text:
        return ParsedText((), text)
    return _parse_cached(text) if len(text) <= LONG_CHARACTERS else _parse(text)


@lru_cache(maxsize=512)  # as many as in the cache of ``RealDisk``
def _parse_cached(text: str) -> ParsedText:
    """Return a text's includes; the latest texts are cached."""
    return _parse(text)


def _parse(text: str) -> ParsedText:
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
        self._pieces: list[str] = []  # of the result
        # By sign: the indexes of pieces that may begin emphasis, and how many signs they have.
        self._open_runs: dict[str, list[tuple[int, int]]] = {"*": [], "_": []}
        self._tick_runs: dict[int, list[int]] = {}  # by length: where runs of backticks start
        self._comment_end = 0  # where the next comment ends, -1 if none ends
        self._target = 0  # where the target of the last link starts

    def texts(self) -> str:
        """Return the text with a break in place of code, comments, tags, emphasis and links."""
        at = 0
        while token := _INLINE.search(self._text, at):
            self._pieces.append(self._text[at : token.start()])
            at = self._take_token(token)
        return "".join((*self._pieces, self._text[at:]))

    def _take_token(self, token: re.Match[str]) -> int:
        """Add the piece for a token, and return the index at which the pass goes on."""
        start, end = token.span()
        match token.lastgroup:
            case "ticks":
                break_end = self._closing_ticks(start, end - start)
            case "comment":
                break_end = self._end_of_comment(end)
            case "link":
                self._target = token.start("target")
                break_end = end
            case "linked":
                break_end = end if start == self._target else 0
            case "run":
                self._emphasis(token[0], start, end)
                return end
            case _:
                break_end = end
        self._pieces.append(_TEXT_BREAK if break_end else token[0])  # 0: the token is text
        return break_end or end

    def _closing_ticks(self, start: int, length: int) -> int:
        """Return the index behind a code span, 0 if no equal run of backticks ends it."""
        if not self._tick_runs:
            for run in _TICKS.finditer(self._text):
                self._tick_runs.setdefault(len(run[0]), []).append(run.start())
        runs = self._tick_runs.get(length, [])
        index = bisect_right(runs, start)
        return runs[index] + length if index < len(runs) else 0

    def _end_of_comment(self, at: int) -> int:
        """Return the index behind a comment, 0 if it has no end."""
        if 0 <= self._comment_end < at:
            self._comment_end = self._text.find("-->", at)
        return self._comment_end + 3 if self._comment_end >= 0 else 0

    def _emphasis(self, run: str, start: int, end: int) -> None:
        """Add a run of signs, which may begin emphasis, or end emphasis that another run began."""
        before, after = self._text[start - 1 : start] or " ", self._text[end : end + 1] or " "
        is_before_loose, is_after_loose = _is_loose(before), _is_loose(after)
        is_in_word = run[0] == "_" and not is_before_loose and not is_after_loose
        may_open = not after.isspace() and (not is_after_loose or is_before_loose)
        may_close = not before.isspace() and (not is_before_loose or is_after_loose)
        open_runs, signs_left = self._open_runs[run[0]], len(run)
        while may_close and not is_in_word and open_runs and signs_left:
            piece, size = open_runs.pop()
            if size > signs_left:  # the rest of the open run stays open
                open_runs.append((piece, size - signs_left))
                break
            signs_left -= size
            self._pieces[piece] = _TEXT_BREAK
        has_closed = signs_left < len(run)
        if may_open and not is_in_word and not has_closed:
            open_runs.append((len(self._pieces), signs_left))
        self._pieces.append(_TEXT_BREAK if has_closed else run)


def _is_loose(character: str) -> bool:
    """Return whether a character is white space or punctuation."""
    return character.isspace() or _PUNCTUATION.match(character) is not None
