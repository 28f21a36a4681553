"""Search a text line by line, and return the hits with the lines around them. Pure.

A piece of text without any match is skipped after one search in it. The lines of other pieces are
searched one by one, in the form in which they may be shown.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from msgspec import Struct

from memd.agent.view import TextPiece
from memd.core import regex

_TICK_LINES = 4_096
# A pattern with anchors of the whole text or with flags may miss a match in a piece of many lines.
_ENDS = re.compile(r"\\[AzZ]|\(\?")
_BASIC = re.compile(r"\\[(){}|+?]|[(){}|+?]|\\.|.", re.DOTALL)


class Search(Struct, frozen=True):
    """A pattern, how many lines to show before and after a hit, and how many hits at most.

    ``quick``: a piece without a match of the pattern has no line that matches.
    """

    pattern: Any
    invert: bool = False
    before: int = 0
    after: int = 0
    most: int | None = None
    quick: bool = True


class MatchedLine(Struct, frozen=True):
    """A line to show: its number from 1, its text, and whether it is a hit itself."""

    number: int
    text: str
    hit: bool


def search(
    pattern: str,
    *,
    ignore_case: bool = False,
    invert: bool = False,
    before: int = 0,
    after: int = 0,
    most: int | None = None,
) -> Search:
    """Return a search with a compiled pattern. Raises PatternRefusedError."""
    compiled = regex.foreign(pattern, ignore_case=ignore_case)
    quick = not invert and not _ENDS.search(pattern)
    return Search(compiled, invert, before, after, most, quick)


def lines(
    result: Search, pieces: Iterable[TextPiece], tick: Callable[[], None]
) -> Iterator[MatchedLine]:
    """Yield hits with the lines around them, in order; ``tick`` is called every few thousand lines.

    After ``most`` hits only the lines that follow the last one are yielded.
    """
    number = hits = following = 0
    waiting: deque[MatchedLine] = deque(maxlen=result.before)
    for piece in pieces:
        if result.quick and not following and result.pattern.search(piece.raw) is None:
            if result.before:
                texts = piece.lines()[-result.before :]
                first = number + piece.count() - len(texts)
                waiting.extend(
                    MatchedLine(first + n, text, hit=False) for n, text in enumerate(texts, 1)
                )
            number += piece.count()
            continue
        for text in piece.lines():
            number += 1
            if number % _TICK_LINES == 0:
                tick()
            full = result.most is not None and hits >= result.most
            if not full and (result.pattern.search(text) is not None) != result.invert:
                yield from waiting
                waiting.clear()
                yield MatchedLine(number, text, hit=True)
                hits += 1
                following = result.after
            elif following:
                yield MatchedLine(number, text, hit=False)
                following -= 1
            else:
                waiting.append(MatchedLine(number, text, hit=False))
            if result.most is not None and hits >= result.most and not following:
                return


def shown(
    search: Search, result: Iterable[MatchedLine], name: str, *, numbers: bool
) -> Iterator[str]:
    """Yield lines as grep prints them, after ``name`` if it is not empty and their ``numbers``."""
    last = 0
    for line in result:
        if last and line.number > last + 1 and (search.before or search.after):
            yield "--"
        last = line.number
        mark = ":" if line.hit else "-"
        prefix = f"{name}{mark}" if name else ""
        yield prefix + (f"{line.number}{mark}" if numbers else "") + line.text


def basic(pattern: str) -> str:
    """Return grep's basic regular expression in the syntax of Python's engine.

    ``( ) { } | + ?`` stand for themselves unless a backslash is before them; sets are kept.
    """
    parts: list[str] = []
    at = 0
    while at < len(pattern):
        token = _SET.match(pattern, at) or _BASIC.match(pattern, at)
        text = token.group() if token else pattern[at]
        at += len(text)
        if len(text) == 1 and text in "(){}|+?":
            text = f"\\{text}"
        elif text[:1] == "\\" and text[1:] in {"(", ")", "{", "}", "|", "+", "?"}:
            text = text[1:]
        parts.append(text)
    return "".join(parts)


_SET = re.compile(r"\[\^?\]?[^\]]*\]")
