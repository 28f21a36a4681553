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
from memd.base import regex

_TICK_LINES = 4_096  # lines between two calls of ``tick``
# A pattern with anchors of the whole text or with flags may miss a match in a piece of many lines.
_WHOLE_TEXT_OR_FLAGS = r"\\[AzZ]|\(\?"


class Search(Struct, frozen=True):
    """A pattern, how many lines to show before and after a hit, and how many hits at most.

    ``quick`` says that a piece without a match of the pattern has no line that matches.
    """

    pattern: Any
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
    before: int = 0,
    after: int = 0,
    most: int | None = None,
) -> Search:
    """Return a search with a compiled pattern. Raises Invalid."""
    compiled = regex.foreign(pattern, ignore_case=ignore_case)
    quick = not re.search(_WHOLE_TEXT_OR_FLAGS, pattern)
    return Search(compiled, before, after, most, quick)


def lines(
    search: Search, pieces: Iterable[TextPiece], tick: Callable[[], None]
) -> Iterator[MatchedLine]:
    """Yield hits with the lines around them, in order; ``tick`` is called every few thousand lines.

    After ``most`` hits only the lines that follow the last one are yielded.
    """
    number = 0  # of the last line that was read
    hits = 0
    lines_to_show = 0  # after the last hit
    before: deque[MatchedLine] = deque(maxlen=search.before)  # lines to show before the next hit
    for piece in pieces:
        if search.quick and not lines_to_show and search.pattern.search(piece.raw) is None:
            if search.before:
                last_texts = piece.lines()[-search.before :]
                first = number + piece.count() - len(last_texts) + 1
                before.extend(
                    MatchedLine(at, text, hit=False) for at, text in enumerate(last_texts, first)
                )
            number += piece.count()
            continue
        for text in piece.lines():
            number += 1
            if number % _TICK_LINES == 0:
                tick()
            if not _has_enough(search, hits) and search.pattern.search(text):
                yield from before
                before.clear()
                yield MatchedLine(number, text, hit=True)
                hits += 1
                lines_to_show = search.after
            elif lines_to_show:
                yield MatchedLine(number, text, hit=False)
                lines_to_show -= 1
            else:
                before.append(MatchedLine(number, text, hit=False))
            if _has_enough(search, hits) and not lines_to_show:
                return


def _has_enough(search: Search, hits: int) -> bool:
    """Return whether a search has as many hits as it may have."""
    return search.most is not None and hits >= search.most


def shown(
    search: Search, result: Iterable[MatchedLine], name: str, *, numbers: bool
) -> Iterator[str]:
    """Yield lines as grep prints them, after ``name`` if it is not empty and their ``numbers``."""
    last = 0
    for line in result:
        if last and line.number > last + 1 and (search.before or search.after):
            yield "--"
        last = line.number
        separator = ":" if line.hit else "-"
        file_prefix = f"{name}{separator}" if name else ""
        number_prefix = f"{line.number}{separator}" if numbers else ""
        yield f"{file_prefix}{number_prefix}{line.text}"
